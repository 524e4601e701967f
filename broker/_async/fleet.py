"""What a namespace holds at a moment: counts, ages and workers, by reads that are bounded by its queues and agents."""

from datetime import datetime

from ..core.fleet import Fleet, PoolCount
from ..store.commands import ages, reads
from ..store.keys import Partition, Pool
from .diagnosis import ready, workers
from .link import Link


async def fleet(link: Link) -> Fleet:
    """What the namespace holds now; see `AsyncBroker.fleet`."""
    open_, dead = 0, 0
    pools: dict[Pool, PoolCount] = {}
    asked: list[datetime] = []
    for p in link.space.all():
        counts = await link.fetch(reads.read_counts(p))
        dead += counts.dead
        open_ += await link.fetch(reads.read_open(p, counts.lists))
        for pool, found in (await ready(link, p, counts.pools)).items():
            pools[pool] = pools[pool].plus(found) if pool in pools else found
        opened = await _oldest(link, p, counts)
        asked += [opened] if opened is not None else []
    rows = tuple(pools[pool] for pool in sorted(pools, key=str))
    return Fleet(
        namespace=link.namespace, open=open_, oldest=min(asked, default=None), dead=dead, pools=rows,
        workers=await workers(link),
    )  # fmt: skip


async def _oldest(link: Link, p: Partition, counts: reads.Counts) -> datetime | None:
    """When the oldest open interrupt of a partition was asked."""
    first = await link.fetch(ages.read_first(p, counts.lists))
    return await link.fetch(ages.read_opened(p, first)) if first else None
