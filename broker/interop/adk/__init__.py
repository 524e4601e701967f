"""ADK-Rust's CodeAct: its checkpoint, dispositions and decisions, kept by the broker.

`Checkpoint` is the file and the value in its session state. `AsyncAgentSession` is that state key in the broker, for
hosts: load, save, clear, decide, complete; `AgentSession` is its blocking twin. `CodeAct` is for workers: it freezes a
script before each tool call, and goes on from there in any process; `BlockingCodeAct` is for plain handlers.
"""

from ...core.dispositions import (
    AwaitingCompletion,
    AwaitingConfirmation,
    Disposition,
    PendingResult,
    Raise,
    ResolutionRecord,
    Resolved,
    UnknownDisposition,
    Value,
    parse_disposition,
)
from ._async.codeact import CodeAct
from ._async.session import AsyncAgentSession
from ._sync.codeact import CodeAct as BlockingCodeAct
from ._sync.session import AgentSession
from .decisions import (
    CustomToolResult,
    Decision,
    ManagedAnswer,
    Permission,
    Policy,
    ToolConfirmation,
    UnknownManaged,
    Word,
    fingerprint,
    fits,
    prompt_answer,
)
from .keeping import RosterChanged
from .shapes import Checkpoint, ConfirmationRequest, FunctionResponse, PendingCall
from .telling import Completed, Told

__all__ = [
    "AgentSession",
    "AsyncAgentSession",
    "AwaitingCompletion",
    "AwaitingConfirmation",
    "BlockingCodeAct",
    "Checkpoint",
    "CodeAct",
    "Completed",
    "ConfirmationRequest",
    "CustomToolResult",
    "Decision",
    "Disposition",
    "FunctionResponse",
    "ManagedAnswer",
    "PendingCall",
    "PendingResult",
    "Permission",
    "Policy",
    "Raise",
    "ResolutionRecord",
    "Resolved",
    "RosterChanged",
    "Told",
    "ToolConfirmation",
    "UnknownDisposition",
    "UnknownManaged",
    "Value",
    "Word",
    "fingerprint",
    "fits",
    "parse_disposition",
    "prompt_answer",
]
