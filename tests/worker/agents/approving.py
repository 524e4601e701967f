"""A reader of a group in a process of its own: `python -m tests.worker.agents.approving URL NAMESPACE OPTIONS`.

It answers what it is handed, or, with `holds`, keeps the first one in its hands for ever.
"""

import asyncio
import json
import os
import sys
from datetime import timedelta

from broker import Approve, AsyncBroker, Principal
from tests.worker.fleet import QUICK, report


async def main() -> None:
    url, namespace, given = sys.argv[1:]
    options = json.loads(given)
    me = Principal.local(f"reader-{os.getpid()}")
    async with AsyncBroker(url, namespace=namespace, settings=QUICK, by=me) as broker:
        deliveries = broker.inbox.follow(options["group"], claim_after=timedelta(seconds=0.5), batch=4)
        async for delivery in deliveries:
            report(f"has {delivery.record.id}")
            if options.get("holds"):
                await asyncio.Event().wait()
            await broker.inbox.answer(delivery.record.id, Approve(), seen=delivery.record.digest)


if __name__ == "__main__":
    asyncio.run(main())
