"""Workers that wait for runs: they say so, and are woken."""

from collections.abc import Sequence
from typing import Any, Final

from ..keys import Partition, Pool
from .values import Command, Item, Read, usable

# The command by itself is refused at the memory limit, where runs go on.
_WAIT: Final = """#!lua flags=allow-oom
for _, idle in ipairs(KEYS) do redis.call('SADD', idle, ARGV[1]) end
"""


def wait_for_runs(p: Partition, pools: Sequence[Pool], worker: str) -> Read[None]:
    """Says that a worker waits for runs of these pools, also on a server at its memory limit. Safe to repeat."""
    keys = [p.key("idle", pool) for pool in pools]

    def decode(replies: list[Any]) -> None:
        usable(replies[0], keys[0])

    return Read((("EVAL", _WAIT, len(keys), *keys, worker),), decode, forgiving=True)


def wait_no_more(p: Partition, pools: Sequence[Pool], worker: str) -> Read[tuple[Pool, ...]]:
    """Takes that back; the pools for which the worker is woken, or was. Safe to repeat."""
    commands = tuple(("SREM", p.key("idle", pool), worker) for pool in pools)

    def decode(replies: list[Any]) -> tuple[Pool, ...]:
        return tuple(pool for pool, found in zip(pools, replies, strict=True) if found == 0)

    return Read(commands, decode, forgiving=True)


def ring_ready(p: Partition, pools: Sequence[Pool], most: int, *, everybody: bool = False) -> Command[int]:
    """Wakes workers of pools that have ready runs; for how many runs of each.

    With `everybody`, where too few are known to wait, all workers of the queue are.
    """
    items = tuple(
        Item((p.key("ready", pool), p.key("idle", pool)), (str(pool), most, int(everybody))) for pool in pools
    )
    return Command("ring_ready", p, items, lambda _, reply: int(reply[1]))
