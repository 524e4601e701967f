# Generated from broker/_async/fleet.py by tests/tools/unasync.py (make sync): do not edit.
"""What a namespace holds at a moment: counts, ages and workers, by reads that are bounded by its queues and agents."""

from datetime import datetime

from ..core.fleet import Fleet, PoolCount
from ..store.commands import ages, reads
from ..store.keys import Partition, Pool
from .diagnosis import ready, workers
from .link import Link


def fleet(link: Link) -> Fleet:
    """What the namespace holds now; see `Broker.fleet`."""
    open_, dead = 0, 0
    pools: dict[Pool, PoolCount] = {}
    asked: list[datetime] = []
    for p in link.space.all():
        counts = link.fetch(reads.read_counts(p))
        dead += counts.dead
        open_ += link.fetch(reads.read_open(p, counts.lists))
        for pool, found in (ready(link, p, counts.pools)).items():
            pools[pool] = pools[pool].plus(found) if pool in pools else found
        opened = _oldest(link, p, counts)
        asked += [opened] if opened is not None else []
    rows = tuple(pools[pool] for pool in sorted(pools, key=str))
    return Fleet(
        namespace=link.namespace, open=open_, oldest=min(asked, default=None), dead=dead, pools=rows,
        workers=workers(link),
    )  # fmt: skip


def _oldest(link: Link, p: Partition, counts: reads.Counts) -> datetime | None:
    """When the oldest open interrupt of a partition was asked."""
    first = link.fetch(ages.read_first(p, counts.lists))
    return link.fetch(ages.read_opened(p, first)) if first else None
