"""The broker by its front door: plain calls from concurrent coroutines, a follower that answers, a worker.

Default settings, every promise on: history, verdicts, indexes, deadlines, leases with renewal, the sweeper.
"""

import asyncio
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
AT_ONCE: Final = 32


def prepare(url: str) -> None:
    """Makes the namespace."""

    async def main() -> None:
        async with AsyncBroker(url, namespace=NAMESPACE):
            pass

    asyncio.run(main())


def session(number: int) -> str:
    """The session a lifecycle belongs to: one each."""
    return f"session-{number}"


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
                await broker.suspend(AGENT, question(number), session=session(number), state=state(number))

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
        job.answering(_number(record.session_id))
        outcome = await broker.inbox.answer(record.id, Approve(), seen=record.digest)
        if not outcome.ok:
            raise RuntimeError(f"{record.id}: {outcome.code}")


def resume(job: Job) -> None:
    """A worker whose agent reads its state and the answer, and finishes."""

    async def agent(run: Run[Any]) -> None:
        number = _number(run.session_id)
        answer = run.resolution(workload.call_id(number)).answer
        if not isinstance(answer, Approve) or run.state is None:
            raise TypeError("no approval, or no state")
        job.resumed(number)
        try:
            await run.finish({"refunded": True})
        finally:  # a worker that stops cancels its agents: `facts` counts what is really unfinished
            job.finished()

    async def main() -> None:
        worker = Worker(job.url, namespace=NAMESPACE, concurrency=job.plan.concurrency)
        worker.add(AGENT, agent)
        job.ready()
        serving = asyncio.create_task(worker.serve())
        await until_over(job, asyncio.shield(serving))
        worker.stop()
        await serving

    asyncio.run(main())


def facts(url: str, count: int) -> dict[str, float]:
    """How many runs are not finished, and how many entries the history has for each of the first lifecycles."""

    async def main() -> dict[str, float]:
        async with AsyncBroker(url, namespace=NAMESPACE) as broker:
            active = 0
            for first in range(0, count, AT_ONCE):
                some = range(first, min(first + AT_ONCE, count))
                marks = await asyncio.gather(*[broker.active(session(number)) for number in some])
                active += sum(map(len, marks))
            looked_at = min(count, LOOKED_AT)
            entries = [len(await broker.history(session(number))) for number in range(looked_at)]
            return {"unfinished": active, "history_entries": sum(entries) / looked_at}

    return asyncio.run(main())


def _number(session_id: str) -> int:
    return int(session_id.removeprefix("session-"))
