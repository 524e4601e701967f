"""The doorbells of a namespace from a place on, as events: what every follower rests on."""

from collections.abc import Sequence
from dataclasses import replace

from ..core.events import BEGINNING, Event, EventType, Place, read_cursor, write_cursor
from ..core.fields import from_ms
from ..store.commands import events
from ..store.commands.events import Rung
from ..store.connect import Options
from ._runtime import Client, deadline, make_client
from .link import Link

AT_ONCE = 500
"""How many entries of a stream are read at a time."""
MARGIN_SECONDS = 3.0


class Tail:
    """What comes after a place. It reads over the connections that the broker has, unless it is to wait for entries."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._client: Client | None = None
        self._streams = events.bells(link.space)
        self._texts: list[str] = []
        self.places: tuple[Place, ...] = ()
        self.is_behind: bool = False
        """Whether there may be more than was read last."""

    @property
    def cursor(self) -> str:
        """Where it is."""
        return write_cursor(self.places)

    def move(self, places: Sequence[Place]) -> None:
        """Puts it somewhere else."""
        self.places = tuple(places)
        self._texts = [str(one) for one in self.places]

    async def begin(self, after: str | None) -> Event | None:
        """Puts it where a cursor says, or, without one, where everything ends now; a gap, where entries were lost."""
        extents = await self._link.fetch(events.read_extents(self._streams))
        if after is None:
            self.move([one.end for one in extents])
        elif after == BEGINNING:
            self.move([Place(had=one.gone) for one in extents])
        else:
            self.move(read_cursor(after, len(self._streams)))
            return await self.check()
        return None

    async def check(self) -> Event | None:
        """A gap where entries that come after its place are gone; then it goes on after them."""
        extents = await self._link.fetch(events.read_extents(self._streams))
        places, missed, lost = list(self.places), 0, False
        for number, (at, now) in enumerate(zip(self.places, extents, strict=True)):
            if now.end.is_before(at) or now.end.had < at.had:
                lost = True  # the server lost the stream: what it holds now is all new
                places[number] = Place(had=now.gone)
            elif now.gone > at.had:
                missed += now.gone - at.had
                places[number] = at._replace(had=now.gone)
        self.move(places)
        if not missed and not lost:
            return None
        cursor = self.cursor
        at_ms = self._link.server_now() // 1000
        told = {"type": EventType.GAP.value, "id": f"gap_{cursor}", "cursor": cursor, "at": from_ms(at_ms)}
        return Event.made({**told, "missed": None if lost else missed})

    async def read(self, seconds: float | None = None) -> tuple[Event, ...]:
        """What comes next, by its time; nothing where nothing has come within so many seconds (None: at once)."""
        if seconds is None:
            found = await self._link.fetch(events.read_more(self._streams, self.places, AT_ONCE))
        else:
            block = max(1, round(seconds * 1000))
            command = events.read_after(self._streams, self.places, AT_ONCE, block)
            async with deadline(seconds + MARGIN_SECONDS):
                found = events.entries(self._streams, await self._waiting(seconds).execute_command(*command))
        self.is_behind = len(found) >= AT_ONCE
        return await self._told(found) if found else ()

    async def _told(self, rung: Sequence[Rung]) -> tuple[Event, ...]:
        told = []
        places = list(self.places)
        drafts = await self._link.fetch(events.read_events(rung))
        for one, draft in zip(rung, drafts, strict=True):
            number = one.bell.number
            places[number] = Place(one.ms, one.seq, places[number].had + 1)
            self._texts[number] = str(places[number])
            told.append(draft.model_copy(update={"cursor": write_cursor(self._texts)}))
        self.places = tuple(places)
        return tuple(told)

    def _waiting(self, seconds: float) -> Client:
        if self._client is None:
            how: Options = replace(self._link.options, max_connections=1)
            self._client = make_client(self._link.source, how, seconds + MARGIN_SECONDS)
        return self._client

    async def aclose(self) -> None:
        """Gives the connection back. Safe to repeat."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
