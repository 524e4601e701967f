"""The broker by its front door: plain calls from concurrent coroutines, a follower that answers, a worker.

Default settings, every promise on: history, verdicts, indexes, deadlines, leases with renewal, the sweeper.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from benchmarks import workload
from benchmarks.job import Job, pump, until_over
from broker import (
    Action,
    Approve,
    AsyncBroker,
    Interrupt,
    InterruptState,
    PendingToolCall,
    Principal,
    Run,
    Worker,
)

NAMESPACE: Final = "lifecycles"
AGENT: Final = "support"
GROUP: Final = "approvals"
LOOKED_AT: Final = 20
START_SECONDS: Final = 110.0
LOOK_SECONDS: Final = 0.5
AT_ONCE: Final = 32


def prepare(url: str) -> None:
    """Makes the namespace."""

    async def main() -> None:
        async with AsyncBroker(url, namespace=NAMESPACE):
            pass

    asyncio.run(main())


def session(number: int, mark: str = "") -> str:
    """The session a lifecycle belongs to: one each."""
    return f"session-{mark}{number}"


def state(number: int) -> InterruptState:
    """The frozen agent of a lifecycle."""
    call = PendingToolCall(
        tool_call_id=workload.call_id(number),
        tool_name=workload.TOOL,
        arguments=workload.arguments(number),
    )
    return InterruptState(
        pending_tool_calls=(call,),
        context_snapshot=workload.messages(),
        system_prompt=workload.prompt(),
        model=workload.MODEL,
    )


def question(number: int) -> Interrupt:
    """What is asked: may this tool call run?"""
    action = Action(tool=workload.TOOL, arguments=workload.arguments(number))
    return Interrupt.approval(action, workload.call_id(number))


def pause(job: Job) -> None:
    """Pauses runs that no worker of the broker holds."""

    async def main() -> None:
        async with AsyncBroker(job.url, namespace=NAMESPACE, by=Principal.local("agent")) as broker:
            job.ready()

            async def begin(number: int) -> None:
                await broker.suspend(
                    AGENT, question(number), session=session(number, job.plan.mark), state=state(number)
                )

            await pump(job, begin)

    asyncio.run(main())


def approve(job: Job) -> None:
    """Follows the approvals and answers each one, bound to what was seen."""

    async def main() -> None:
        async with AsyncBroker(job.url, namespace=NAMESPACE, by=Principal.local(workload.BY)) as broker:
            job.ready()
            await until_over(job, *[_answer_all(job, broker) for _ in range(job.plan.concurrency)])

    asyncio.run(main())


async def _answer_all(job: Job, broker: AsyncBroker) -> None:
    async for delivery in broker.inbox.follow(GROUP):
        record = delivery.record
        job.answering(number_of(record.session_id))
        outcome = await broker.inbox.answer(record.id, Approve(), seen=record.digest)
        if not outcome.ok:
            raise RuntimeError(f"{record.id}: {outcome.code}")


def resume(job: Job) -> None:
    """A worker whose agent reads its state and the answer, and finishes."""

    async def agent(run: Run[Any]) -> None:
        number = number_of(run.session_id)
        answer = run.resolution(workload.call_id(number)).answer
        if not isinstance(answer, Approve) or run.state is None:
            raise TypeError("no approval, or no state")
        job.resumed(number)
        try:
            await run.finish({"refunded": True})
        finally:  # a worker that stops cancels its agents: `facts` counts what is really unfinished
            job.finished()

    asyncio.run(_serve(job, agent))


async def _serve(job: Job, agent: Callable[[Run[Any]], Awaitable[None]]) -> None:
    """So many workers as the plan says, until it is over."""
    plan = job.plan
    workers = [
        Worker(job.url, namespace=NAMESPACE, concurrency=plan.concurrency, name=f"worker-{job.place}-{n}")
        for n in range(plan.workers)
    ]
    for worker in workers:
        worker.add(AGENT, agent)
    serving = asyncio.gather(*[asyncio.create_task(worker.serve()) for worker in workers])
    if plan.workers > 1 and job.place == 0:  # one process looks: it is a large read
        await _all_there(job.url, plan.workers * plan.processes("resume"))
    job.ready()
    await until_over(job, asyncio.shield(serving))
    for worker in workers:
        worker.stop()
    await serving


async def _all_there(url: str, count: int) -> None:
    """Returns when so many workers have said that they are there."""
    async with AsyncBroker(url, namespace=NAMESPACE) as broker:
        async with asyncio.timeout(START_SECONDS):
            while len((await broker.fleet()).workers) < count:  # noqa: ASYNC110 - there is nothing to wait for
                await asyncio.sleep(LOOK_SECONDS)


def facts(url: str, count: int, mark: str = "") -> dict[str, float]:
    """How many runs are not finished, and how many entries the history has for each of the first lifecycles."""

    async def main() -> dict[str, float]:
        async with AsyncBroker(url, namespace=NAMESPACE) as broker:
            active = 0
            for first in range(0, count, AT_ONCE):
                some = range(first, min(first + AT_ONCE, count))
                marks = await asyncio.gather(*[broker.active(session(number, mark)) for number in some])
                active += sum(map(len, marks))
            looked_at = min(count, LOOKED_AT)
            entries = [len(await broker.history(session(number, mark))) for number in range(looked_at)]
            return {"unfinished": active, "history_entries": sum(entries) / looked_at}

    return asyncio.run(main())


def number_of(session_id: str) -> int:
    """The lifecycle that a session belongs to."""
    return int(session_id.rpartition("-")[2])
