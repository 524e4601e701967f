"""What lies in the doorbells, and whom it wakes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from broker import AsyncBroker
from broker.store.keys import Pool
from tests.waiters import Waiters


async def rung(broker: AsyncBroker, kind: str, field: bytes) -> list[str]:
    """One field of each entry of a doorbell."""
    entries: Any = await broker._link.client.xrange(broker._link.space.partition(0).key(kind))
    return [fields[field].decode() for _, fields in entries]


@contextmanager
def waiting(broker: AsyncBroker) -> Iterator[Waiters]:
    """Workers of the agent `a` that wait."""
    with closing(
        Waiters(str(broker._link.source), broker._link.space.partition(0), Pool("agents", "a"))
    ) as some:
        yield some
