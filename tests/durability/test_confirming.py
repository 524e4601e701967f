"""Confirmed calls on the wire: connections of their own, shared waits, and users who may not ask."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import redis

from broker import Approve, AsyncBroker, NotPermitted, OutOfMemory, Settings, UnsuitableServer
from broker.embedded.resp import ReplyError
from broker.store.roles import Role, acl_rules
from broker.testing import ServerProcess, ServerSource, await_until

from .calls import ANN, FSYNCED, SETTINGS, approval
from .sources import waits

Start = Callable[..., ServerProcess]
MANY = 300


def waits_made(client: Any) -> int:
    """How often the server was asked to wait for its disk."""
    return int(client.info("commandstats").get("cmdstat_waitaof", {"calls": 0})["calls"])


async def test_calls_that_come_together_share_their_waits(waiting_server: ServerProcess) -> None:
    with redis.Redis.from_url(waiting_server.url, protocol=2) as client:
        async with AsyncBroker(waiting_server.url, namespace="a", settings=SETTINGS, by=ANN) as broker:
            before = waits_made(client)
            told = await asyncio.gather(
                *(broker.suspend("airline", approval(), session=f"s_{n}") for n in range(MANY))
            )
            assert {str(one.durability) for one in told} == {"fsynced"}
            assert waits_made(client) - before < MANY / 10
            names = [one["cmd"] for one in client.client_list()]
            assert 1 <= len([name for name in names if name == "waitaof"]) <= 8
            assert len({one.interrupt_ids for one in told}) == MANY


async def test_a_lost_connection_and_a_forgotten_script_repeat_the_whole_pipeline(
    waiting_server: ServerProcess,
) -> None:
    async with AsyncBroker(waiting_server.url, namespace="a", settings=SETTINGS, by=ANN) as broker:
        await broker.start("airline", session="s_0", key="k")
        waiting_server.call("SCRIPT", "FLUSH")
        assert (await broker.start("airline", session="s_1", key="k")).durability == FSYNCED
        calls = [asyncio.ensure_future(broker.start("airline", session=f"t_{n}", key="k")) for n in range(9)]
        await await_until(lambda: b"cmd=waitaof" in _clients(waiting_server), what="somebody waits")
        waiting_server.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        told = await asyncio.gather(*calls)
        assert {str(one.durability) for one in told} == {"fsynced"}
        assert {one.code for one in told} <= {"accepted", "replayed"}


def _clients(server: ServerProcess) -> bytes:
    listed = server.call("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    return listed


async def test_a_waiter_that_is_cancelled_takes_nobody_along(waiting_server: ServerProcess) -> None:
    async with AsyncBroker(waiting_server.url, namespace="a", settings=SETTINGS, by=ANN) as broker:
        await broker.start("airline", session="first")
        calls = [asyncio.ensure_future(broker.start("airline", session=f"s_{n}")) for n in range(40)]
        await await_until(lambda: b"cmd=waitaof" in _clients(waiting_server), what="somebody waits")
        for call in calls[::3]:
            call.cancel()
        told = await asyncio.gather(*calls, return_exceptions=True)
    cancelled = [one for one in told if isinstance(one, asyncio.CancelledError)]
    assert len(cancelled) == len(calls[::3])
    assert {str(one.durability) for one in told if not isinstance(one, BaseException)} == {"fsynced"}


async def test_P15_R12_answers_are_confirmed_at_the_memory_limit(waiting_server: ServerProcess) -> None:
    async with AsyncBroker(waiting_server.url, namespace="a", settings=SETTINGS, by=ANN) as broker:
        told = await broker.suspend("airline", approval(), session="s_1")
        waiting_server.call("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(OutOfMemory):
            await broker.start("airline", session="s_2")
        answered = await broker.inbox.answer(told.interrupt_ids[0], Approve())
        assert (answered.ok, answered.durability) == (True, FSYNCED)


def user(server: ServerProcess, *rules: str) -> str:
    """The address for a new user with these rules."""
    server.call("ACL", "SETUSER", "somebody", "reset", "on", ">password", *rules)
    return server.url.replace("unix://", "unix://somebody:password@")


@pytest.mark.every_server
async def test_who_may_not_ask_relies_on_the_namespace_or_waits(
    start_server: Start, server_source: ServerSource
) -> None:
    """Every role works in a namespace that somebody opened who could ask; none makes one at a class it cannot see."""
    server = start_server({"appendfsync": "always"})
    somebody = user(server, *acl_rules("a", Role.DECIDER, waits=waits(server_source)))
    if not waits(server_source):
        with pytest.raises(
            UnsuitableServer, match=r"may not ask when it syncs.*open the namespace once as one who may"
        ):
            await AsyncBroker(somebody, namespace="a", settings=Settings(durability=FSYNCED)).open()
        assert server.call("KEYS", "*") == []
    async with AsyncBroker(server.url, namespace="a") as admin:
        assert (await admin.start("airline", session="s_1")).durability == FSYNCED
    async with AsyncBroker(somebody, namespace="a", by=ANN) as broker:
        assert (await broker.start("airline", session="s_2")).durability == FSYNCED


async def test_who_may_not_wait_is_told_so_when_it_opens(waiting_server: ServerProcess) -> None:
    async with AsyncBroker(waiting_server.url, namespace="a", settings=SETTINGS):
        pass
    somebody = user(waiting_server, *acl_rules("a", Role.WORKER))
    with pytest.raises(NotPermitted, match="waitaof"):
        await AsyncBroker(somebody, namespace="a").open()


@pytest.mark.every_server
async def test_nothing_that_was_told_is_missing_after_a_kill(start_server: Start) -> None:
    """A killed process keeps what it wrote, synced or not: this shows no fsync, only that nothing is told too early."""
    server = start_server({"appendfsync": "always"})
    told: list[str] = []

    async def write(broker: AsyncBroker, name: int) -> None:
        for n in range(10_000):
            outcome = await broker.suspend("airline", approval(), session=f"s_{name}_{n}")
            assert outcome.durability == FSYNCED
            told.extend(outcome.interrupt_ids)

    broker = AsyncBroker(server.url, namespace="a", by=ANN, patience=0.1)
    writers = [asyncio.ensure_future(write(broker, name)) for name in range(20)]
    await await_until(lambda: len(told) > 200 or any(one.done() for one in writers), 60)
    server.kill()
    await asyncio.gather(*writers, return_exceptions=True)
    await broker.aclose()
    with pytest.raises((ReplyError, OSError)):
        server.call("PING")
    server.start()
    async with AsyncBroker(server.url, namespace="a") as broker:
        found: set[str] = set()
        cursor: str | None = None
        while True:
            page = await broker.inbox.list(limit=500, cursor=cursor)
            found |= {record.id for record in page.items}
            cursor = page.cursor
            if cursor is None:
                break
    assert len(told) > 200
    assert set(told) <= found
