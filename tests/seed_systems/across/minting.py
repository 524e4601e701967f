"""A broker that starts: `python -m ... URL NAMESPACE`. Prints the ids it makes, from chance that is always the same."""

import asyncio
import json
import random
import sys

from broker import AsyncBroker, Interrupt
from broker.core.entries import mark_token
from broker.core.ids import new_nonce


async def main(url: str, namespace: str) -> None:
    random.seed(0)
    ids: list[str] = []
    async with AsyncBroker(url, namespace=namespace) as broker:
        for _ in range(20):
            paused = await broker.suspend("a", Interrupt.question("the same?"), session="s")
            ids += [paused.run_id, *paused.interrupt_ids, new_nonce(), mark_token("s", "r", "e")]
    sys.stdout.write(json.dumps(ids))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
