"""FastStream on Redis streams: subscribers of batches with a group, publishing by pipeline; the state by hand."""

import asyncio
from typing import Any

import redis
from faststream.redis import RedisBroker, StreamSub

from benchmarks.job import Job
from benchmarks.workload import decision

from .by_hand import connect, go_on, keep
from .decisions import approved

ASKED = "asked"
DECIDED = "decided"
GROUP = "all"
POLL_MS = 200


def prepare(url: str) -> None:
    """Makes both groups, so that nothing is published before somebody listens."""
    with redis.Redis.from_url(url) as client:
        for stream in (ASKED, DECIDED):
            client.xgroup_create(stream, GROUP, id="0", mkstream=True)


def pause(job: Job) -> None:
    """Stores a batch of runs and publishes them in one pipeline."""

    async def main() -> None:
        client, broker = connect(job.url), RedisBroker(job.url, logger=None)
        await broker.connect()
        job.ready()
        for turn in job.turns():
            await keep(client, turn)
            pipe = client.pipeline(transaction=False)
            for number in turn:
                await broker.publish({"run": number}, stream=ASKED, pipeline=pipe)
            await pipe.execute()

    asyncio.run(main())


def approve(job: Job) -> None:
    """Publishes the decisions of a batch in one pipeline."""

    async def main() -> None:
        client, broker = connect(job.url), RedisBroker(job.url, logger=None)

        @broker.subscriber(stream=_stream(job, ASKED))
        async def answer(asked: list[dict[str, Any]]) -> None:
            pipe = client.pipeline(transaction=False)
            for one in asked:
                job.answering(one["run"])
                await broker.publish(decision(one["run"]), stream=DECIDED, pipeline=pipe)
            await pipe.execute()

        await _serve(job, broker)

    asyncio.run(main())


def resume(job: Job) -> None:
    """Goes on with the runs of a batch of decisions."""

    async def main() -> None:
        client, broker = connect(job.url), RedisBroker(job.url, logger=None)

        @broker.subscriber(stream=_stream(job, DECIDED))
        async def carry_on(decided: list[dict[str, Any]]) -> None:
            await go_on(job, client, [approved(one) for one in decided])

        await _serve(job, broker)

    asyncio.run(main())


def _stream(job: Job, name: str) -> Any:
    return StreamSub(
        name,
        group=GROUP,
        consumer="me",
        batch=True,
        last_id=">",
        max_records=job.plan.batch,
        polling_interval=POLL_MS,
    )


async def _serve(job: Job, broker: Any) -> None:
    await broker.start()
    job.ready()
    await job.until_over()
    await broker.stop()
