"""A server at its memory limit, or without its scripts: what each call of the lists comes to there."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
import redis

from broker import Approve, AsyncBroker, Interrupt, OutOfMemory, RunState, Worker
from broker.testing import RunningServer, ServerProcess, await_until

from .calls import CALLS, NEW_WORK
from .calls_that_read import READS
from .world import ADA, QUICK, SESSION, World, approval, new_world, told

ALL = CALLS | READS


@pytest.mark.parametrize("name", CALLS)
async def test_R11_a_server_that_forgot_the_scripts_is_told_them_again(
    server: RunningServer, namespace: str, name: str
) -> None:
    """Off: `NoScript` is no reason to send the text, in `Link._many` and in `renewer.run_command`."""
    call = CALLS[name]
    async with new_world(server.url, namespace) as world:
        await call.prepare(world)
        with redis.Redis.from_url(server.url) as client:
            client.script_flush()
        assert told(await call.act(world)) == call.answers[0]


@pytest.fixture
async def full(own_server: ServerProcess) -> AsyncGenerator[tuple[World, Callable[[], object]]]:
    """A world, and what fills its server up."""
    async with new_world(own_server.url, "full") as w:
        yield w, lambda: own_server.call("CONFIG", "SET", "maxmemory", 1)


@pytest.mark.parametrize("name", ALL)
async def test_P15_R12_a_full_server_refuses_new_work_and_lets_the_rest_go_on(
    full: tuple[World, Callable[[], object]], name: str
) -> None:
    """Fails when `scripts.CREATES` is empty (nothing refused), and when a script is put into it that is not there."""
    world, fill = full
    call = ALL[name]
    await call.prepare(world)
    before = await world.sound.history(SESSION)
    fill()
    if name in NEW_WORK:
        with pytest.raises(OutOfMemory) as refused:
            await call.act(world)
        assert refused.value.code == "full"
        assert await world.sound.history(SESSION) == before
    else:
        assert told(await call.act(world)) == call.answers[0]


async def test_P15_R12_a_fleet_that_starts_on_a_full_server_works_it_off(own_server: ServerProcess) -> None:
    """Workers and approvers that come now still serve what is there."""

    async def asks(run: Any) -> Any:
        if run.seq == 0:
            return await run.suspend(approval(run.input), Interrupt(payload=run.input))
        return len(run.resolutions)

    async with AsyncBroker(own_server.url, settings=QUICK, by=ADA) as before:
        ids = [(await before.start("asks", n, session=f"s{n}")).run_id for n in range(5)]
    own_server.call("CONFIG", "SET", "maxmemory", 1)
    worker = Worker(own_server.url, settings=QUICK)
    worker.add("asks", asks)
    serving = asyncio.create_task(worker.serve())
    async with AsyncBroker(own_server.url, settings=QUICK, by=ADA) as broker:
        await await_until(lambda: all_open(broker, 10), 20)
        for one in (await broker.inbox.list()).items:
            assert told(await broker.inbox.answer(one.id, Approve())) == "accepted"
        for one_id in ids:
            found = await broker.runs.wait(one_id, 20)
            assert (found.state, found.result) == (RunState.FINISHED, 2)
    worker.stop()
    await serving


async def all_open(broker: AsyncBroker, count: int) -> bool:
    return len((await broker.inbox.list()).items) == count
