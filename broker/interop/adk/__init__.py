"""ADK-Rust's CodeAct: its checkpoint, dispositions and decisions, kept by the broker.

`Checkpoint` is the file and the value in its session state. `AgentSession` is that state key in the broker, for hosts:
load, save, clear, decide, complete. `CodeAct` is for workers: it freezes a script before each tool call, and goes on
from there in any process.
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
from .codeact import CodeAct, Rewrite, RosterChanged
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
from .session import AgentSession, Completed, Handler, Told
from .shapes import Checkpoint, ConfirmationRequest, FunctionResponse, PendingCall

__all__ = [
    "AgentSession",
    "AwaitingCompletion",
    "AwaitingConfirmation",
    "Checkpoint",
    "CodeAct",
    "Completed",
    "ConfirmationRequest",
    "CustomToolResult",
    "Decision",
    "Disposition",
    "FunctionResponse",
    "Handler",
    "ManagedAnswer",
    "PendingCall",
    "PendingResult",
    "Permission",
    "Policy",
    "Raise",
    "ResolutionRecord",
    "Resolved",
    "Rewrite",
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
