"""What those are told who decide and complete, and what their questions are."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...core.answers import Approve, Edit
from ...core.dispositions import Resolved
from ...core.entries import Result
from ...core.kinds import ApprovalPending
from ...core.models import Audience
from ...core.outcomes import Outcome
from ...core.records import InterruptRecord
from ...core.states import Settlement
from ...errors import InvalidInput
from .keeping import record_of
from .shapes import ConfirmationRequest

Handler: TypeAlias = Callable[[ConfirmationRequest], Any]
"""A function, async or plain, that looks at a request and says `approve` or `deny`, or an answer of the broker's."""


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one decision or result: `outcome`, or the `error` of the handler that was to decide.

    `open` says whether its question still waits, `stored` how the call ended where it has (A15).
    """

    call_id: str
    outcome: Outcome | None = None
    error: str | None = None
    open: bool = False
    stored: Resolved | None = None

    @property
    def accepted(self) -> bool:
        """Whether this very call of ours settled it, now or when it was sent before."""
        return self.outcome is not None and self.outcome.ok


@dataclass(frozen=True, slots=True)
class Completed:
    """What became of the results in one message, and of the turn: which calls wait, and which of them are done."""

    told: tuple[Told, ...]
    waiting: tuple[str, ...]
    have: tuple[str, ...]
    released: bool
    """Whether nothing is waited for any more, so that the run goes on."""


def call_of(asked: InterruptRecord) -> str:
    """The id of the call a question is about."""
    return asked.interrupt.call_id or ""


def is_job(asked: InterruptRecord) -> bool:
    """Whether it waits for the result of a job."""
    return asked.interrupt.addressed_to is Audience.COMPLETIONS


def is_of(asked: InterruptRecord, tool: str) -> bool:
    """Whether it is about a call of this tool."""
    return asked.interrupt.action is not None and asked.interrupt.action.tool == tool


def waits_for_a_decision(asked: InterruptRecord) -> bool:
    """Whether it waits for a decision about a call."""
    return asked.state is Settlement.OPEN and isinstance(asked.interrupt.kind, ApprovalPending)


def request_of(asked: InterruptRecord) -> ConfirmationRequest:
    """What is shown to whoever decides."""
    action = asked.interrupt.action
    if action is None:
        raise InvalidInput("action", "is none", "an approval of a call")
    return ConfirmationRequest(
        tool_name=action.tool, function_call_id=asked.interrupt.call_id, args=action.arguments
    )


def stored(asked: InterruptRecord) -> Resolved | None:
    """How a call ended with its question; None while it is open, and where it was allowed to run."""
    ended = asked.resolution
    if ended is None or isinstance(ended.answer, Approve | Edit):
        return None
    return Resolved(record=record_of(Result.of(asked)))
