"""Where agent fleets pause and resume: pauses in Redis, each answered once and resumed once, by whoever is alive."""

from ._async.client import AsyncBroker
from ._async.follow import Delivery
from ._async.run import Run
from .core.answers import (
    Answer,
    AnswerKind,
    Approve,
    Cancel,
    Complete,
    Edit,
    Fail,
    Principal,
    PrincipalKind,
    Reject,
    Respond,
    UnknownAnswer,
    Verdict,
    parse_answer,
)
from .core.dispositions import (
    AwaitingCompletion,
    AwaitingConfirmation,
    CallRecord,
    Disposition,
    PendingResult,
    Raise,
    ResolutionRecord,
    Resolved,
    SubagentOutcome,
    UnknownDisposition,
    Value,
)
from .core.durability import Durability
from .core.fleet import Fleet, PoolCount, WorkerInfo
from .core.kinds import ApprovalPending, Custom, InterruptionKind, Phase, ScheduledPause, UnknownKind
from .core.limits import Limits
from .core.models import Action, Audience, Interrupt, InterruptState, OnExpiry, PendingToolCall
from .core.outcomes import (
    Accepted,
    AlreadyDecided,
    Conflict,
    Expired,
    Full,
    Invalid,
    NotAllowed,
    NotDurable,
    Outcome,
    Parked,
    Replayed,
    Superseded,
    Unknown,
    Winner,
    Withdrawn,
)
from .core.pages import Page
from .core.records import HistoryEntry, InterruptRecord, Resolution, RunRecord
from .core.schema import schema_for, schemas
from .core.settings import Settings
from .core.states import CallState, Mode, RunState, Settlement
from .errors import (
    BrokerError,
    Corrupt,
    InvalidInput,
    MissingExtra,
    NoServer,
    NotPermitted,
    OutOfMemory,
    Refused,
    StaleLease,
    Unavailable,
    UnknownId,
    UnsuitableServer,
    WaitTimeout,
    WrongNamespace,
)
from .worker import Sweeper, Worker

__all__ = [
    "Accepted", "Action", "AlreadyDecided", "Answer", "AnswerKind", "ApprovalPending", "Approve", "AsyncBroker", "Audience",
    "AwaitingCompletion", "AwaitingConfirmation", "BrokerError", "CallRecord", "CallState", "Cancel", "Complete", "Conflict",
    "Corrupt", "Custom", "Delivery", "Disposition", "Durability", "Edit", "Expired", "Fail", "Fleet", "Full", "HistoryEntry",
    "Interrupt", "InterruptRecord", "InterruptState", "InterruptionKind", "Invalid", "InvalidInput", "Limits", "MissingExtra",
    "Mode", "NoServer", "NotAllowed", "NotDurable", "NotPermitted", "OnExpiry", "OutOfMemory", "Outcome", "Page", "Parked",
    "PendingResult", "PendingToolCall", "Phase", "PoolCount", "Principal", "PrincipalKind", "Raise", "Refused", "Reject",
    "Replayed", "ResolutionRecord", "Resolution", "Resolved", "Respond", "Run", "RunRecord", "RunState", "ScheduledPause",
    "Settings", "Settlement", "StaleLease", "SubagentOutcome", "Superseded", "Sweeper", "Unavailable", "Unknown",
    "UnknownAnswer", "UnknownDisposition", "UnknownId", "UnknownKind", "UnsuitableServer", "Value", "Verdict", "WaitTimeout",
    "Winner", "Withdrawn", "Worker", "WorkerInfo", "WrongNamespace", "parse_answer", "schema_for", "schemas",
]  # fmt: skip
