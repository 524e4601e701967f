"""entelix: pauses as it raises them, its approver and effect gates, its commands, and graphs with scheduled pauses.

    from broker.interop import entelix

A thread is a session, a tenant a namespace. The kinds of a pause are the broker's own (`Custom`, `ApprovalPending`,
`ScheduledPause`, `UnknownKind`), on the same wire; so are `Approve` and `Reject`.
"""

from .approving import (
    Approvals,
    Approver,
    Effect,
    EffectGate,
    Request,
    effect,
    effect_of,
    external,
    patient,
)
from .auditing import AuditEvent, audit
from .commands import (
    ApproveTool,
    Command,
    GoTo,
    Resume,
    UnknownCommand,
    Update,
    envelope,
    open_envelope,
    parse_command,
)
from .decisions import AwaitExternal, decision_json, decision_of, parse_decision
from .graph import Graph
from .guarding import AsyncGuard, BlockingGuard, Thread, guard, guarded
from .raising import Interrupted, approval_payload, interrupt
from .schemas import schemas
from .sending import Sent, open_interrupts, send

__all__ = [
    "Approvals",
    "ApproveTool",
    "Approver",
    "AsyncGuard",
    "AuditEvent",
    "AwaitExternal",
    "BlockingGuard",
    "Command",
    "Effect",
    "EffectGate",
    "GoTo",
    "Graph",
    "Interrupted",
    "Request",
    "Resume",
    "Sent",
    "Thread",
    "UnknownCommand",
    "Update",
    "approval_payload",
    "audit",
    "decision_json",
    "decision_of",
    "effect",
    "effect_of",
    "envelope",
    "external",
    "guard",
    "guarded",
    "interrupt",
    "open_envelope",
    "open_interrupts",
    "parse_command",
    "parse_decision",
    "patient",
    "schemas",
    "send",
]
