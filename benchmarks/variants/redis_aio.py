"""What most people write: asyncio redis-py by hand, a coroutine and a pipeline for each step, no batching."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import redis.asyncio

from benchmarks.job import Job, pump, until_over

from .redis_keys import (
    ASKED,
    BLOCK_MS,
    DECIDED,
    GROUP,
    acknowledge,
    asked,
    claim,
    decided,
    facts,
    forget,
    is_whole,
    prepare,
    say,
    store,
)

__all__ = ["approve", "facts", "pause", "prepare", "resume"]

Client = redis.asyncio.Redis
Step = Callable[[Client, bytes, Any], Awaitable[None]]


async def _connect(job: Job) -> Client:
    client = redis.asyncio.Redis.from_url(job.url, max_connections=4 * job.plan.concurrency)
    await client.ping()
    job.ready()
    return client


async def _each(job: Job, client: Client, stream: str, step: Step) -> None:
    """Runs a step for every entry of a stream, so many at once as the plan says."""
    free = asyncio.Semaphore(job.plan.concurrency)

    async def one(entry: bytes, fields: Any) -> None:
        try:
            await step(client, entry, fields)
        finally:
            free.release()

    async with asyncio.TaskGroup() as group:
        while True:
            found: Any = await client.xreadgroup(
                GROUP, "me", {stream: ">"}, count=job.plan.concurrency, block=BLOCK_MS
            )
            for entry, fields in found[0][1] if found else ():
                await free.acquire()
                group.create_task(one(entry, fields))


def pause(job: Job) -> None:
    """Stores runs, each in a round trip of its own."""

    async def main() -> None:
        client = await _connect(job)

        async def begin(number: int) -> None:
            pipe = client.pipeline(transaction=False)
            store(pipe, number)
            await pipe.execute()

        await pump(job, begin)
        await client.aclose()

    asyncio.run(main())


def approve(job: Job) -> None:
    """Answers each question in a round trip of its own."""

    async def step(client: Client, entry: bytes, fields: Any) -> None:
        number = asked(fields)
        job.answering(number)
        pipe = client.pipeline(transaction=False)
        say(pipe, number)
        acknowledge(pipe, ASKED, entry)
        await pipe.execute()

    _run(job, ASKED, step)


def resume(job: Job) -> None:
    """Claims and loads each run in one round trip, removes it in another."""

    async def step(client: Client, entry: bytes, fields: Any) -> None:
        number = decided(fields)
        pipe = client.pipeline(transaction=False)
        claim(pipe, number, "me")
        won, state = await pipe.execute()
        whole = is_whole(won, state, number)
        pipe = client.pipeline(transaction=False)
        if whole:
            job.resumed(number)
            forget(pipe, number)
        acknowledge(pipe, DECIDED, entry)
        await pipe.execute()
        job.finished(int(whole))

    _run(job, DECIDED, step)


def _run(job: Job, stream: str, step: Step) -> None:
    async def main() -> None:
        client = await _connect(job)
        await until_over(job, _each(job, client, stream, step))
        await client.aclose()

    asyncio.run(main())
