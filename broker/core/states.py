"""The life of a run, an interrupt and a call as data: every state, every operation, every move between states.

Rule one: everything that decides which state may follow which lives in `TRANSITIONS`. The scripts on the server are
rendered with this same table and refuse a move that is not in it, the state diagram in the documentation is drawn
from it, and `tests/protocol.toml` states it a second time, independently, so that a wrong row is noticed.

Guards that need data (tokens, deadlines, digests) live in the scripts, each on a marked line of its own.
"""

from enum import StrEnum
from typing import Final, NamedTuple


class RunState(StrEnum):
    """Where a run is: who may act on it next."""

    READY = "ready"
    LEASED = "leased"
    WAITING = "waiting"
    FINISHED = "finished"
    WITHDRAWN = "withdrawn"
    DEAD = "dead"


class Settlement(StrEnum):
    """Whether an interrupt is open, and if not, how it ended. Denied, abandoned and timed out are different facts."""

    OPEN = "open"
    RESOLVED = "resolved"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"


class CallState(StrEnum):
    """How to go on from the record of one tool call (the tags of the Disposition wire)."""

    PENDING_RESULT = "pending_result"
    RESOLVED = "resolved"
    AWAITING_CONFIRMATION = "awaiting_confirmation"
    AWAITING_COMPLETION = "awaiting_completion"


class Mode(StrEnum):
    """When a suspension makes its run ready: at the last answer, at each, or at the first (the others superseded)."""

    ALL = "all"
    EACH = "each"
    FIRST = "first"


class Record(StrEnum):
    """Which of the three machines a transition belongs to."""

    RUN = "run"
    INTERRUPT = "interrupt"
    CALL = "call"


class Transition(NamedTuple):
    """One permitted move: `operation` takes `record` from `before` (None: it did not exist) to one of `after`."""

    record: Record
    operation: str
    before: str | None
    after: tuple[str, ...]


_R, _S, _C = RunState, Settlement, CallState


def _run(operation: str, before: RunState | None, *after: RunState) -> Transition:
    return Transition(Record.RUN, operation, before, after)


def _interrupt(operation: str, before: Settlement | None, *after: Settlement) -> Transition:
    return Transition(Record.INTERRUPT, operation, before, after)


def _call(operation: str, before: CallState | None, *after: CallState) -> Transition:
    return Transition(Record.CALL, operation, before, after)


TRANSITIONS: Final[tuple[Transition, ...]] = (
    _run("start", None, _R.READY),
    _run("adopt", None, _R.LEASED),
    # A suspension may go straight to ready: every answer was there before the question.
    _run("suspend", None, _R.WAITING, _R.READY),
    _run("suspend", _R.LEASED, _R.WAITING, _R.READY),
    _run("replace", _R.WAITING, _R.WAITING, _R.READY),
    _run("settle", _R.WAITING, _R.READY),
    _run("lease", _R.READY, _R.LEASED, _R.DEAD),
    _run("lease", _R.LEASED, _R.LEASED, _R.DEAD),  # only when the lease has run out
    _run("release", _R.LEASED, _R.READY),
    _run("fail", _R.LEASED, _R.READY, _R.DEAD),
    _run("reclaim", _R.LEASED, _R.READY, _R.DEAD),
    # Mode each: something unspent makes it ready again, something open makes it wait.
    _run("finish", _R.LEASED, _R.FINISHED, _R.READY, _R.WAITING),
    _run("requeue", _R.DEAD, _R.READY, _R.WAITING),
    _run("withdraw", _R.WAITING, _R.WITHDRAWN),
    _run("withdraw", _R.READY, _R.WITHDRAWN),
    _run("withdraw", _R.DEAD, _R.WITHDRAWN),
    _run("withdraw", _R.LEASED, _R.LEASED),  # mode each: takes back what is open, the run goes on
    _interrupt("suspend", None, _S.OPEN),
    _interrupt("answer", _S.OPEN, _S.RESOLVED, _S.CANCELLED),
    # Expiry answers only where the policy names a default answer.
    _interrupt("expire", _S.OPEN, _S.EXPIRED, _S.RESOLVED),
    _interrupt("withdraw", _S.OPEN, _S.WITHDRAWN),
    _interrupt("supersede", _S.OPEN, _S.SUPERSEDED),
    _call("suspend", None, _C.AWAITING_CONFIRMATION, _C.AWAITING_COMPLETION),
    _call("suspend", _C.AWAITING_CONFIRMATION, _C.AWAITING_CONFIRMATION, _C.AWAITING_COMPLETION),
    _call("suspend", _C.AWAITING_COMPLETION, _C.AWAITING_COMPLETION),
    # A call id that comes back with another action is another call; with the same action its result stands.
    _call("suspend", _C.RESOLVED, _C.RESOLVED, _C.AWAITING_CONFIRMATION, _C.AWAITING_COMPLETION),
    # An approval leaves the record as it is: the worker that begins the call writes the next one.
    _call("settle", _C.AWAITING_CONFIRMATION, _C.RESOLVED),
    _call("settle", _C.AWAITING_COMPLETION, _C.RESOLVED),
    _call("begin", None, _C.PENDING_RESULT, _C.AWAITING_COMPLETION),
    _call("begin", _C.AWAITING_CONFIRMATION, _C.PENDING_RESULT, _C.AWAITING_COMPLETION),
    _call("begin", _C.PENDING_RESULT, _C.PENDING_RESULT),
    _call("begin", _C.AWAITING_COMPLETION, _C.AWAITING_COMPLETION),
    # A call that cannot be made (no such tool, other arguments) has its result without being begun.
    _call("end", None, _C.RESOLVED),
    _call("end", _C.PENDING_RESULT, _C.RESOLVED),
    _call("end", _C.AWAITING_COMPLETION, _C.RESOLVED),
    # What a question came to is written into the journal when the run has read it.
    _call("end", _C.RESOLVED, _C.RESOLVED),
)

CLOSED: Final = frozenset({RunState.FINISHED, RunState.WITHDRAWN})
"""Run states that nothing leaves."""

SETTLED: Final = frozenset(set(Settlement) - {Settlement.OPEN})
"""Interrupt states that nothing leaves."""


def allowed(record: Record, operation: str, before: str | None) -> tuple[str, ...]:
    """The states that `operation` may lead to from `before`; empty where it is not permitted."""
    for row in TRANSITIONS:
        if row.record is record and row.operation == operation and row.before == before:
            return row.after
    return ()
