"""The bell of a worker that waits: one of those that do is woken for each run that becomes ready.

Workers that have room say so in a set for each pool, and listen on a channel of their own. Whoever makes a run ready
takes one name out of the set and tells that worker what it needs to take the run at once; so a thousand may wait, and
one is woken at the cost of one. Nothing is owed to a worker that dies: a name under which nobody listens is passed over
at once, and the sweeper wakes another one for what nobody took.
"""

import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Self

from .._async._heard import Bell
from .._async.link import Link
from ..store.commands import wakes
from ..store.commands.runs import Offer
from ..store.keys import Partition, Pool

LOOK_SECONDS = 30.0
"""After how long a worker that waits looks by itself, at most."""


class Bells:
    """What one worker hears, over the connection on which its process hears all that is announced."""

    def __init__(self, link: Link, name: str, bell: Bell) -> None:
        self._link = link
        self._name = name
        self._bell = bell
        self._waits: set[tuple[Partition, Pool]] = set()
        """Where the name of this worker may be."""

    @classmethod
    @asynccontextmanager
    async def of(cls, link: Link, queue: str, name: str) -> AsyncIterator[Self]:
        """The bells of a worker while it works."""
        channels = [p.key("wake", one) for p in link.space.all() for one in (name, f":{queue}")]
        async with link.announcements.listen(*channels) as bell:
            yield cls(link, name, bell)

    @property
    def ring(self) -> Callable[[], None]:
        """Ends a wait."""
        return self._bell.ring

    def waits(self, pools: Iterable[Pool]) -> None:
        """Notes that the worker is about to say that it waits for runs of these pools, and to look."""
        if not self._waits:
            self._bell.said.clear()  # it came after the worker had left, and another one was woken for it
        self._waits.update((p, pool) for p in self._link.space.all() for pool in pools)

    async def rung(self, most: int) -> list[Offer]:
        """The runs that it is woken for, so many at most, after a while or at once. None may have been named.

        It has to look then: it may have been woken for others, or after bells that it did not hear.
        """
        if not self._bell.said:
            await self._bell.wait(LOOK_SECONDS * (0.5 + random.random() / 2))  # noqa: S311 - jitter
        offers: list[Offer] = []
        while self._bell.said and len(offers) < most:
            offer = Offer.parse(self._bell.said.popleft())
            if offer is not None and (there := self._waits & self._places([offer])):
                offers.append(offer)
                self._waits -= there
        return offers

    def _places(self, offers: Iterable[Offer]) -> set[tuple[Partition, Pool]]:
        """Where the name of this worker was taken out for some runs."""
        space = self._link.space
        return {(p, one.pool) for one in offers if (p := space.of_id(one.run)) is not None}

    async def leave(self) -> None:
        """Says that the worker has no room. For what it was woken for in the same moment another one is woken."""
        waits, self._waits = self._waits, set()
        said = [Offer.parse(one) for one in self._bell.said]
        self._bell.said.clear()
        unheard = waits if None in said else self._places(filter(None, said))
        for p in {p for p, _ in waits | unheard}:
            late = {pool for at, pool in unheard if at == p}
            if here := [pool for at, pool in waits if at == p]:
                late.update(await self._link.fetch(wakes.wait_no_more(p, here, self._name)))
            if late:
                await self._link.run_all(wakes.ring_ready(p, list(late), 1))
