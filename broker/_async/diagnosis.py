"""Why a run stands where it stands: reads everything that bears on it, and lets the rules of the core judge."""

from collections.abc import Sequence

from ..core.causes import Known, could_take, explain
from ..core.diagnosis import Why
from ..core.fields import from_ms
from ..core.fleet import PoolCount, WorkerInfo
from ..core.records import HistoryEntry, InterruptRecord, RunRecord
from ..errors import Corrupt, UnknownId
from ..store.commands import facts, reads
from ..store.keys import Partition, Pool
from .link import Link

LOOK_BACK = 500
LAST_EVENTS = 10


async def workers(link: Link) -> tuple[WorkerInfo, ...]:
    """The workers that say they are there; those that cannot be read are left out."""
    found = await link.fetch(reads.read_workers(link.space.partition(0)))
    now, stale, known = link.server_now(), link.settings.lease * 2, []
    for name, (at, record) in sorted(found.items()):
        try:
            known.append(WorkerInfo.read(name, at, record, now, stale))
        except Corrupt:
            continue
    return tuple(known)


async def ready(link: Link, p: Partition, pools: Sequence[Pool]) -> dict[Pool, PoolCount]:
    """How many runs of each pool are ready in a partition, and since when the next one has been."""
    tops = {top.pool: top for top in await link.fetch(facts.read_pools(p, pools))}
    rows = await link.fetch(facts.read_run_rows(p, [top.run for top in tops.values()]))
    since = {row.id: row.since for row in rows}
    return {
        pool: PoolCount(
            queue=pool.queue, agent=pool.agent, build=pool.build or None,
            ready=top.count if top else 0, since=since.get(top.run) if top else None,
        )
        for pool, top in ((pool, tops.get(pool)) for pool in pools)
    }  # fmt: skip


async def why(link: Link, p: Partition, run_id: str) -> Why:
    """Why a run stands where it stands. Raises `UnknownId`, `Corrupt` where its record cannot be read."""
    run = await link.fetch(reads.read_run(p, run_id, lenient=True))
    if run is None:
        raise UnknownId("run", run_id)
    place = await link.fetch(facts.read_place(p, run_id, Pool(run.queue, run.agent, run.build or "")))
    watchers = await link.fetch(facts.read_watchers(p))
    alive = [one for one in await workers(link) if could_take(one, run.queue, run.agent, run.build)]
    known = Known(
        run, from_ms(link.server_now() // 1000), await _interrupts(link, p, run),
        {audience: watchers.readers(audience) for audience in facts.AUDIENCES}, alive, watchers.sweeper, place.ahead,
        place.ready_at, place.kept_until, await _history(link, p, run), place.is_handed,
    )  # fmt: skip
    return explain(known)


async def _interrupts(link: Link, p: Partition, run: RunRecord) -> tuple[InterruptRecord, ...]:
    slots = await link.fetch(reads.read_slots(p, run.interrupt_ids))
    return await link.fetch(reads.read_interrupts(p, slots))


async def _history(link: Link, p: Partition, run: RunRecord) -> tuple[HistoryEntry, ...]:
    """The last events of the run, among the last of its session."""
    entries = await link.fetch(reads.read_history(p, run.session_id, -LOOK_BACK, -1))
    return tuple(entry for entry in entries if entry.run_id == run.id)[-LAST_EVENTS:]
