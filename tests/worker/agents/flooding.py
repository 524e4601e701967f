"""A process that asks for new work without end: `python -m tests.worker.agents.flooding URL NAMESPACE`.

It says when it is refused.
"""

import asyncio
import sys

from broker import AsyncBroker, OutOfMemory
from tests.worker.fleet import report

BYTES = 20_000
AT_ONCE = 8


async def flood(url: str, namespace: str) -> None:
    refused = 0

    async def one(lane: int) -> None:
        nonlocal refused
        n = 0
        while True:
            n += 1
            try:
                await broker.start("flood", "x" * BYTES, session=f"flood-{lane}-{n}", queue="flood")
            except OutOfMemory as full:
                refused += 1
                if refused % 100 == 1:
                    report(f"refused {full.code}")

    async with AsyncBroker(url, namespace=namespace) as broker:
        await asyncio.gather(*map(one, range(AT_ONCE)))


if __name__ == "__main__":
    asyncio.run(flood(*sys.argv[1:3]))
