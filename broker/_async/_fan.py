"""One reader of events for all followers of a process: one blocked connection, however many there are.

Written by hand on both sides with the same names (`_sync/_fan.py`). A follower that does not keep up is let go: it
reads for itself what it has missed, and comes back.
"""

import asyncio
import contextlib
import logging
import random
from collections import deque

from ..core.events import Event, Place, Wanted
from ..errors import BrokerError, Unavailable
from ..store.connect import FAULTS, Gone, Later, meaning
from .link import Link
from .tail import Tail

log = logging.getLogger("broker")

BLOCK_SECONDS = 5.0
MOST_WAITING = 2000
"""So many events may wait for a follower before it is let go."""


class Seat:
    """What one follower gets. `since`: it gets everything after that."""

    def __init__(self, fan: "Fan", wanted: Wanted, since: tuple[Place, ...]) -> None:
        self._fan = fan
        self._wanted = wanted
        self._waiting: deque[Event] = deque()
        self._rung = asyncio.Event()
        self.since: tuple[Place, ...] = since
        self.is_over: bool = False
        """Whether it gets nothing more: it was too slow, or the reader has failed."""
        self.fault: BaseException | None = None

    @property
    def places(self) -> tuple[Place, ...]:
        """Where it is, once everything was taken."""
        return self._fan.places

    def give(self, event: Event) -> None:
        """One more event."""
        if self._wanted.match(event):
            self._waiting.append(event)
            self._rung.set()
            if len(self._waiting) > MOST_WAITING:
                self.end()

    def end(self, fault: BaseException | None = None) -> None:
        """Nothing more."""
        self.is_over, self.fault = True, fault
        self._waiting.clear()
        self._rung.set()

    async def next(self, seconds: float) -> tuple[Event, ...]:
        """What waits for it, as soon as something does; nothing where nothing has come within so many seconds."""
        if not self._waiting and not self.is_over:
            self._rung.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._rung.wait()
        if self.fault is not None:
            raise self.fault
        found = tuple(self._waiting)
        self._waiting.clear()
        return found

    async def leave(self) -> None:
        """Gives it back. Safe to repeat."""
        self._fan.leave(self)


class Fan:
    """Reads while somebody follows."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._tail: Tail | None = None
        self._seats: set[Seat] = set()
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @property
    def places(self) -> tuple[Place, ...]:
        """How far it has read."""
        return self._tail.places if self._tail is not None else ()

    async def join(self, wanted: Wanted, _: tuple[Place, ...] | None) -> Seat:
        """A seat for one more follower."""
        async with self._lock:
            if self._task is None or self._task.done():
                tail = Tail(self._link)
                await tail.begin(None)
                self._tail = tail
                self._task = asyncio.create_task(self._read(tail), name="broker-events")
        seat = Seat(self, wanted, self.places)
        self._seats.add(seat)
        return seat

    def leave(self, seat: Seat) -> None:
        """Takes a seat away; nobody reads for nobody."""
        self._seats.discard(seat)
        if not self._seats and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _read(self, tail: Tail) -> None:
        pause, unsure = 0.05, False
        try:
            while True:
                try:
                    if unsure or tail.is_behind:
                        gap = await tail.check()
                        self._give((gap,) if gap is not None else ())
                        unsure = False
                    self._give(await tail.read(BLOCK_SECONDS))
                    pause = 0.05
                except (*FAULTS, Unavailable) as error:
                    _pass_over(error)
                    unsure, pause = True, min(pause * 2, 1.0)
                    await asyncio.sleep(pause * (0.5 + random.random() / 2))  # noqa: S311 - jitter
        except Exception as fault:  # noqa: BLE001 - each follower is told
            for seat in tuple(self._seats):
                seat.end(fault)
        finally:
            await tail.aclose()

    def _give(self, events: tuple[Event, ...]) -> None:
        for event in events:
            for seat in self._seats:
                if not seat.is_over:
                    seat.give(event)
        self._seats -= {seat for seat in self._seats if seat.is_over}


def _pass_over(error: BaseException) -> None:
    """Nothing for a fault that passes; raises any other."""
    fault = meaning(error)
    if isinstance(fault, BrokerError) and not isinstance(fault, Unavailable):
        raise fault from None
    if not isinstance(fault, BrokerError | Gone | Later):
        raise error
