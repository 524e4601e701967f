"""pydocket: one docket for the approver, one for the worker that goes on; the state by hand.

At a concurrency of 256 its own pool runs out of connections and its worker fails; at 64 it is exact. With the
default check interval of 250 ms its slots bound it to some 250 tasks a second.
"""

import asyncio
from datetime import timedelta
from typing import Any, Final

from docket import Docket, Worker

from benchmarks.job import Job, until_over
from benchmarks.workload import decision

from .by_hand import connect, go_on, keep
from .decisions import approved

CHECK: Final = timedelta(milliseconds=10)


def prepare(url: str) -> None:
    """Nothing: a worker makes what it needs."""


async def ask(number: int) -> None:
    """The task that asks, by name: the approver registers what does it."""
    raise NotImplementedError


async def decide(said: dict[str, Any]) -> None:
    """The task that goes on, by name."""
    raise NotImplementedError


def _docket(job: Job, name: str) -> Any:
    return Docket(name=name, url=job.url, execution_ttl=timedelta(0))


def pause(job: Job) -> None:
    """Stores a batch of runs and adds their tasks in pipelines."""

    async def main() -> None:
        client = connect(job.url)
        async with _docket(job, "asked") as asked:
            asked.register(ask)
            job.ready()
            for turn in job.turns():
                await keep(client, turn)
                if len(turn) == 1:
                    await asked.add(ask, key=f"ask-{turn.start}")(turn.start)
                else:
                    await asked.add_many([asked.call(ask, key=f"ask-{number}")(number) for number in turn])

    asyncio.run(main())


def approve(job: Job) -> None:
    """A worker whose task adds another to the second docket."""

    async def main() -> None:
        async with _docket(job, "asked") as asked, _docket(job, "decided") as decided:
            decided.register(decide)

            async def ask(number: int) -> None:
                job.answering(number)
                await decided.add(decide, key=f"decide-{number}")(decision(number))

            asked.register(ask)
            await _work(job, asked)

    asyncio.run(main())


def resume(job: Job) -> None:
    """A worker whose task goes on."""

    async def main() -> None:
        client = connect(job.url)
        async with _docket(job, "decided") as decided:

            async def decide(said: dict[str, Any]) -> None:
                await go_on(job, client, [approved(said)])

            decided.register(decide)
            await _work(job, decided)

    asyncio.run(main())


async def _work(job: Job, docket: Any) -> None:
    async with Worker(
        docket, name="me", concurrency=job.plan.concurrency, minimum_check_interval=CHECK
    ) as worker:
        job.ready()
        await until_over(job, worker.run_forever())
