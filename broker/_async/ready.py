"""What workers take from: the ready runs of some pools, best first. What cannot be read holds up nobody."""

import logging

from ..core.ids import new_nonce
from ..store.commands import runs
from ..store.keys import Partition, Pool
from ._runtime import monotonic
from .link import Link

log = logging.getLogger("broker")

AT_ONCE = 32
LOOKS = 20
LOOK_AGAIN_SECONDS = 30.0


class Ready:
    """Leases on ready runs, over all partitions in turn. Remembers for a while which runs it could not read."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._turn = 0
        self._broken: dict[str, float] = {}

    async def lease(self, pools: list[Pool], limit: int, holder: str) -> list[runs.Leased]:
        """Up to `limit` leases; the partition that is asked first is another one each time."""
        partitions = self._link.space.all()
        self._turn = (self._turn + 1) % len(partitions)
        taken: list[runs.Leased] = []
        for p in (*partitions[self._turn :], *partitions[: self._turn]):
            if len(taken) < limit:
                taken += await self._lease(p, pools, min(limit - len(taken), AT_ONCE), holder)
        return taken

    async def _lease(self, p: Partition, pools: list[Pool], limit: int, holder: str) -> list[runs.Leased]:
        """One read of ids, one of their sessions, one call; and again while all that was found is broken."""
        now = monotonic()
        self._broken = {run: at for run, at in self._broken.items() if now - at < LOOK_AGAIN_SECONDS}
        for _ in range(LOOKS):
            known = len(self._broken)
            ready = await self._link.fetch(runs.ready_runs(p, pools, limit + known))
            best = [(run, pool) for run, pool in ready if run not in self._broken][:limit]
            if not best:
                return []
            sessions = await self._link.fetch(runs.sessions_of(p, [run for run, _ in best]))
            wanted = [(run, pool, s) for (run, pool), s in zip(best, sessions, strict=True) if s]
            for (run, _), session in zip(best, sessions, strict=True):
                if not session:
                    self._pass_over(run, "its record cannot be read")
            taken = await self._try(p, wanted, holder)
            if taken or len(self._broken) == known:
                return taken
        return []

    async def _try(self, p: Partition, wanted: list[tuple[str, Pool, str]], holder: str) -> list[runs.Leased]:
        if not wanted:
            return []
        nonces = [new_nonce() for _ in wanted]
        results = await self._link.run_all(
            runs.lease(p, wanted, nonces=nonces, holder=holder, span=self._link.settings.lease)
        )
        for (run, _, _), one in zip(wanted, results, strict=True):
            if isinstance(one, BaseException):
                self._pass_over(run, str(one) or type(one).__name__)
        return [one for one in results if isinstance(one, runs.Leased)]

    def _pass_over(self, run: str, why: str) -> None:
        log.error("ready run %s is passed over: %s", run, why)
        self._broken[run] = monotonic()
