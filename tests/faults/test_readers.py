"""Readers of bells: streams that were tampered with, rows of entries that are gone, and what an idle fleet costs."""

import asyncio
from contextlib import aclosing, closing
from datetime import timedelta

import pytest
import redis

from broker import AsyncBroker, Settings, UnsuitableServer
from broker.store.keys import Keyspace
from broker.testing import RunningServer, ServerProcess, await_until
from tests.worker.fleet import Agents

from .fleet import both_readers, calls, goes_through, working
from .world import ADA, approval

P = Keyspace("default", 1).partition(0)
BELLS = (P.key("interrupts"), P.key("dispositions"))
QUARTER = timedelta(seconds=0.25)


async def test_an_id_of_the_far_future_only_orders_what_follows(
    fleet: AsyncBroker, own_client: redis.Redis
) -> None:
    """A foreign writer's. Off: we would give our entries ids of our own."""
    for stream in BELLS:
        own_client.xadd(stream, {"foreign": 1}, id="99999999999999-0")
    for n in range(3):
        await goes_through(fleet, n)


async def test_a_stream_whose_ids_are_used_up_is_made_anew(
    fleet: AsyncBroker, own_client: redis.Redis
) -> None:
    """No step is half done for want of a bell. Off: `commit` in _prelude.lua lets XADD fail."""
    for stream in BELLS:
        own_client.xadd(stream, {"foreign": 1}, id=f"{2**64 - 1}-{2**64 - 1}")
    for n in range(3):
        await goes_through(fleet, n)
        assert next(one.event for one in await fleet.history(f"s{n}")) == "started"


@pytest.mark.report("RA56")
@pytest.mark.parametrize("consumer", ["me", "you"])
async def test_a_row_of_an_entry_that_is_gone_holds_up_nobody(
    own_server: ServerProcess, own_client: redis.Redis, consumer: str
) -> None:
    """Its reader comes again, or another one claims what it had. Off: `_usable` acknowledges nothing."""
    settings = Settings(lease=QUARTER)
    async with AsyncBroker(own_server.url, settings=settings, by=ADA) as broker:
        asked = [await broker.suspend("a", approval(n), session=f"s{n}") for n in range(3)]
        async with aclosing(broker.inbox.follow("approvals", consumer="me")) as deliveries:
            await anext(deliveries)  # all three are on it
        own_client.xtrim(P.key("interrupts"), maxlen=2, approximate=False)
        async with aclosing(broker.inbox.follow("approvals", consumer=consumer)) as deliveries:
            found = [(await asyncio.wait_for(anext(deliveries), 20)).record.id for _ in range(2)]
            assert found == [one.interrupt_ids[0] for one in asked[1:]]
            rest = asyncio.ensure_future(anext(deliveries))
            await await_until(lambda: own_client.xpending(P.key("interrupts"), "approvals")["pending"] == 0)
            rest.cancel()
            await asyncio.gather(rest, return_exceptions=True)


async def test_a_stream_that_is_no_stream_is_said_loudly(
    own_server: ServerProcess, own_client: redis.Redis
) -> None:
    """WRONGTYPE: a foreign writer. A reader ends, and who asks is told the key. Off: it is passed over."""
    async with AsyncBroker(own_server.url, by=ADA) as broker:
        own_client.set(P.key("interrupts"), "foreign")
        with pytest.raises(UnsuitableServer, match="another type"):
            async with aclosing(broker.inbox.follow("approvals")) as deliveries:
                await anext(deliveries)


async def test_an_idle_fleet_waits_and_does_not_ask(
    own_server: ServerProcess, own_client: redis.Redis
) -> None:
    """A worker, an approver and who waits, over three seconds of the server. Off: no read is blocked."""
    async with working(own_server.url, settings=Settings(), sweeps=False) as broker:
        await goes_through(broker, 1)
        waits = asyncio.create_task(broker.wait((await broker.start("none", session="s")).run_id))
        await await_until(lambda: both_readers(own_client))
        before, began = asked(own_client), own_client.time()[0]
        await await_until(lambda: own_client.time()[0] - began >= 3)
        assert asked(own_client) - before < 60
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)


def asked(client: redis.Redis) -> int:
    """How many commands there were, but for those of this test."""
    return sum(n for name, n in calls(client).items() if name not in ("time", "info", "client|list"))


async def test_fifty_lost_connections_leave_as_many_as_before(
    fleet: AsyncBroker, own_client: redis.Redis
) -> None:
    """CLIENT KILL of every connection. Off: a lost connection is not given back to its pool."""
    waits = asyncio.create_task(fleet.wait((await fleet.start("none", session="s")).run_id))
    await goes_through(fleet, 0)
    await await_until(lambda: both_readers(own_client))
    before = len(own_client.client_list())
    for n in range(50):
        own_client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        own_client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        await fleet.start("none", n, session="s")
    await goes_through(fleet, 1)
    await await_until(lambda: both_readers(own_client))
    assert len(own_client.client_list()) <= before + 4
    waits.cancel()
    await asyncio.gather(waits, return_exceptions=True)


def test_a_process_that_forks_has_connections_for_each_half(server: RunningServer, namespace: str) -> None:
    """Off: the halves share a connection, and read each other's answers."""
    with closing(Agents(server.url, namespace, program="forking")) as agents:
        assert agents.says("parent") == "parent True child True"
        assert agents.exit_code() == 0
