"""A check of a whole namespace, a bounded part at a time: every list is walked, every record held against the rules."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from ..core import findings
from ..core.causes import SWEEPER_REMEDY
from ..core.diagnosis import Checked, Finding, Trouble
from ..core.fields import from_ms
from ..core.findings import Yardstick
from ..core.states import RunState, Settlement
from ..errors import InvalidInput
from ..store.commands import facts, reads
from ..store.commands.facts import RunRow
from ..store.commands.values import micros
from ..store.keys import Partition
from .diagnosis import workers
from .link import Link
from .listing import open_page

STAGES: Final = ("lists", "open", "dead", "sessions")
AT_ONCE: Final = 100
MOST_CHECKED: Final = 1_000_000


@dataclass(slots=True)
class Walk:
    """Where a check is: partition, stage, place in it; and what it has found so far."""

    partition: int = 0
    stage: int = 0
    place: int | None = None
    looked: int = 0
    found: list[Finding] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, cursor: str | None, partitions: int) -> "Walk":
        """The place a cursor names. Raises `InvalidInput` for one that is none of ours."""
        if cursor is None:
            return cls()
        parts = cursor.split(".")
        if len(parts) == 3 and all(part.isdecimal() and len(part) < 17 for part in parts):  # noqa: PLR2004
            partition, stage, place = map(int, parts)
            if partition < partitions and stage < len(STAGES):
                return cls(partition, stage, place or None)
        raise InvalidInput("cursor", "is none that a check gave", "the cursor of an earlier check, or none")

    @property
    def cursor(self) -> str:
        """Where to go on."""
        return f"{self.partition}.{self.stage}.{self.place or 0}"

    def next_stage(self) -> None:
        """On to the next list, or the next partition."""
        self.place = None
        self.stage = (self.stage + 1) % len(STAGES)
        self.partition += self.stage == 0


class Check:
    """One call of `check`: walks on from a cursor until the end, or until it has looked at enough."""

    def __init__(self, link: Link, walk: Walk, within: timedelta | None) -> None:
        self._link = link
        self._walk = walk
        self._within = within or link.settings.lease * 2

    async def run(self, limit: int) -> Checked:
        """What was found; after `limit` records it ends at the next page and gives a cursor."""
        walk, space = self._walk, self._link.space
        now = from_ms(self._link.server_now() // 1000)
        alive = await workers(self._link)
        while walk.partition < space.count and walk.looked < limit:
            p = space.partition(walk.partition)
            watchers = await self._link.fetch(facts.read_watchers(p))
            readers = {audience: watchers.readers(audience) for audience in facts.AUDIENCES}
            by = Yardstick(now, self._within, readers, watchers.sweeper, alive)
            match STAGES[walk.stage]:
                case "lists":
                    await self._lists(p, by)
                case "open":
                    await self._open(p, by)
                case "dead":
                    await self._dead(p)
                case _:
                    await self._sessions(p)
        cursor = walk.cursor if walk.partition < space.count else None
        return Checked(
            namespace=self._link.namespace, at=now, findings=tuple(walk.found), dead=tuple(walk.dead),
            looked_at=walk.looked, cursor=cursor,
        )  # fmt: skip

    async def _lists(self, p: Partition, by: Yardstick) -> None:
        """Timers that should have fired, ready runs that nobody takes, and whether anybody sweeps."""
        before = self._link.server_now() - micros(self._within)
        late = await self._rows(p, await self._link.fetch(facts.read_late(p, before, AT_ONCE)))
        self._walk.found += [findings.of_late_run(row.id, row.state) for row in late if by.is_late(row.due)]
        counts = await self._link.fetch(reads.read_counts(p))
        tops = await self._link.fetch(facts.read_pools(p, counts.pools))
        best = {row.id: row for row in await self._rows(p, [top.run for top in tops])}
        for top in tops:
            pool, row = top.pool, best.get(top.run)
            since = row.since if row else None
            self._walk.found += findings.of_pool(
                by, pool.queue, pool.agent, pool.build, top.count, top.run, since
            )
        if by.sweeper is None and await self._link.fetch(facts.read_has_timers(p)):
            text = "No process sweeps: deadlines, lost leases, back-offs and lost bells wait until one does."
            self._walk.found.append(Finding(trouble=Trouble.NO_SWEEPER, text=text, remedy=SWEEPER_REMEDY))
        self._walk.looked += len(tops) + len(late)
        self._walk.next_stage()

    async def _open(self, p: Partition, by: Yardstick) -> None:
        """A page of open interrupts."""
        rows = self._seen(await open_page(self._link, p, lambda _: True, self._walk.place, AT_ONCE))
        slots = [(row.id, "") for row in rows]
        records = {one.id: one for one in await self._link.fetch(reads.read_interrupts(p, slots))}
        found = await self._rows(p, list(dict.fromkeys(one.run_id for one in records.values())))
        states = {row.id: row for row in found}
        for row in rows:
            record = records.get(row.id)
            if record is None:
                text = f"{row.id} is listed as open, and its record is gone."
                self._walk.found.append(Finding(trouble=Trouble.UNREADABLE, text=text, interrupt_id=row.id,
                                                remedy="Please report this."))  # fmt: skip
            elif record.state is Settlement.OPEN:
                run = states.get(record.run_id)
                if run is None or run.problem is None:
                    self._walk.found += findings.of_interrupt(by, record, run.state if run else None)

    async def _dead(self, p: Partition) -> None:
        """A page of dead letters."""
        rows = self._seen(await self._link.fetch(reads.page(p, "dead", self._walk.place, AT_ONCE)))
        runs = await self._rows(p, [row.id for row in rows])
        self._walk.dead += [row.id for row in runs if row.state is RunState.DEAD]

    def _seen(self, rows: Sequence[reads.Row]) -> Sequence[reads.Row]:
        """The rows of a page, after which the next one begins."""
        walk = self._walk
        walk.looked += len(rows)
        if rows:
            walk.place = rows[-1].place
        else:
            walk.next_stage()
        return rows

    async def _sessions(self, p: Partition) -> None:
        """A page of sessions that have a history: the runs that their active marks name."""
        walk = self._walk
        count, sessions = await self._link.fetch(facts.read_sessions(p, walk.place or 0, AT_ONCE))
        marks = await self._link.fetch(facts.read_marks(p, sessions))
        rows = await self._rows(p, [run for marked in marks.values() for run in marked])
        ids = [one for row in rows for one in row.ids]
        settled = await self._link.fetch(facts.read_states(p, ids))
        for row in rows:
            left = sum(settled[one] == Settlement.OPEN for one in row.ids)
            session = row.session or next(name for name, marked in marks.items() if row.id in marked)
            walk.found += findings.of_marked(
                row.id, session, row.state, row.mode, left, is_timed=row.is_timed
            )
        walk.looked += len(sessions) + len(rows)
        walk.place = (walk.place or 0) + count
        if count < AT_ONCE:
            walk.next_stage()

    async def _rows(self, p: Partition, runs: Sequence[str]) -> Sequence[RunRow]:
        """Some runs, those that can be read; the others are findings."""
        rows = await self._link.fetch(facts.read_run_rows(p, runs))
        told = {one.run_id for one in self._walk.found if one.trouble is Trouble.UNREADABLE}
        for row in rows:
            if row.problem is not None and row.id not in told:
                self._walk.found.append(Finding(trouble=Trouble.UNREADABLE, text=row.problem, run_id=row.id,
                                                remedy="Repair or delete the key by hand."))  # fmt: skip
        return [row for row in rows if row.problem is None]
