"""Where a checkpoint lies in a run of the broker, and how far the call in it has come.

It came from outside (the run was started or suspended with it), or the run's worker wrote it ahead of a call: the
newer one counts. The disposition it was written with is how things stood then; how they stand is in the run's journal.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ...core.answers import Answer, AnswerKind, Complete, Fail, Respond
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
)
from ...core.entries import Result, read_result
from ...core.kinds import UnknownKind
from ...core.limits import JSON
from ...core.models import Interrupt, InterruptState, OnExpiry
from ...core.states import CallState
from ...core.tools import Tool
from ...errors import RosterMismatch
from ...store.commands.entries import Known
from .shapes import Checkpoint

STATE_KEY: Final = "codeact_pending"
"""The key of the session state under which ADK-Rust keeps its one pending checkpoint."""
FRAMEWORK: Final = "adk-rust codeact"
"""Whose bytes they are, in an `InterruptState`."""
HEARD: Final = "heard"


Rewrite: TypeAlias = Callable[[str, dict[str, JSON]], dict[str, JSON]]
"""A plug-in that looks at a tool's name and arguments before anybody is asked, and gives the arguments to use."""


@dataclass(eq=False)
class RosterChanged(
    RosterMismatch,
    code="roster_mismatch",
    says="Run {run_id!r} was frozen with other tools (gone: {gone}; new: {new}). Its checkpoint is kept: let a worker "
    "that has the tools of then go on with it.",
):
    """The tools differ from those a checkpoint was frozen with. Nothing ran, and the checkpoint is kept (A18)."""

    gone: tuple[str, ...]
    new: tuple[str, ...]


def check_roster(run_id: str, checkpoint: Checkpoint, roster: tuple[str, ...]) -> None:
    """Nothing, or `RosterChanged` where a worker's tools are not those of a checkpoint."""
    then, now, call = set(checkpoint.tool_roster), set(roster), checkpoint.call
    if then != now:
        gone, new = tuple(sorted(then - now)), tuple(sorted(now - then))
        raise RosterChanged(run_id, call.entry, call.tool, gone, new)


def written(checkpoint: Checkpoint, seq: int, heard: int) -> dict[str, JSON]:
    """A checkpoint as a run's worker keeps it: after which pause it was written, and how much input it has in it."""
    packed = base64.b64encode(checkpoint.to_bytes()).decode()
    return {STATE_KEY: packed, "seq": seq, HEARD: heard}


def frozen(checkpoint: Checkpoint) -> InterruptState:
    """The state of a pause made of a checkpoint."""
    return InterruptState(
        context_snapshot=checkpoint.transcript, framework=FRAMEWORK, opaque=checkpoint.to_bytes()
    )


def found(seq: int, checkpointed: Any, state: InterruptState | None, given: Any) -> Checkpoint | None:
    """The newest checkpoint among what a run's worker kept, what it was suspended with, and what it was started with.

    Raises `Corrupt` for one that cannot be read: that is never taken for none.
    """
    kept = checkpointed if isinstance(checkpointed, dict) and STATE_KEY in checkpointed else None
    paused = state if state is not None and state.framework == FRAMEWORK else None
    if kept is not None and (paused is None or kept["seq"] == seq):
        return Checkpoint.from_bytes(base64.b64decode(kept[STATE_KEY]), key="checkpoint")
    if paused is not None:
        return Checkpoint.from_bytes(paused.opaque or b"", key="state")
    if isinstance(given, dict) and isinstance(given.get(STATE_KEY), dict):
        return Checkpoint.from_json(given[STATE_KEY])
    return None


def heard(checkpointed: Any) -> int:
    """How many of the inputs that came meanwhile a checkpoint has in its transcript."""
    return int(checkpointed.get(HEARD, 0)) if isinstance(checkpointed, dict) else 0


def question(checkpoint: Checkpoint, offers: tuple[AnswerKind, ...] | None = None) -> Interrupt | None:
    """What a checkpoint waits for; None where nothing has to be asked. `offers` are the answers to a confirmation.

    A disposition of another version is asked about as that: it is listed, and only a cancel ends it.
    """
    call = checkpoint.call
    match checkpoint.disposition:
        case AwaitingConfirmation():
            return Interrupt.approval(call.action, call.entry, offers=offers)
        case AwaitingCompletion(pending_handle=handle):
            return Interrupt.completion(call.action, call.entry, handle)
        case UnknownDisposition(kind=kind):
            raw = {"type": kind}
            return Interrupt(
                kind=UnknownKind(raw=raw), reason="disposition", call_id=call.entry, action=call.action,
                on_expiry=OnExpiry.WAIT, expires_in=None,
            )  # fmt: skip
        case _:
            return None


def record_of(result: Result) -> ResolutionRecord:
    """How a call ended, as a script is told."""
    failure = result.failure
    return Value(value=result.value) if failure is None else Raise(error=failure.text or failure.kind)


def answered(answer: Answer | None) -> ResolutionRecord | None:
    """How a call ended by an answer that came before its question."""
    match answer:
        case Complete(value=value) | Respond(payload=value):
            return Value(value=value)
        case Fail(error=error):
            return Raise(error=error)
        case _:
            return None


def standing(checkpoint: Checkpoint, known: Known, ended: ResolutionRecord | None) -> Disposition:
    """How far the call of a checkpoint has come, by what the journal has of it and by how its question ended."""
    match known.state:
        case CallState.RESOLVED if known.result is not None:
            return Resolved(record=record_of(read_result(known.result)))
        case CallState.PENDING_RESULT:
            return PendingResult()
        case CallState.AWAITING_CONFIRMATION if not isinstance(checkpoint.disposition, UnknownDisposition):
            return AwaitingConfirmation()
        case CallState.AWAITING_COMPLETION:
            return AwaitingCompletion(pending_handle=known.handle or _handle(checkpoint))
        case CallState.RESOLVED if ended is not None:
            return Resolved(record=ended)
        case _:
            return checkpoint.disposition


def _handle(checkpoint: Checkpoint) -> JSON:
    then = checkpoint.disposition
    return then.pending_handle if isinstance(then, AwaitingCompletion) else None


def ahead(tool: Tool) -> Disposition:
    """How a call stands before anything is done about it."""
    if tool.gated:
        return AwaitingConfirmation()
    return AwaitingCompletion() if tool.long_running else PendingResult()
