"""What the user of a queue writes beside it: where the paused state lies, and who may go on with it."""

from collections.abc import Sequence
from typing import Any

import redis.asyncio

from benchmarks.job import Job
from benchmarks.variants.redis_keys import claim, forget, is_whole, run_key
from benchmarks.workload import dumps, snapshot

CONNECTIONS = 64


def connect(url: str) -> Any:
    """A client that waits for a free connection: with a pool that refuses, a busy queue loses tasks."""
    pool = redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=CONNECTIONS, timeout=60)
    return redis.asyncio.Redis(connection_pool=pool)


async def keep(client: Any, numbers: Sequence[int]) -> None:
    """Stores the states of runs in one round trip."""
    pipe = client.pipeline(transaction=False)
    for number in numbers:
        pipe.hset(run_key(number), mapping={"state": dumps(snapshot(number)), "is": "waiting"})
    await pipe.execute()


async def go_on(job: Job, client: Any, numbers: Sequence[int]) -> None:
    """Claims and loads runs in one round trip, goes on with those that were won, and removes them in another."""
    pipe = client.pipeline(transaction=False)
    for number in numbers:
        claim(pipe, number, "me")
    found = await pipe.execute()
    pipe, done = client.pipeline(transaction=False), 0
    for number, won, state in zip(numbers, found[::2], found[1::2], strict=True):
        if is_whole(won, state, number):
            job.resumed(number)
            forget(pipe, number)
            done += 1
    await pipe.execute()
    job.finished(done)
