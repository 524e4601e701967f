"""What a namespace holds at a moment: counts, ages and workers, by reads that are bounded by its queues and agents."""

from datetime import datetime

from ..core.fleet import Fleet, PoolCount, WorkerInfo
from ..store.commands import ages, reads
from ..store.keys import Partition, Pool
from .link import Link


async def fleet(link: Link) -> Fleet:
    """What the namespace holds now; see `AsyncBroker.fleet`."""
    open_, dead = 0, 0
    pools: dict[Pool, int] = {}
    asked: list[datetime] = []
    ready: dict[Pool, datetime] = {}
    for p in link.space.all():
        counts = await link.fetch(reads.read_counts(p))
        dead += counts.dead
        open_ += await link.fetch(reads.read_open(p, counts.lists))
        for pool, count in zip(
            counts.pools, await link.fetch(reads.read_ready(p, counts.pools)), strict=True
        ):
            pools[pool] = pools.get(pool, 0) + count
        opened, since = await _oldest(link, p, counts)
        asked += [opened] if opened is not None else []
        for pool, at in since.items():
            ready[pool] = min(at, ready.get(pool, at))
    rows = tuple(
        PoolCount(
            queue=pool.queue, agent=pool.agent, build=pool.build or None, ready=count, since=ready.get(pool)
        )
        for pool, count in sorted(pools.items(), key=str)
    )
    return Fleet(
        namespace=link.namespace, open=open_, oldest=min(asked, default=None), dead=dead, pools=rows,
        workers=await _workers(link),
    )  # fmt: skip


async def _oldest(
    link: Link, p: Partition, counts: reads.Counts
) -> tuple[datetime | None, dict[Pool, datetime]]:
    """When the oldest open interrupt of a partition was asked, and since when the first run of each pool is ready."""
    heads = await link.fetch(ages.read_heads(p, counts.lists, counts.pools))
    opened = await link.fetch(ages.read_opened(p, heads.interrupt)) if heads.interrupt else None
    first = [(pool, run) for pool, run in zip(counts.pools, heads.runs, strict=True) if run]
    since: dict[Pool, datetime] = {}
    for (pool, _), found in zip(
        first, await link.fetch(ages.read_since(p, [run for _, run in first])), strict=True
    ):
        settled = await link.fetch(ages.read_last_settled(p, found.interrupts)) if found.interrupts else None
        at = settled or found.at
        if at is not None:
            since[pool] = at
    return opened, since


async def _workers(link: Link) -> tuple[WorkerInfo, ...]:
    found = await link.fetch(reads.read_workers(link.space.partition(0)))
    now, stale = link.server_now(), link.settings.lease * 2
    return tuple(
        WorkerInfo.read(name, at, record, now, stale) for name, (at, record) in sorted(found.items())
    )
