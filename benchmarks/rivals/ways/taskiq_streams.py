"""taskiq on Redis streams: a task for the approver, a task for the one who goes on; the state by hand.

It acknowledges entries and never deletes them; `maxlen` is what keeps a stream short.
"""

import asyncio
from typing import Any, Final

from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from benchmarks.job import Job, pump, until_over
from benchmarks.workload import decision

from .by_hand import CONNECTIONS, connect, go_on, keep
from .decisions import approved

MAXLEN: Final = 100_000
READ: Final = 100
BLOCK_MS: Final = 200


def prepare(url: str) -> None:
    """Nothing: each process makes the groups it needs, which begin with the first entry of a stream."""


class _Tasks:
    """Both queues, with the tasks that every process must know to send or do them."""

    def __init__(self, job: Job) -> None:
        client = connect(job.url)
        asked, decided = self.asked, self.decided = _broker(job, "asked"), _broker(job, "decided")

        @decided.task(task_name="resume")
        async def resume(said: dict[str, Any]) -> None:
            await go_on(job, client, [approved(said)])

        @asked.task(task_name="approve")
        async def approve(number: int) -> None:
            job.answering(number)
            await resume.kiq(decision(number))

        self.client, self.approve = client, approve


def _broker(job: Job, name: str) -> Any:
    return RedisStreamBroker(
        job.url,
        queue_name=name,
        consumer_name="me",
        consumer_id="0",
        xread_count=READ,
        xread_block=BLOCK_MS,
        maxlen=MAXLEN,
        max_connection_pool_size=CONNECTIONS,
    )


def pause(job: Job) -> None:
    """Stores runs and sends a task for each."""

    async def main() -> None:
        tasks = _Tasks(job)
        await tasks.asked.startup()
        job.ready()

        async def begin(number: int) -> None:
            await keep(tasks.client, [number])
            await tasks.approve.kiq(number)

        await pump(job, begin)

    asyncio.run(main())


def approve(job: Job) -> None:
    """Works on the tasks that ask."""
    tasks = _Tasks(job)
    _work(job, tasks, tasks.asked)


def resume(job: Job) -> None:
    """Works on the tasks that decide."""
    tasks = _Tasks(job)
    _work(job, tasks, tasks.decided)


def _work(job: Job, tasks: _Tasks, mine: Any) -> None:
    async def main() -> None:
        mine.is_worker_process = True
        await tasks.asked.startup()
        await tasks.decided.startup()
        most = job.plan.concurrency
        job.ready()
        await until_over(job, run_receiver_task(mine, max_async_tasks=most, max_prefetch=most))

    asyncio.run(main())
