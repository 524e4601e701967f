"""NATS JetStream: a work queue for each step, the state in a key-value bucket, claimed by its revision."""

import asyncio
import json
from typing import Any, Final

import nats
import nats.errors
from nats.js.api import KeyValueConfig, RetentionPolicy, StreamConfig
from nats.js.errors import KeyWrongLastSequenceError

from benchmarks.job import Job, pump
from benchmarks.workload import decision, dumps, snapshot

ASKED: Final = "asked"
DECIDED: Final = "decided"
RUNS: Final = "runs"
UNACKNOWLEDGED: Final = 4096
WAIT_SECONDS: Final = 0.2


async def _connect(url: str) -> tuple[Any, Any]:
    connection = await nats.connect(url)
    return connection, connection.jetstream(publish_async_max_pending=UNACKNOWLEDGED)


def prepare(url: str) -> None:
    """Makes the streams and the bucket."""

    async def main() -> None:
        connection, stream = await _connect(url)
        for name in (ASKED, DECIDED):
            await stream.add_stream(
                StreamConfig(name=name, subjects=[name], retention=RetentionPolicy.WORK_QUEUE)
            )
        await stream.create_key_value(KeyValueConfig(bucket=RUNS, history=1))
        await connection.close()

    asyncio.run(main())


def _key(number: int) -> str:
    return f"run.{number}"


def pause(job: Job) -> None:
    """Stores runs and publishes each."""

    async def main() -> None:
        connection, stream = await _connect(job.url)
        runs = await stream.key_value(RUNS)
        job.ready()

        async def begin(number: int) -> None:
            await runs.put(_key(number), dumps(snapshot(number)).encode())
            await stream.publish(ASKED, str(number).encode())

        await pump(job, begin)
        await connection.close()

    asyncio.run(main())


def approve(job: Job) -> None:
    """Publishes a decision for each question."""

    async def main() -> None:
        connection, stream = await _connect(job.url)
        asked = await stream.pull_subscribe(ASKED, ASKED, stream=ASKED)
        job.ready()

        async def answer(message: Any) -> None:
            number = int(message.data)
            job.answering(number)
            await stream.publish(DECIDED, dumps(decision(number)).encode())
            await message.ack()

        while not job.over:
            await asyncio.gather(*map(answer, await _fetch(job, asked)))
        await connection.close()

    asyncio.run(main())


def resume(job: Job) -> None:
    """Reads each run, claims it by its revision, and removes it."""

    async def main() -> None:
        connection, stream = await _connect(job.url)
        runs = await stream.key_value(RUNS)
        decided = await stream.pull_subscribe(DECIDED, DECIDED, stream=DECIDED)
        job.ready()

        async def go_on(message: Any) -> None:
            said = json.loads(message.data)
            number = int(said["run"])
            found = await runs.get(_key(number))
            if json.loads(found.value)["pending"]["arguments"]["order_id"] != f"ord-{number:08d}":
                raise ValueError(number)
            try:
                await runs.update(_key(number), b"claimed", found.revision)
            except KeyWrongLastSequenceError:
                return  # somebody else goes on with it
            job.resumed(number)
            await runs.delete(_key(number))
            await message.ack()
            job.finished()

        while not job.over:
            await asyncio.gather(*map(go_on, await _fetch(job, decided)))
        await connection.close()

    asyncio.run(main())


async def _fetch(job: Job, subscription: Any) -> list[Any]:
    try:
        return list(await subscription.fetch(job.plan.batch, timeout=WAIT_SECONDS))
    except (nats.errors.TimeoutError, TimeoutError):
        return []
