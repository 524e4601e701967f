"""Checkpointers that others keep, each on a real store: a thread pauses, and goes on from another connection."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph_checkpoint_aws.checkpoint.valkey import AsyncValkeySaver
from langgraph_checkpoint_plainredis import AsyncRedisSaver

from broker import AsyncBroker, Respond
from broker.adapters.langgraph import resumable
from broker.testing import ServerProcess

from .child import AGENT
from .stage import ME, Stage
from .subjects.langgraph import asks, said, simple


def sqlite(stage: Stage, _: ServerProcess) -> AbstractAsyncContextManager[Any]:
    found: AbstractAsyncContextManager[Any] = AsyncSqliteSaver.from_conn_string(
        str(stage.world.folder / "kept.sqlite")
    )
    return found


def valkey(_: Stage, server: ServerProcess) -> AbstractAsyncContextManager[Any]:
    found: AbstractAsyncContextManager[Any] = AsyncValkeySaver.from_conn_string(server.url)
    return found


@asynccontextmanager
async def redis(_: Stage, server: ServerProcess) -> AsyncGenerator[Any]:
    saver = AsyncRedisSaver(url=server.url)
    try:
        yield saver
    finally:
        await saver.client.aclose()


@pytest.mark.parametrize("kept_in", [sqlite, redis, valkey], ids=lambda one: str(one.__name__))
async def test_a_thread_that_is_kept_there_goes_on(
    kept_in: Callable[[Stage, ServerProcess], AbstractAsyncContextManager[Any]],
    stage: Stage,
    own_server: ServerProcess,
) -> None:
    broker = partial(AsyncBroker, stage.url, namespace=stage.namespace, by=ME)
    thread = {"configurable": {"thread_id": "kept"}}
    async with kept_in(stage, own_server) as saver:
        graph = resumable(simple(partial(asks, "what?"), saver), AGENT, broker=broker)
        await graph.ainvoke({"results": []}, thread)
    (found,) = (await stage.broker.inbox.list()).items
    await stage.answer(found, Respond(payload={"at": [1, None]}))
    async with kept_in(stage, own_server) as saver, stage.broker.take(found.run_id) as run:
        graph = resumable(simple(partial(asks, "what?"), saver), AGENT, result=said)
        assert await graph.resume(run) == [{"at": [1, None]}]
        await run.finish()
