"""LangGraph: one node that interrupts, resumed by a command, with a checkpointer of a module's own.

It tells nobody of an interrupt and lets two processes resume the same one: both are by hand, on two streams and a key.
With `durability="exit"` it writes the fewest checkpoints.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypedDict

import redis
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from benchmarks.job import Job, pump, until_over
from benchmarks.variants.redis_keys import ASKED, BLOCK_MS, DECIDED, GROUP, acknowledge, decided
from benchmarks.workload import TOOL, dumps, snapshot

from .by_hand import connect
from .decisions import approved

DURABILITY: Final = "exit"

Saver = AbstractAsyncContextManager[Any]


class State(TypedDict, total=False):
    """The snapshot of the workload, and what was decided."""

    run: str
    system_prompt: str
    model: str
    messages: list[dict[str, Any]]
    pending: dict[str, Any]
    decision: dict[str, Any]


def graph(saver: Any, going_on: Callable[[int], None]) -> Any:
    """The agent: a node that asks, and goes on where it is answered."""

    async def ask(state: State) -> State:
        said = interrupt(state["pending"])
        going_on(approved(said))
        return {"decision": said}

    made = StateGraph(State)
    made.add_node("ask", ask)
    made.add_edge(START, "ask")
    made.add_edge("ask", END)
    return made.compile(checkpointer=saver)


def thread(number: int) -> dict[str, Any]:
    """Which run it is."""
    return {"configurable": {"thread_id": f"run-{number}"}}


def make_groups(url: str) -> None:
    """Makes the streams that tell of questions and decisions."""
    with redis.Redis.from_url(url) as client:
        for stream in (ASKED, DECIDED):
            client.xgroup_create(stream, GROUP, id="$", mkstream=True)


def pause_with(job: Job, saver: Saver) -> None:
    """Runs each graph until it interrupts, and tells of it."""

    async def main() -> None:
        client = connect(job.url)
        async with saver as one:
            agent = graph(one, job.resumed)
            job.ready()

            async def begin(number: int) -> None:
                found = await agent.ainvoke(snapshot(number), thread(number), durability=DURABILITY)
                if "__interrupt__" not in found:
                    raise RuntimeError("it did not interrupt")
                await client.xadd(ASKED, {"run": number, "tool": TOOL})

            await pump(job, begin)

    asyncio.run(main())


def resume_with(job: Job, saver: Saver) -> None:
    """Claims each run with a key of its own and resumes its graph."""

    async def main() -> None:
        client = connect(job.url)
        async with saver as one:
            agent = graph(one, job.resumed)
            job.ready()

            async def step(entry: bytes, fields: Any) -> None:
                number = decided(fields)
                if await client.set(f"claim:{number}", "me", nx=True):
                    said = {"run": number, "action": "approve"}
                    found = await agent.ainvoke(Command(resume=said), thread(number), durability=DURABILITY)
                    if found["pending"] != snapshot(number)["pending"]:
                        raise ValueError(dumps(found["pending"]))
                pipe = client.pipeline(transaction=False)
                acknowledge(pipe, DECIDED, entry)
                await pipe.execute()
                job.finished()

            await until_over(job, _each(job, client, step))

    asyncio.run(main())


async def _each(job: Job, client: Any, step: Callable[[bytes, Any], Any]) -> None:
    free = asyncio.Semaphore(job.plan.concurrency)

    async def one(entry: bytes, fields: Any) -> None:
        try:
            await step(entry, fields)
        finally:
            free.release()

    async with asyncio.TaskGroup() as group:
        while True:
            found = await client.xreadgroup(
                GROUP, "me", {DECIDED: ">"}, count=job.plan.concurrency, block=BLOCK_MS
            )
            for entry, fields in found[0][1] if found else ():
                await free.acquire()
                group.create_task(one(entry, fields))
