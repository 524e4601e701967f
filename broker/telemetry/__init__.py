"""What somebody who watches the calls of a process is told, and the catalogue of what there is to see. Floor 1.

An observer is given to a broker or a worker and called twice per script call, which is everything that can change
something: before it is sent, and when its outcome is known, or known to be unknown. Plain reads are not told. What it
is told are facts about the call: ids, times, outcomes, fences. Arguments, payloads, answers and lease tokens are
never among them. Without an observer nothing is collected and nothing is paid.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final, Protocol

CATALOGUE: Final[dict[str, str]] = {
    "adopt": "a run that was executing already is recorded and leased",
    "answer": "an answer to an interrupt, named by its id or by its call",
    "begin": "a step or call of a run is written down before it runs, or what it came to is read",
    "check": "whether this user may do what the scripts do, asked when a connection opens",
    "collect": "settled records whose time is over are deleted",
    "cut": "a checkpoint takes the place of a run's journal so far",
    "end": "the result of a step or call is recorded",
    "expire": "an interrupt past its deadline ends as its policy says",
    "fail": "an attempt at a run ends as failed",
    "finish": "a run is closed with its result",
    "hand": "a ready run is handed to a job of another system",
    "handle": "what a long-running call returned at its start is recorded",
    "heartbeat": "a job done elsewhere tells that it still runs",
    "lease": "a ready run is leased",
    "move": "a run is taken to another queue",
    "namespace": "the settings of a namespace are read, or written where it is new",
    "reclaim": "a lost lease is taken back, or a back-off ends",
    "register": "a worker says that it is there, or that it leaves",
    "release": "a leased run is given back",
    "renew": "a lease is renewed",
    "requeue": "a dead run is sent back",
    "ring": "the doorbell of an open interrupt is rung again",
    "ring_ready": "workers of a pool with ready runs are woken again",
    "say": "input for a run that has begun is kept, in order",
    "seen": "a doorbell entry is acknowledged",
    "start": "a new run, ready for a worker",
    "suspend": "a run pauses with its questions",
    "sweep": "a process asks for the right to sweep, or gives it up",
    "withdraw": "a run is taken back with its open questions",
}
"""Every operation an observer is told of: its name and what it does."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One item of one script call. Before it is sent, all that comes back is None.

    Times are those of `time.monotonic_ns`, which all processes of a machine share. `number` is the same before and
    after, and no other's in the process. `outcome` is the code the caller is told, or the word for what happened;
    None with an `error` says that the call failed: `unsure` and `cancelled` when it may have happened all the same,
    else the code of an error that changed nothing. `winner` is the operation that was first. `fence` is that of the
    lease the call showed or got. A suspension may have several interrupts. Of an answer, `asked_at` is when its
    question was asked, in Unix seconds by the server's clock, and `traceparent` the trace that the question belongs to,
    where they are known. `is_undurable`: it happened, and did not reach the durability class in time.
    """

    number: int
    op: str
    session_id: str | None
    run_id: str | None
    interrupt_ids: tuple[str, ...]
    operation_id: str | None
    t_call: int
    fence: int | None = None
    t_return: int | None = None
    outcome: str | None = None
    winner: str | None = None
    error: str | None = None
    asked_at: float | None = None
    traceparent: str | None = None
    is_undurable: bool = False


class Observer(Protocol):
    """Who is told. Called from the event loop and from the thread that renews leases: be quick, and raise nothing."""

    def sent(self, calls: Sequence[Observation], /) -> None:
        """The items of a call that is about to be sent."""

    def told(self, calls: Sequence[Observation], /) -> None:
        """The same items with what came of them."""


class Silent:
    """An observer that does nothing, to be overridden in part."""

    def sent(self, calls: Sequence[Observation], /) -> None:
        """Nothing."""

    def told(self, calls: Sequence[Observation], /) -> None:
        """Nothing."""


UNTRACED: Final[AbstractContextManager[str | None]] = nullcontext(None)
"""What stands for a span where nothing is traced."""


class Tracer(Silent):
    """An observer that also follows work across processes, by the `traceparent` in the records."""

    def span(
        self, name: str, traceparents: Sequence[str] = (), /, **facts: str | int
    ) -> AbstractContextManager[str | None]:
        """What a block of work does, as one span: entered, it gives the `traceparent` of what comes of it.

        It goes on with the first of `traceparents` (texts of W3C Trace Context; what cannot be read is passed over) and
        is linked to the others; without any it belongs to what the caller is doing.
        """
        del name, traceparents, facts
        return UNTRACED


class Together(Tracer):
    """Several observers as one. The first that traces makes the spans."""

    def __init__(self, *observers: Observer | None) -> None:
        self._observers = tuple(one for one in observers if one is not None)
        self._tracer = next((one for one in self._observers if isinstance(one, Tracer)), None)

    def sent(self, calls: Sequence[Observation], /) -> None:
        """Tells each of them."""
        for one in self._observers:
            one.sent(calls)

    def told(self, calls: Sequence[Observation], /) -> None:
        """Tells each of them."""
        for one in self._observers:
            one.told(calls)

    def span(
        self, name: str, traceparents: Sequence[str] = (), /, **facts: str | int
    ) -> AbstractContextManager[str | None]:
        """That of the one that traces."""
        return self._tracer.span(name, traceparents, **facts) if self._tracer is not None else UNTRACED
