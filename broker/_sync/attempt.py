# Generated from broker/_async/attempt.py by tests/tools/unasync.py (make sync): do not edit.
"""One attempt at a run: what of the journal is under way, what parked, and what ended it.

A call that has to be asked about parks. When every journal call of the attempt is parked or done, one suspension is
made for all that parked, and then they raise `Paused`: raising at the first one would cancel the siblings in a task
group. What ends an attempt ends it for good: later journal calls raise it again, as something no `except Exception`
swallows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

from ..core.models import Interrupt
from ..errors import AttemptOver, Paused, StaleLease
from ._runtime import Eventually, Gate, Guard, breathe, sleep

Question: TypeAlias = Interrupt | str
"""What a call parks for: a question to ask, or the id of one that is open already."""


class Parked(Exception):
    """A call cannot go on in this attempt: its question is among those to ask."""


class Attempt:
    """Counts the journal calls of one attempt. `ask` makes the suspension; it is called once, by the last to park."""

    def __init__(self, run: Any, ask: Callable[[Sequence[Question]], Eventually[None]]) -> None:
        self._run = run
        self._ask = ask
        self._guard = Guard()
        self._gate = Gate()
        self._busy = 0
        self._used: dict[str, None] = {}
        self._parked: dict[str, Question] = {}
        self._raised: BaseException | None = None

    @property
    def fault(self) -> BaseException | None:
        """What ended the attempt: a pause, a mismatch, a lost lease; None while it goes on."""
        found: BaseException | None = self._run._fault  # noqa: SLF001 - the same house
        return found

    @property
    def is_busy(self) -> bool:
        """Whether a journal call is under way."""
        return self._busy > 0

    def check(self) -> None:
        """Nothing, while the attempt goes on; raises what ended it."""
        if self._raised is not None and self.fault is None:
            self.end(self._raised)
        if self.fault is None and self._run.is_held:
            return
        sleep(0)  # a handler that swallows everything and goes on must not hold up the others
        if isinstance(self.fault, Paused):
            raise Paused(self._run.id)
        if self.fault is None:
            raise self.end(StaleLease(self._run.id))
        raise AttemptOver(self._run.id) from self.fault

    def end(self, error: BaseException) -> BaseException:
        """Ends the attempt for good; to be raised. The first thing that ends it counts."""
        if self.fault is None:
            self._run._fault = error  # noqa: SLF001
        self._gate.open()
        return error

    def raised(self, error: BaseException) -> None:
        """Notes that a step raised: it will be made again, so nothing that comes after it can be recorded."""
        self._raised = self._raised or error

    def claim(self, name: str) -> bool:
        """Whether the name is new in this attempt; it is taken then."""
        with self._guard:
            new = name not in self._used
            self._used[name] = None
            return new

    def forget_names(self) -> None:
        """Names may come again: a checkpoint took the place of what they stood for."""
        self._used.clear()

    def park(self, name: str, question: Question) -> Parked:
        """Adds a question about a call to those of the one suspension that is to come; to be raised."""
        with self._guard:
            self._parked[name] = question
        return Parked()

    @contextmanager
    def running(self) -> Iterator[None]:
        """One journal call while it runs; the last one to end makes the suspension that others parked for."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)
            self._settle_down()

    def pause(self) -> NoReturn:
        """Waits, as one of the running calls, until the suspension is made. Always raises."""
        self._count(-1)
        try:
            self._settle_down()
            self._gate.wait()
        finally:
            self._count(1)
        fault = self.fault
        raise Paused(self._run.id) if fault is None or isinstance(fault, Paused) else fault

    def _count(self, by: int) -> None:
        with self._guard:
            self._busy += by

    def _is_settled(self) -> bool:
        return self._busy == 0 and bool(self._parked) and self.fault is None

    def _settle_down(self) -> None:
        """Makes the suspension when the last journal call of the attempt has parked or ended."""
        if not self._is_settled():
            return
        if not self._run.is_held:
            self.end(StaleLease(self._run.id))
            return
        breathe()
        with self._guard:
            if not self._is_settled():
                return
            self._run._fault = Paused(self._run.id)  # noqa: SLF001 - whoever sets it makes the suspension
        try:
            self._ask([self._parked[name] for name in self._used if name in self._parked])
        except BaseException as error:
            self._run._fault = error  # noqa: SLF001
            raise
        finally:
            self._gate.open()
