"""Graphs of LangGraph that are called in the test's own process, and go on in its hands as in a worker's."""

from functools import partial
from typing import Any

from broker import Answer, AsyncBroker, RunRecord
from broker.adapters.langgraph import resumable

from .child import AGENT
from .stage import ME, Stage


def config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def called(stage: Stage, graph: Any, **options: Any) -> Any:
    """The graph, parked where the stage is."""
    broker = partial(AsyncBroker, stage.url, namespace=stage.namespace, by=ME)
    return resumable(graph, AGENT, broker=broker, **options)


async def waiting(stage: Stage) -> RunRecord:
    """The run behind all that is asked: there is one."""
    (run_id,) = {one.run_id for one in (await stage.broker.inbox.list()).items}
    return await stage.broker.runs.get(run_id)


async def payloads(stage: Stage) -> list[Any]:
    """What is asked now, in its order."""
    return [one.interrupt.payload for one in await stage.asked(await waiting(stage))]


async def go_on(stage: Stage, graph: Any, *answers: Answer) -> RunRecord:
    """The waiting run, answered and taken once: it has ended, or waits for the next answers."""
    run = await waiting(stage)
    await stage.answer_all(run, answers)
    async with stage.broker.take(run.id) as taken:
        await taken.finish(await graph.resume(taken))
    return await stage.broker.runs.get(run.id)
