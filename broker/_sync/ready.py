# Generated from broker/_async/ready.py by tests/tools/unasync.py (make sync): do not edit.
"""What workers take from: the ready runs of some pools, best first. What cannot be read holds up nobody."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ..core.ids import new_nonce
from ..store.commands import reads, runs
from ..store.commands.values import Read, brief, text
from ..store.keys import Partition, Pool
from ._runtime import monotonic, together
from .link import Link

log = logging.getLogger("broker")

AT_ONCE = 32
LOOKS = 20
LOOK_AGAIN_SECONDS = 30.0
READ_AHEAD = 4


class _Wanted(NamedTuple):
    """A ready run, as it was a moment ago."""

    run: str
    pool: Pool
    fields: dict[str, bytes]

    def __repr__(self) -> str:
        return brief(self)

    def is_still(self, leased: runs.Leased) -> bool:
        """Whether it was leased at the pause that it was looked at, with the answers it had then."""
        before, now = self.fields, leased.fields
        return before.get("seq") == now.get("seq") and before.get("fresh", b"") == now.get("shown", b"")

    def resume(self, p: Partition) -> Read[reads.Resume]:
        """What it goes on from, if nothing has changed when it is leased."""
        ids = text(self.fields.get("ids", b"")).split()
        return reads.read_resume(p, self.run, ids, set(text(self.fields.get("fresh", b"")).split()))


class Ready:
    """Leases on ready runs, over all partitions in turn. Remembers for a while which runs it could not read."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._turn = 0
        self._broken: dict[str, float] = {}

    def lease(
        self, pools: list[Pool], limit: int, holder: str, hints: Sequence[str] = ()
    ) -> list[runs.Leased]:
        """Up to `limit` leases; the partition that is asked first is another one each time.

        `hints` are runs that bells have named: they save a look where they are the best.
        """
        partitions = self._link.space.all()
        self._turn = (self._turn + 1) % len(partitions)
        taken: list[runs.Leased] = []
        for p in (*partitions[self._turn :], *partitions[: self._turn]):
            if len(taken) < limit:
                named = [run for run in hints if self._link.space.of_id(run) == p]
                taken += self._lease(p, pools, min(limit - len(taken), AT_ONCE), holder, named)
        return taken

    def _lease(
        self, p: Partition, pools: list[Pool], limit: int, holder: str, named: list[str]
    ) -> list[runs.Leased]:
        """One read of ids, one of their records, one call; and again while all that was found is broken."""
        now = monotonic()
        self._broken = {run: at for run, at in self._broken.items() if now - at < LOOK_AGAIN_SECONDS}
        for _ in range(LOOKS):
            known = len(self._broken)
            ready, records = self._look(p, pools, limit + known, named)
            best = [(run, pool) for run, pool in ready if run not in self._broken][:limit]
            if not best:
                return []
            if missing := [run for run, _ in best if run not in records]:
                records |= self._link.fetch(runs.records_of(p, missing))
            wanted = [_Wanted(run, pool, records[run]) for run, pool in best if run in records]
            for run, _ in best:
                if run not in records:
                    self._pass_over(run, "its record cannot be read")
            taken = self._try(p, wanted, holder)
            if taken or len(self._broken) == known:
                return taken
        return []

    def _look(
        self, p: Partition, pools: list[Pool], limit: int, named: list[str]
    ) -> tuple[tuple[tuple[str, Pool], ...], dict[str, dict[str, bytes]]]:
        asked: list[Any] = [runs.ready_runs(p, pools, limit), runs.records_of(p, named)]
        found: list[Any] = []
        for one in together([partial(self._link.fetch, read) for read in asked]):
            if isinstance(one, BaseException):
                raise one
            found.append(one)
        return found[0], found[1]

    def _try(self, p: Partition, wanted: list[_Wanted], holder: str) -> list[runs.Leased]:
        if not wanted:
            return []
        nonces = [new_nonce() for _ in wanted]
        asked = [(one.run, one.pool, text(one.fields.get("session", b""))) for one in wanted]
        command = runs.lease(p, asked, nonces=nonces, holder=holder, span=self._link.settings.lease)
        # A few runs: what each goes on from is asked for in the same write. Many: theirs come together anyway.
        some = wanted if len(wanted) <= READ_AHEAD else []
        calls: list[Any] = [partial(self._link.run_all, command)]
        calls += [partial(self._link.fetch, one.resume(p)) for one in some]
        results, *ahead = together(calls)
        if isinstance(results, BaseException):
            raise results
        taken: list[runs.Leased] = []
        for n, (one, came) in enumerate(zip(wanted, results, strict=True)):
            if isinstance(came, BaseException):
                self._pass_over(one.run, str(came) or type(came).__name__)
            elif came is not None:
                read = ahead[n] if n < len(ahead) and one.is_still(came) else None
                taken.append(came if isinstance(read, BaseException) else replace(came, ahead=read))
        return taken

    def _pass_over(self, run: str, why: str) -> None:
        log.error("ready run %s is passed over: %s", run, why)
        self._broken[run] = monotonic()
