"""Checkpointers that others keep, each on a real store: a thread pauses, and goes on from another connection."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph_checkpoint_aws.checkpoint.valkey import AsyncValkeySaver
from langgraph_checkpoint_plainredis import AsyncRedisSaver

from broker import AsyncBroker, Respond
from broker.adapters.langgraph import resumable
from broker.testing import ServerProcess

from .child import AGENT
from .postgres import postgres
from .stage import ME, Stage
from .subjects.langgraph import asks, said, simple

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
    broker = partial(AsyncBroker, stage.url, namespace=stage.namespace, by=ME)
    thread = {"configurable": {"thread_id": "kept"}}
    async with kept_in() as saver:
        graph = resumable(simple(partial(asks, "what?"), saver), AGENT, broker=broker)
        await graph.ainvoke({"results": []}, thread)
    (found,) = (await stage.broker.inbox.list()).items
    await stage.answer(found, Respond(payload={"at": [1, None]}))
    async with kept_in() as saver, stage.broker.take(found.run_id) as run:
        graph = resumable(simple(partial(asks, "what?"), saver), AGENT, result=said)
        assert await graph.resume(run) == [{"at": [1, None]}]
        await run.finish()
