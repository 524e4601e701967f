"""Events for one follower of a thread, over a connection of its own.

Written by hand on both sides with the same names (`_async/_fan.py`).
"""

from ..core.events import Event, Place, Wanted
from ..errors import BrokerError, Unavailable
from ..store.connect import FAULTS, Gone, Later, meaning
from ._runtime import sleep
from .link import Link
from .tail import Tail


class Seat:
    """What one follower gets. `since`: it gets everything after that."""

    def __init__(self, tail: Tail, wanted: Wanted) -> None:
        self._tail = tail
        self._wanted = wanted
        self._unsure = False
        self.since: tuple[Place, ...] = tail.places
        self.is_over: bool = False
        """Whether it gets nothing more: never here, nobody else reads for it."""

    @property
    def places(self) -> tuple[Place, ...]:
        """Where it is."""
        return self._tail.places

    def next(self, seconds: float) -> tuple[Event, ...]:
        """What has come; nothing where nothing has come within so many seconds."""
        try:
            gap = self._tail.check() if self._unsure or self._tail.is_behind else None
            self._unsure = False
            if gap is not None:
                return (gap,)
            return tuple(one for one in self._tail.read(seconds) if self._wanted.match(one))
        except (*FAULTS, Unavailable) as error:
            fault = meaning(error)
            if isinstance(fault, BrokerError) and not isinstance(fault, Unavailable):
                raise fault from None
            if not isinstance(fault, BrokerError | Gone | Later):
                raise
            self._unsure = True
            sleep(min(seconds, 0.5))
            return ()

    def leave(self) -> None:
        """Gives the connection back. Safe to repeat."""
        self._tail.close()


class Fan:
    """Seats for followers."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def join(self, wanted: Wanted, places: tuple[Place, ...] | None) -> Seat:
        """A seat for one more follower, from some places on, or from now on."""
        tail = Tail(self._link)
        if places is None:
            tail.begin(None)
        else:
            tail.move(places)
        return Seat(tail, wanted)
