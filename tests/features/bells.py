"""What lies in the doorbells."""

from typing import Any

from broker import AsyncBroker


async def rung(broker: AsyncBroker, kind: str, field: bytes) -> list[str]:
    """One field of each entry of a doorbell: `interrupts`, or `bell` of the agent `a`."""
    key = broker._link.space.partition(0).key(kind, "agents:a:" if kind == "bell" else "")
    entries: Any = await broker._link.client.xrange(key)
    return [fields[field].decode() for _, fields in entries]
