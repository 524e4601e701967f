"""AG-UI 1.0: its interrupts, outcomes and resumes, exactly, for runs that pause in the broker.

    threads = agui.AsyncThreads(broker)
    match await threads.receive(agui.RunAgentInput.from_json(body)):
        case agui.Refusal() as refusal: ...      # nothing was changed: refusal.event() tells the client why
        case agui.Plan(run_id=None): ...         # nothing was open: start a run
        case agui.Plan(run_id=run): ...          # it goes on; later: threads.ended(run, request.run_id)

Everything else here is pure: the shapes of the wire, and the conversions from and to the broker's values.
"""

from ...core.dispositions import SubagentOutcome
from ._async.threads import AsyncThreads
from ._sync.threads import Threads
from .answering import entry_of
from .asking import ended, frontend_call, interrupt_of, question_of, suspension_of
from .declared import (
    CAPABILITIES,
    PROTOCOL_VERSION,
    Capabilities,
    HumanInTheLoop,
    is_newer,
    run_started,
    version_warnings,
)
from .ledger import SubagentLedger
from .owners import Invocation, InvocationState, subagent_outcomes
from .resuming import CONCEPT, SPEC_1_0, Code, Plan, Policy, Refusal, Thread, Unknowns, plan
from .rules import Level, Rule, Violation
from .schema import schemas
from .shapes import (
    Cancelled,
    Event,
    Interrupt,
    Interrupted,
    ResumeEntry,
    RunAgentInput,
    RunError,
    RunFinished,
    RunOutcome,
    RunStarted,
    Status,
    Success,
    UnknownOutcome,
    read_compat,
)
from .validator import StreamValidator, check_stream

__all__ = [
    "CAPABILITIES",
    "CONCEPT",
    "PROTOCOL_VERSION",
    "SPEC_1_0",
    "AsyncThreads",
    "Cancelled",
    "Capabilities",
    "Code",
    "Event",
    "HumanInTheLoop",
    "Interrupt",
    "Interrupted",
    "Invocation",
    "InvocationState",
    "Level",
    "Plan",
    "Policy",
    "Refusal",
    "ResumeEntry",
    "Rule",
    "RunAgentInput",
    "RunError",
    "RunFinished",
    "RunOutcome",
    "RunStarted",
    "Status",
    "StreamValidator",
    "SubagentLedger",
    "SubagentOutcome",
    "Success",
    "Thread",
    "Threads",
    "UnknownOutcome",
    "Unknowns",
    "Violation",
    "check_stream",
    "ended",
    "entry_of",
    "frontend_call",
    "interrupt_of",
    "is_newer",
    "plan",
    "question_of",
    "read_compat",
    "run_started",
    "schemas",
    "subagent_outcomes",
    "suspension_of",
    "version_warnings",
]
