"""The test that shows what `fsynced` is worth: while the server's fsync is held, nobody is told anything."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
import redis

from broker import (
    Accepted,
    AlreadyDecided,
    Approve,
    AsyncBroker,
    Durability,
    Reject,
    Replayed,
    Settings,
    Settlement,
    UnsuitableServer,
)
from broker.core.outcomes import Told
from broker.testing import ServerSource, await_until

from .calls import ANN, BOB, CALLS, FSYNCED, SETTINGS, approval, made
from .holding import HoldableServer
from .sources import waiting, waits

pytestmark = pytest.mark.system  # a C compiler builds the shim

Start = Callable[[ServerSource, str], HoldableServer]
HELD_MS = 1200


async def told_meanwhile(server: HoldableServer) -> list[str]:
    """The names of the calls that came to something while the fsync was held; afterwards all of them have."""
    async with AsyncBroker(server.process.url, namespace="a", settings=SETTINGS, patience=60) as broker:
        calls = await made(broker)
        assert len(calls) == len(CALLS)
        with server.held():
            tasks = {name: asyncio.ensure_future(call()) for name, call in calls.items()}
            await server.held_for(HELD_MS)
            early = [name for name, task in tasks.items() if task.done()]
        for name, task in tasks.items():
            outcome = await task
            assert not isinstance(outcome, Told) or outcome.durability == FSYNCED, name
    return early


@pytest.mark.every_server
async def test_nothing_is_told_under_always(start_holdable: Start, server_source: ServerSource) -> None:
    assert await told_meanwhile(start_holdable(server_source, "always")) == []


async def test_nothing_is_told_before_waitaof_has_waited(start_holdable: Start) -> None:
    assert await told_meanwhile(start_holdable(waiting(), "everysec")) == []


@pytest.mark.every_server
async def test_waitaof_is_relied_on_where_it_waits_and_nowhere_else(
    start_holdable: Start, server_source: ServerSource
) -> None:
    server = start_holdable(server_source, "everysec")
    broker = AsyncBroker(server.process.url, namespace="a", settings=SETTINGS)
    if not waits(server_source):
        with pytest.raises(UnsuitableServer, match=r"appendfsync is everysec.*Set appendfsync always"):
            await broker.open()
        assert server.process.call("KEYS", "*") == []
        return
    with redis.Redis.from_url(server.process.url) as client, server.held():
        pipe = client.pipeline(transaction=False).set("x", 1)
        assert pipe.execute_command("WAITAOF", 1, 0, 2000).execute()[1] == [0, 0]
    async with broker:
        assert (await broker.start("airline", session="s")).durability == FSYNCED


async def test_rule_34_repeats_and_refusals_wait_for_what_somebody_else_wrote(start_holdable: Start) -> None:
    """An answer whose reply is lost is not yet true: not for its party that asks again, not for one that was second."""
    server = start_holdable(waiting(), "everysec")
    async with AsyncExitStack() as stack:
        first, again, second = [
            await stack.enter_async_context(AsyncBroker(server.process.url, namespace="a", settings=SETTINGS))
            for _ in range(3)
        ]
        told = await first.suspend("airline", approval(), session="s")
        (interrupt,) = told.interrupt_ids
        with server.held():
            lost = asyncio.ensure_future(first.inbox.answer(interrupt, Approve(), by=ANN))
            await await_until(lambda: _state(again, interrupt, Settlement.RESOLVED))
            asking = asyncio.ensure_future(again.inbox.answer(interrupt, Approve(), by=ANN))
            losing = asyncio.ensure_future(second.inbox.answer(interrupt, Reject(reason="no"), by=BOB))
            await server.held_for(HELD_MS)
            assert not any(one.done() for one in (lost, asking, losing))
        outcomes = await asyncio.gather(lost, asking, losing)
    assert [type(one) for one in outcomes] == [Accepted, Replayed, AlreadyDecided]
    assert [one.durability for one in outcomes] == [FSYNCED] * 3


async def _state(broker: AsyncBroker, interrupt: str, state: Settlement) -> bool:
    return (await broker.inbox.get(interrupt)).state is state


async def test_who_needs_no_disk_is_not_held_up_by_who_waits(start_holdable: Start) -> None:
    """Another namespace at class memory, and the reads, leases and renewals of the same one."""
    server = start_holdable(waiting(), "everysec")
    memory = Settings(durability=Durability.memory())
    async with (
        AsyncBroker(server.process.url, namespace="m", by=ANN, settings=memory) as other,
        AsyncBroker(server.process.url, namespace="a", settings=SETTINGS, patience=60) as broker,
    ):
        await broker.start("airline", session="ready")
        with server.held():
            waiters = [asyncio.ensure_future(broker.start("airline", session=f"s{n}")) for n in range(200)]
            await server.held_for(100)
            told = await other.suspend("airline", approval(), session="s")
            answered = await other.inbox.answer(told.interrupt_ids[0], Approve())
            assert (answered.ok, answered.durability) == (True, Durability.memory())
            (run,) = await broker.queue("agents").lease(("airline",))
            assert await broker.active("ready") == {}
            await run.release()
            assert not any(one.done() for one in waiters)
        outcomes = await asyncio.gather(*waiters)
    assert {str(one.durability) for one in outcomes} == {"fsynced"}
