"""DBOS on PostgreSQL: a queue of workflows for the approver, another for the worker that goes on.

A workflow that waits in `recv` resumes in the process where it waits; to go on in another process, as here, it takes
two workflows, and the state travels as an argument. Queues are polled: once a second by default, every 50 ms here.
"""

import asyncio
import time
from typing import Any, Final

from dbos import DBOS, DBOSClient, SetWorkflowID

from benchmarks.job import Job, pump
from benchmarks.workload import decision, snapshot

from .decisions import approved

APPLICATION: Final = "lifecycles"
VERSION: Final = "1"
ASKED: Final = "asked"
DECIDED: Final = "decided"
POLL_SECONDS: Final = 0.05
AT_ONCE: Final = 64
POOL: Final = 20
LOOK_SECONDS: Final = 0.02


class _Part:
    """The job of this process, which its workflows note things with."""

    job: Job


@DBOS.workflow(name="ask")
async def ask(number: int, state: dict[str, Any]) -> None:
    """Answers a question."""
    _Part.job.answering(number)
    with SetWorkflowID(f"decide-{number}"):
        await DBOS.enqueue_workflow_async(DECIDED, decide, decision(number), state)


@DBOS.workflow(name="decide")
async def decide(said: dict[str, Any], state: dict[str, Any]) -> None:
    """Goes on with a run."""
    number = approved(said)
    if state["pending"]["arguments"]["order_id"] != f"ord-{number:08d}":
        raise ValueError(number)
    _Part.job.resumed(number)
    _Part.job.finished()


def _launch(url: str, who: str) -> None:
    DBOS(
        config={
            "name": APPLICATION,
            "system_database_url": url,
            "application_version": VERSION,
            "executor_id": who,
            "log_level": "ERROR",
            "console_log_level": "ERROR",
            "sys_db_pool_size": POOL,
        }
    )


def prepare(url: str) -> None:
    """Makes the tables and the queues."""
    _launch(url, "prepare")
    DBOS.launch()
    for name in (ASKED, DECIDED):
        DBOS.register_queue(name, worker_concurrency=AT_ONCE, polling_interval_sec=POLL_SECONDS)
    DBOS.destroy()


def pause(job: Job) -> None:
    """Enqueues workflows that ask."""

    async def main() -> None:
        client = DBOSClient(system_database_url=job.url)
        job.ready()

        async def begin(number: int) -> None:
            options = {
                "queue_name": ASKED,
                "workflow_name": "ask",
                "workflow_id": f"ask-{number}",
                "app_version": VERSION,
                "application_name": APPLICATION,
            }
            await client.enqueue_async(options, number, snapshot(number))

        await pump(job, begin)

    asyncio.run(main())


def approve(job: Job) -> None:
    """Works on the queue that asks."""
    _work(job, ASKED)


def resume(job: Job) -> None:
    """Works on the queue that decides."""
    _work(job, DECIDED)


def _work(job: Job, queue: str) -> None:
    _Part.job = job
    _launch(job.url, queue)
    DBOS.listen_queues([queue])
    DBOS.launch()
    job.ready()
    while not job.over:
        time.sleep(LOOK_SECONDS)
