"""From a command and what its items came to, to what an observer is told of them."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from time import monotonic_ns
from types import TracebackType
from typing import Any, Self

from ...core.outcomes import AlreadyDecided, NotDurable
from ...errors import BrokerError, Refused, StaleLease, Unavailable
from ...telemetry import Observation, Observer
from .runs import Leased
from .values import Command, StaleAddress

_numbers = count(1)


class Watch:
    """Tells an observer of one call: `with Watch(observer, command) as watch: return watch.saw(send(command))`."""

    __slots__ = ("_command", "_observer", "_results", "_sent")

    def __init__(self, observer: Observer | None, command: Command[Any]) -> None:
        self._observer = observer
        self._command = command
        self._results: Sequence[Any] | None = None
        self._sent: tuple[Observation, ...] = ()

    def __enter__(self) -> Self:
        if self._observer is not None:
            self._sent = tuple(_begun(self._command))
            self._observer.sent(self._sent)
        return self

    def saw(self, results: list[Any]) -> list[Any]:
        """The results as they are, noted."""
        self._results = results
        return results

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._observer is not None:
            found = self._results if self._results is not None else [fault] * len(self._sent)
            end = monotonic_ns()
            self._observer.told([_ended(one, what, end) for one, what in zip(self._sent, found, strict=True)])


def _begun(command: Command[Any]) -> Iterator[Observation]:
    now = monotonic_ns()
    for item in command.items:
        about = item.about
        yield Observation(
            number=next(_numbers), op=command.script, session_id=about.session or None, run_id=about.run or None,
            interrupt_ids=about.interrupts, operation_id=about.operation or None, t_call=now, fence=about.fence,
            asked_at=about.asked_at, traceparent=about.traceparent,
        )  # fmt: skip


def _ended(sent: Observation, what: Any, end: int) -> Observation:
    """What one item came to, a fault included, in words."""
    if isinstance(what, StaleLease) and not what.repeated:
        return replace(sent, t_return=end, outcome=what.code)
    if isinstance(what, BaseException):
        missed = isinstance(what, Refused) and isinstance(what.outcome, NotDurable)
        return replace(sent, t_return=end, error=_fault(what), is_undurable=missed)
    if isinstance(what, NotDurable):
        return replace(sent, t_return=end, error="unsure", is_undurable=True)
    if isinstance(what, Leased):
        fence = what.token.fence
        return replace(sent, t_return=end, outcome="leased", fence=fence, operation_id=f"lease-{fence}")
    winner = what.winner.op if isinstance(what, AlreadyDecided) else None
    ids = sent.interrupt_ids or getattr(what, "interrupt_ids", ())
    return replace(sent, t_return=end, interrupt_ids=ids, outcome=_word(what), winner=winner)


def _word(what: Any) -> str:
    code = getattr(what, "code", None)
    if isinstance(code, str):
        return code
    if what is None or what is False:
        return "nothing"
    return what if isinstance(what, str) and what else "done"


def _fault(fault: BaseException) -> str:
    if isinstance(fault, StaleLease):
        return "unsure"  # the first try, whose reply was lost, may have been what ended it
    if isinstance(fault, Refused):
        return "unsure"  # it happened, and may not last
    if isinstance(fault, Unavailable):
        return "unsure" if fault.unsure else fault.code
    if isinstance(fault, BrokerError):
        return fault.code
    if isinstance(fault, asyncio.CancelledError):
        return "cancelled"
    return "stale_address" if isinstance(fault, StaleAddress) else "unsure"
