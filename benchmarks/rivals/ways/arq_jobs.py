"""arq: a queue for the approver, a queue for the worker that goes on; the state by hand.

It polls: with the default of half a second every wait would be that long, so it looks every 20 ms here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from benchmarks.job import Job, pump, until_over
from benchmarks.workload import decision

from .by_hand import connect, go_on, keep
from .decisions import approved

ASKED: Final = "asked"
DECIDED: Final = "decided"
POLL_SECONDS: Final = 0.02


def prepare(url: str) -> None:
    """Nothing: a queue is a sorted set."""


def _settings(job: Job) -> Any:
    return RedisSettings.from_dsn(job.url)


def pause(job: Job) -> None:
    """Stores runs and enqueues a job for each."""

    async def main() -> None:
        client, queue = connect(job.url), await create_pool(_settings(job))
        job.ready()

        async def begin(number: int) -> None:
            await keep(client, [number])
            await queue.enqueue_job("ask", number, _job_id=f"ask-{number}", _queue_name=ASKED)

        await pump(job, begin)

    asyncio.run(main())


def approve(job: Job) -> None:
    """Works on the jobs that ask."""

    async def ask(context: dict[str, Any], number: int) -> None:
        job.answering(number)
        await context["redis"].enqueue_job(
            "decide", decision(number), _job_id=f"decide-{number}", _queue_name=DECIDED
        )

    asyncio.run(_work(job, ASKED, ask))


def resume(job: Job) -> None:
    """Works on the jobs that decide."""

    async def main() -> None:
        client = connect(job.url)

        async def decide(context: dict[str, Any], said: dict[str, Any]) -> None:  # noqa: ARG001 - arq gives it
            await go_on(job, client, [approved(said)])

        await _work(job, DECIDED, decide)

    asyncio.run(main())


async def _work(job: Job, name: str, task: Callable[..., Awaitable[None]]) -> None:
    worker = Worker(
        [func(task, name=task.__name__, keep_result=0)],
        queue_name=name,
        redis_settings=_settings(job),
        max_jobs=job.plan.concurrency,
        poll_delay=POLL_SECONDS,
        keep_result=0,
        handle_signals=False,
    )
    job.ready()
    await until_over(job, worker.async_run())
