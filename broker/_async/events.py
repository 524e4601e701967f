"""What happens in a namespace, from a cursor on: for those who look on, keep a page up to date, or tell others."""

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta

from ..core.events import BEGINNING, Event, EventType, Place, Wanted
from ..core.limits import check_name
from ..store.commands import events
from ..store.keys import Partition
from ._fan import Fan, Seat
from .link import Link
from .tail import Tail

__all__ = ["BEGINNING", "Event", "EventType", "Events", "Following"]

WAIT_SECONDS = 5.0


class Following:
    """One follower: `next` gives what has come, `cursor` says where it is. Close it when it is no longer wanted."""

    def __init__(self, link: Link, fan: Fan, after: str | None, wanted: Wanted) -> None:
        self._link = link
        self._fan = fan
        self._after = after
        self._wanted = wanted
        self._seat: Seat | None = None
        self._tail: Tail | None = None
        self._places: tuple[Place, ...] = ()

    @property
    def cursor(self) -> str | None:
        """What to go on from: everything before it was given, or not wanted."""
        return self._tail.cursor if self._tail is not None else self._after

    async def open(self) -> tuple[Event, ...]:
        """Goes to the cursor it was made with; a gap, where events were lost since. Raises `InvalidInput`."""
        await self._link.open()
        tail, gap = Tail(self._link), None
        if self._after is None:  # where the common reader is, so that there is nothing to catch up with
            self._seat = await self._fan.join(self._wanted, None)
            tail.move(self._seat.since)
        else:
            gap = await tail.begin(self._after)
        self._tail = tail
        return (gap,) if gap is not None else ()

    async def next(self, seconds: float = WAIT_SECONDS) -> tuple[Event, ...]:
        """What has come, the oldest first; nothing where nothing has come within about so many seconds."""
        if self._tail is None and (gap := await self.open()):
            return gap
        tail = self._tail
        assert tail is not None  # noqa: S101 - it was opened
        if self._seat is None or self._seat.is_over:
            await self._sit(tail)
            if gap_now := await tail.check():
                return (gap_now,)
        assert self._seat is not None  # noqa: S101 - as above
        if _is_before(tail.places, self._seat.since):
            found = await tail.read()
            if not found:  # what lay there was trimmed
                tail.move(_later(tail.places, self._seat.since))
            return tuple(one for one in found if self._wanted.match(one))
        found = await self._seat.next(seconds)
        fresh = tuple(one for one in found if self._is_new(one, tail))
        if not self._seat.is_over:
            tail.move(_later(tail.places, self._seat.places))
        return fresh

    async def _sit(self, tail: Tail) -> None:
        """Takes a seat, or another one."""
        await self.leave()
        self._seat = await self._fan.join(self._wanted, tail.places)

    def _is_new(self, event: Event, tail: Tail) -> bool:
        """Whether it was not read before, on the way to where the common reader was."""
        if event.type == EventType.GAP:
            return True
        _, number, ms, seq = event.id.split("_")
        return tail.places[int(number)].is_before(Place(int(ms), int(seq)))

    async def leave(self) -> None:
        """Gives its place up; it takes another one when it is asked for more. Safe to repeat."""
        seat, self._seat = self._seat, None
        if seat is not None:
            await seat.leave()


class Events:
    """What happens in the namespace. The streams are bounded by age and length: who falls behind is told of the gap."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._fan: Fan | None = None

    def following(
        self, *, after: str | None = None, session: str | None = None, run: str | None = None,
        queue: str | None = None, types: Sequence[str] | None = None,
    ) -> Following:  # fmt: skip
        """As `follow`, to be asked for what has come, with a time after which nothing has."""
        if self._fan is None:
            self._fan = Fan(self._link)
        return Following(self._link, self._fan, after, Wanted.of(session, run, queue, types))

    async def follow(
        self, *, after: str | None = None, session: str | None = None, run: str | None = None,
        queue: str | None = None, types: Sequence[str] | None = None,
    ) -> AsyncGenerator[Event, None]:  # fmt: skip
        """What happens from now on, for ever: loop over it. After a cursor, what has happened since comes first.

        `after` is the cursor of an event, `BEGINNING` (everything that is kept), or None. All followers of a broker
        share one connection. An event may come again after a cursor was used twice: its `id` is the same. Raises
        `InvalidInput` for a cursor of another namespace.
        """
        following = self.following(after=after, session=session, run=run, queue=queue, types=types)
        waiting: deque[Event] = deque()
        try:
            while True:
                waiting.extend(await following.next())
                while waiting:
                    yield waiting.popleft()
        finally:
            await following.leave()

    async def cursor(self) -> str:
        """Where everything ends now: what happens later comes after it."""
        await self._link.open()
        tail = Tail(self._link)
        await tail.begin(None)
        return tail.cursor

    async def position(self, name: str) -> str | None:
        """The cursor that was kept under a name, None where none was."""
        check_name("name", name)
        return await self._link.fetch(events.read_position(await self._place(), name))

    async def keep(self, name: str, cursor: str) -> None:
        """Keeps a cursor under a name, on the server. Safe to repeat: the last one counts."""
        check_name("name", name)
        await self._link.fetch(events.keep_position(await self._place(), name, cursor))

    async def drop(self, name: str) -> None:
        """Forgets a name. Safe to repeat."""
        check_name("name", name)
        await self._link.fetch(events.drop_position(await self._place(), name))

    async def note(self, name: str, about: str, said: str | None) -> None:
        """Notes something beside a named cursor, such as which message shows an interrupt; None forgets it."""
        check_name("name", name)
        p = await self._place()
        if said is None:
            await self._link.fetch(events.drop_note(p, name, about))
        else:
            await self._link.fetch(events.keep_note(p, name, about, said))

    async def noted(self, name: str, about: str) -> str | None:
        """What was noted, None where nothing was."""
        check_name("name", name)
        return await self._link.fetch(events.read_note(await self._place(), name, about))

    async def notes(self, name: str) -> dict[str, str]:
        """Everything that was noted beside a named cursor."""
        check_name("name", name)
        return await self._link.fetch(events.read_notes(await self._place(), name))

    async def hold(self, name: str, holder: str, span: timedelta) -> bool:
        """Whether `holder` is the one follower of that name, for so long from now; a zero span gives that up."""
        check_name("name", name)
        ms = round(span.total_seconds() * 1000)
        return await self._link.fetch(events.hold(await self._place(), name, holder, ms))

    async def _place(self) -> Partition:
        await self._link.open()
        return self._link.space.partition(0)


def _is_before(some: Sequence[Place], others: Sequence[Place]) -> bool:
    return any(one.is_before(other) for one, other in zip(some, others, strict=True))


def _later(some: Sequence[Place], others: Sequence[Place]) -> tuple[Place, ...]:
    return tuple(other if one.is_before(other) else one for one, other in zip(some, others, strict=True))
