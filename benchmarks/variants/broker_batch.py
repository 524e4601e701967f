"""The blocking broker in batches: pauses, answers and ends by the hundred, as the floor does by hand.

Default settings, every promise on. The approver answers whatever waits in its queue, oldest first, each answer bound to
what was seen; the process that resumes runs the sweeper beside it, as a worker would.
"""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks import workload
from benchmarks.job import Job
from broker import (
    AnswerTo,
    Approve,
    AsyncBroker,
    Broker,
    BrokerError,
    Principal,
    Suspension,
    Sweeper,
)

from .broker_calls import AGENT, NAMESPACE, facts, number_of, prepare, question, session, state

__all__ = ["approve", "facts", "pause", "prepare", "resume", "sweeping"]

QUEUE: Final = "agents"
LEASED: Final = 64
"""Runs in one lease."""
LOOK_SECONDS: Final = 0.002
"""Between two looks where there was nothing."""


def pause(job: Job) -> None:
    """Pauses a batch of runs; each has a key, so that the batch could be sent again."""
    with Broker(job.url, namespace=NAMESPACE, by=Principal.local("agent")) as broker:
        job.ready()
        for turn in job.turns():
            told = broker.batch.suspend([_suspension(number, job.plan.mark) for number in turn])
            if wrong := [one for one in told if not one.ok]:
                raise RuntimeError(f"{len(wrong)} were not paused, the first: {wrong[0]}")


def _suspension(number: int, mark: str) -> Suspension:
    return Suspension(
        agent=AGENT,
        session=session(number, mark),
        interrupts=[question(number)],
        state=state(number),
        key="lifecycle",
    )


def approve(job: Job) -> None:
    """Answers whatever waits, a page at a time."""
    with Broker(job.url, namespace=NAMESPACE, by=Principal.local(workload.BY)) as broker:
        job.ready()
        while not job.over:
            waiting = broker.inbox.list(queue=QUEUE, limit=job.plan.batch).items
            if not waiting:
                time.sleep(LOOK_SECONDS)
                continue
            for one in waiting:
                job.answering(number_of(one.session_id))
            told = broker.batch.answer([AnswerTo(one.id, Approve(), one.digest) for one in waiting])
            if wrong := [one for one in told if not one.ok]:
                raise RuntimeError(f"{len(wrong)} were not answered, the first: {wrong[0]}")


def resume(job: Job) -> None:
    """Leases runs, reads state and answer of each, and finishes them together."""
    with sweeping(job.url), Broker(job.url, namespace=NAMESPACE) as broker:
        queue = broker.queue(QUEUE)
        job.ready()
        while not job.over:
            runs = queue.lease((AGENT,), limit=LEASED)
            if not runs:
                time.sleep(LOOK_SECONDS)
                continue
            for run in runs:
                number = number_of(run.session_id)
                answer = run.resolution(workload.call_id(number)).answer
                if not isinstance(answer, Approve) or run.state is None:
                    raise TypeError("no approval, or no state")
                job.resumed(number)
            told = broker.batch.finish([(run, {"refunded": True}) for run in runs])
            for one in told:
                if isinstance(one, BrokerError):
                    raise one
            job.finished(len(runs))


@contextmanager
def sweeping(url: str) -> Iterator[None]:
    """A sweeper in a thread, while the context lasts."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    task: asyncio.Task[None] | None = None

    async def main() -> None:
        async with AsyncBroker(url, namespace=NAMESPACE) as broker:
            await Sweeper(broker).run()

    def run() -> None:
        nonlocal task
        task = loop.create_task(main())
        loop.call_soon(started.set)
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=run, name="sweeper", daemon=True)
    thread.start()
    started.wait()
    try:
        yield
    finally:
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
