"""Checkpointers that others keep, each on a real store: a thread pauses, and goes on from another connection."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from itertools import count
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph_checkpoint_aws.checkpoint.valkey import AsyncValkeySaver
from langgraph_checkpoint_plainredis import AsyncRedisSaver
from redis.asyncio import Redis

from broker import Corrupt, Respond, RunState
from broker.testing import ServerProcess

from .postgres import postgres
from .stage import Stage
from .subjects.langgraph import State, asks, said, simple
from .threads import called, config, go_on, waiting

KeptIn = Callable[[], AbstractAsyncContextManager[Any]]
"""Opens a checkpointer on the same store, at each call over another connection."""


@pytest.fixture
def sqlite(stage: Stage) -> KeptIn:
    return partial(AsyncSqliteSaver.from_conn_string, str(stage.world.folder / "kept.sqlite"))


@pytest.fixture
def valkey(own_server: ServerProcess) -> KeptIn:
    return partial(AsyncValkeySaver.from_conn_string, own_server.url)


@pytest.fixture
def redis(own_server: ServerProcess) -> KeptIn:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[Any]:
        saver = AsyncRedisSaver(url=own_server.url)
        try:
            yield saver
        finally:
            await saver.client.aclose()

    return opened


@pytest.fixture
def postgresql() -> Generator[KeptIn]:
    with postgres() as url:

        @asynccontextmanager
        async def opened() -> AsyncGenerator[Any]:
            async with AsyncPostgresSaver.from_conn_string(url) as saver:
                await saver.setup()
                yield saver

        yield opened


@pytest.mark.parametrize("store", ["sqlite", "redis", "valkey", "postgresql"])
async def test_a_thread_that_is_kept_there_goes_on(
    store: str, stage: Stage, request: pytest.FixtureRequest
) -> None:
    kept_in: KeptIn = request.getfixturevalue(store)
    async with kept_in() as saver:
        await called(stage, simple(partial(asks, "what?"), saver)).ainvoke({"results": []}, config("kept"))
    async with kept_in() as saver:
        graph = called(stage, simple(partial(asks, "what?"), saver), result=said)
        done = await go_on(stage, graph, Respond(payload={"at": [1, None]}))
    assert done.result == [{"at": [1, None]}]


@pytest.mark.report("RB16", "RB17")
async def test_a_thread_that_has_lost_a_part_is_not_gone_on_with_as_if_it_were_whole(
    stage: Stage, own_server: ServerProcess, redis: KeptIn
) -> None:
    """RB16, RB17: checkpoints that expire take a thread's keys one by one. It never ends well without its answer.

    The answer is used, or asked for again, or the run ends by name.
    """
    seen: list[str] = []
    async with Redis.from_url(own_server.url) as client, redis() as saver:
        graph = called(stage, simple(partial(asks, "what?"), saver), result=said)
        for place in count():
            await client.flushall()
            await graph.ainvoke({"results": []}, config(f"thread-{place}"))
            keys = sorted(await client.keys("*"))
            if place == len(keys):
                break
            await client.delete(keys[place])
            seen.append(await what_becomes_of(stage, graph))
    assert set(seen) == {"used", "asked again", "ended by name"}


async def what_becomes_of(stage: Stage, graph: Any) -> str:
    """What a thread makes of its answer, in a word. Nothing waits afterwards."""
    run = await waiting(stage)
    try:
        done = await go_on(stage, graph, Respond(payload="that"))
    except Corrupt:
        assert (await stage.broker.runs.get(run.id)).state is RunState.READY
        return "ended by name"
    if done.state is RunState.WAITING:
        await stage.broker.runs.withdraw(done.id, seq=done.seq)
        return "asked again"
    assert done.result == ["that"]
    return "used"


class Dies(InMemorySaver):
    """A checkpointer whose process dies between what a node has written and the checkpoint that has it."""

    dies = False

    async def aput(self, *given: Any) -> Any:
        if self.dies:
            self.dies = False
            raise OSError("gone")
        return await super().aput(*given)


async def test_a_worker_that_dies_between_writes_and_checkpoint_has_the_next_one_go_on(stage: Stage) -> None:
    """What the node has written is there and is not asked for again; the nodes after it run."""
    saver = Dies()
    graph = StateGraph(State)
    graph.add_node("first", partial(asks, "what?"))
    graph.add_node("second", lambda _: {"results": ["second"]})
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    made = called(stage, graph.compile(checkpointer=saver), result=said)
    await made.ainvoke({"results": []}, config("here"))
    run = await waiting(stage)
    await stage.answer_all(run, [Respond(payload="that")])
    saver.dies = True
    for fault in (OSError, None):
        async with stage.broker.take(run.id) as taken:
            with nullcontext() if fault is None else pytest.raises(fault):
                result = await made.resume(taken)
            await (taken.finish(result) if fault is None else taken.release())
    done = await stage.broker.runs.get(run.id)
    assert (done.state, done.result) == (RunState.FINISHED, ["that", "second"])
