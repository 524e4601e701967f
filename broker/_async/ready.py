"""What workers and dispatchers take from: the ready runs of some pools, best first.

What cannot be read holds up nobody.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from ..core.ids import new_nonce
from ..store.commands import reads, runs, wakes
from ..store.commands.runs import Leased, Offer
from ..store.commands.values import Read, text
from ..store.keys import Partition, Pool
from ._runtime import monotonic, together
from .link import Link

log = logging.getLogger("broker")

AT_ONCE = 32
LOOKS = 20
LOOK_AGAIN_SECONDS = 30.0
READ_AHEAD = 4


T = TypeVar("T")


class Ready(Generic[T]):
    """Takes ready runs, over all partitions in turn. Remembers for a while which runs it could not read."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._turn = 0
        self._broken: dict[str, float] = {}

    async def accept(self, offers: Sequence[Offer], holder: str) -> list[T]:
        """Takes runs that were offered to the holder: no look is needed where they are there still."""
        taken: list[T] = []
        for p in self._link.space.all():
            here = [one for one in offers if self._link.space.of_id(one.run) == p]
            taken += await self._try(p, [one for one in here if one.run not in self._broken], holder)
        return taken

    async def take(self, pools: list[Pool], limit: int, holder: str, *, waits: bool = False) -> list[T]:
        """Up to `limit` runs; the partition that is asked first is another one each time.

        `waits` says before the look that the holder waits for more, so that it is woken for what comes after it.
        """
        partitions = self._link.space.all()
        self._turn = (self._turn + 1) % len(partitions)
        taken: list[T] = []
        for p in (*partitions[self._turn :], *partitions[: self._turn]):
            if len(taken) < limit:
                taken += await self._take(p, pools, min(limit - len(taken), AT_ONCE), holder, waits=waits)
        return taken

    async def _take(
        self, p: Partition, pools: list[Pool], limit: int, holder: str, *, waits: bool
    ) -> list[T]:
        """One read of ids, one of their records, one call; and again while all that was found is broken."""
        now = monotonic()
        self._broken = {run: at for run, at in self._broken.items() if now - at < LOOK_AGAIN_SECONDS}
        for _ in range(LOOKS):
            known = len(self._broken)
            ready = await self._look(p, pools, limit + known, holder if waits else "")
            best = [(run, pool) for run, pool in ready if run not in self._broken][:limit]
            if not best:
                return []
            records = await self._link.fetch(runs.records_of(p, [run for run, _ in best]))
            for run, _ in best:
                if run not in records:
                    self._pass_over(run, "its record cannot be read")
            wanted = [Offer(run, pool, records[run]) for run, pool in best if run in records]
            taken = await self._try(p, wanted, holder)
            if taken or len(self._broken) == known:
                return taken
        return []

    async def _look(
        self, p: Partition, pools: list[Pool], limit: int, waits: str
    ) -> tuple[tuple[str, Pool], ...]:
        """The best ready runs; in the same write, before it, that somebody waits for more."""
        asked: list[Read[Any]] = [wakes.wait_for_runs(p, pools, waits)] if waits else []
        asked.append(runs.ready_runs(p, pools, limit))
        found: list[Any] = await together([partial(self._link.fetch, read) for read in asked])
        for one in found:
            if isinstance(one, BaseException):
                raise one
        ready: tuple[tuple[str, Pool], ...] = found[-1]
        return ready

    async def _try(self, p: Partition, wanted: Sequence[Offer], holder: str) -> list[T]:
        """Takes those of the runs that are there still."""
        raise NotImplementedError

    def _pass_over(self, run: str, why: str) -> None:
        log.error("ready run %s is passed over: %s", run, why)
        self._broken[run] = monotonic()


class Leases(Ready[Leased]):
    """Takes ready runs by leasing them."""

    async def _try(self, p: Partition, wanted: Sequence[Offer], holder: str) -> list[Leased]:
        if not wanted:
            return []
        nonces = [new_nonce() for _ in wanted]
        asked = [(one.run, one.pool, text(one.fields.get("session", b""))) for one in wanted]
        command = runs.lease(p, asked, nonces=nonces, holder=holder, span=self._link.settings.lease)
        # A few runs: what each goes on from is asked for in the same write. Many: theirs come together anyway.
        some = wanted if len(wanted) <= READ_AHEAD else []
        calls: list[Any] = [partial(self._link.run_all, command)]
        calls += [partial(self._link.fetch, _resume(p, one)) for one in some]
        results, *ahead = await together(calls)
        if isinstance(results, BaseException):
            raise results
        taken: list[Leased] = []
        for n, (one, came) in enumerate(zip(wanted, results, strict=True)):
            if isinstance(came, BaseException):
                self._pass_over(one.run, str(came) or type(came).__name__)
            elif came is not None:
                read = ahead[n] if n < len(ahead) and one.is_still(came) else None
                taken.append(came if isinstance(read, BaseException) else replace(came, ahead=read))
        return taken


@dataclass(frozen=True, slots=True)
class Handed:
    """A run that is on its way to a job of another system: for the `times`-th time since its last lease."""

    partition: Partition
    offer: Offer
    nonce: str = field(repr=False)
    times: int


class Hands(Ready[Handed]):
    """Takes ready runs by handing them to jobs: nobody else does for a while, and whoever knows its id leases it."""

    def __init__(self, link: Link, again: timedelta) -> None:
        super().__init__(link)
        self._again = again

    async def _try(self, p: Partition, wanted: Sequence[Offer], holder: str) -> list[Handed]:
        if not wanted:
            return []
        nonces = [new_nonce() for _ in wanted]
        asked = [(one.run, one.pool) for one in wanted]
        command = runs.hand(p, asked, nonces=nonces, holder=holder, span=self._again)
        taken: list[Handed] = []
        for one, nonce, came in zip(wanted, nonces, await self._link.run_all(command), strict=True):
            if isinstance(came, BaseException):
                self._pass_over(one.run, str(came) or type(came).__name__)
            elif came is not None:
                taken.append(Handed(p, one, nonce, came))
        return taken

    async def take_back(self, handed: Handed, holder: str, after: timedelta) -> None:
        """Says that no job was made after all: the run is handed again after so long."""
        asked, p = [(handed.offer.run, handed.offer.pool)], handed.partition
        await self._link.run_all(runs.hand(p, asked, nonces=[handed.nonce], holder=holder, span=after))


def _resume(p: Partition, offered: Offer) -> Read[reads.Resume]:
    """What a run goes on from, if nothing has changed when it is leased."""
    ids = text(offered.fields.get("ids", b"")).split()
    return reads.read_resume(p, offered.run, ids, set(text(offered.fields.get("fresh", b"")).split()))
