"""Readers of the doorbells: every open interrupt reaches a live one, at least once, whatever is lost (P9)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest
import redis

from broker import Action, Approve, AsyncBroker, Interrupt, Principal, Resolution, RunState, Worker
from broker.store.keys import Keyspace, Partition
from broker.testing import RunningServer, ServerProcess, await_until

from .fleet import QUICK, Agents, ended, run_when

Start = Callable[..., Agents]
TWO_PERIODS = 2 * QUICK.sweep_every


def refund(n: int) -> Interrupt:
    return Interrupt.approval(Action(tool="refund", arguments={"n": n}), f"c{n}")


async def approve(broker: AsyncBroker) -> None:
    """Answers whatever is handed to it, for ever."""
    async with aclosing(broker.inbox.follow("approvals", claim_after=QUICK.lease)) as deliveries:
        async for delivery in deliveries:
            await broker.inbox.answer(delivery.record.id, Approve(), seen=delivery.record.digest)


async def settled(broker: AsyncBroker, interrupt_id: str) -> Resolution:
    found = await broker.wait(interrupt_id, 20)
    assert isinstance(found, Resolution)
    return found


async def test_two_processes_share_a_group_and_one_is_killed(broker: AsyncBroker, agents: Start) -> None:
    ids = [(await broker.suspend("a", refund(n), session=f"s{n}")).interrupt_ids[0] for n in range(12)]
    holds = agents(program="approving", group="approvals", holds=True)
    first = holds.says("has ").split()[-1]
    answers = agents(program="approving", group="approvals")
    answers.says("has ")
    holds.kill()
    by = {one: await settled(broker, one) for one in ids}
    assert first in by
    assert {found.by.id for found in by.values() if found.by} == {f"reader-{answers.pid}"}


async def test_a_reader_that_lives_is_left_alone(broker: AsyncBroker, agents: Start) -> None:
    holds = agents(program="approving", group="approvals", holds=True)
    one = (await broker.suspend("a", refund(1), session="s")).interrupt_ids[0]
    assert holds.says("has ").split()[-1] == one
    task = asyncio.create_task(approve(broker))
    two = (await broker.suspend("a", refund(2), session="s2")).interrupt_ids[0]
    await settled(broker, two)  # new ones go on coming to the other
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Lab:
    """A server of one's own with a worker and an approver at work on it, and what can be lost there."""

    def __init__(self, server: ServerProcess, broker: AsyncBroker) -> None:
        self.server = server
        self.broker = broker
        self.client = redis.Redis.from_url(server.url)
        self.p: Partition = Keyspace(broker.namespace, 1).partition(0)

    async def asks(self, n: int) -> str:
        started = await self.broker.start("asks", n, session=f"s{n}")
        return started.run_id


async def asks(run: Any) -> str | None:
    if run.seq == 0:
        await run.suspend(refund(run.input))
        return None
    return str(run.resolutions[0].kind)


@pytest.fixture
async def lab(
    start_server: Callable[..., ServerProcess], serve: Callable[..., Worker], namespace: str
) -> AsyncGenerator[Lab]:
    server = start_server()
    async with AsyncBroker(
        server.url, namespace=namespace, settings=QUICK, by=Principal.local("me")
    ) as broker:
        worker = serve(asks=asks, options={"url": server.url})
        approver = asyncio.create_task(approve(broker))
        lab = Lab(server, broker)
        assert (await ended(broker, await lab.asks(0))).result == "approve"
        yield lab
        approver.cancel()
        await asyncio.gather(approver, return_exceptions=True)
        assert approver.cancelled()
        lab.client.close()
        worker.stop()


def destroy_groups(lab: Lab) -> None:
    lab.client.xgroup_destroy(lab.p.key("interrupts"), "approvals")


def delete_streams(lab: Lab) -> None:
    lab.client.delete(lab.p.key("interrupts"))
    forget_who_waits(lab)


def trim_streams(lab: Lab) -> None:
    lab.client.xtrim(lab.p.key("interrupts"), maxlen=0)


def forget_who_waits(lab: Lab) -> None:
    if names := lab.client.keys(lab.p.key("idle") + "*"):
        lab.client.delete(*names)


def forget_scripts(lab: Lab) -> None:
    lab.client.script_flush()


def forget_everything(lab: Lab) -> None:
    lab.client.flushall()


def restart(lab: Lab) -> None:
    lab.server.restart()


def kill_and_start(lab: Lab) -> None:
    lab.server.kill()
    lab.server.start()


def drop_connections(lab: Lab) -> None:
    lab.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    lab.client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")


@pytest.mark.report("RA59")
@pytest.mark.parametrize(
    "lose",
    [destroy_groups, delete_streams, trim_streams, forget_scripts, forget_everything, restart, kill_and_start,
     drop_connections],
)  # fmt: skip
async def test_P9_R11_whatever_is_lost_it_goes_on(lab: Lab, lose: Callable[[Lab], None]) -> None:
    """Fails without the repair of NOGROUP (`Follower._ensure_groups`) and of NOSCRIPT."""
    waiting = asyncio.create_task(lab.broker.wait((await lab.broker.start("x", session="s")).run_id, 30))
    await asyncio.to_thread(lose, lab)
    for n in range(1, 4):
        assert (await ended(lab.broker, await lab.asks(n))).state is RunState.FINISHED
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


@pytest.mark.parametrize("lose", [delete_streams, trim_streams, destroy_groups])
async def test_P9_R11_what_is_open_is_rung_again_within_two_periods(
    server: RunningServer, broker: AsyncBroker, serve: Callable[..., Worker], lose: Callable[[Any], None]
) -> None:
    """Fails without the sweeper's `_ring` and the guard `ring-lost` of ring.lua."""
    lab = Lab(server.process or ServerProcess(), broker)
    async with aclosing(broker.inbox.follow("approvals")) as nobody:
        early = await broker.suspend("a", refund(0), session="s0")
        await anext(nobody)
        await broker.inbox.answer(
            early.interrupt_ids[0], Approve()
        )  # the group exists, and nobody reads it now
    one = (await broker.suspend("a", refund(1), session="s")).interrupt_ids[0]
    lose(lab)
    serve(other=asks)
    reader = asyncio.create_task(approve(broker))
    answered = await settled(broker, one)
    opened = (await broker.inbox.get(one)).opened_at
    assert answered.at - opened < timedelta(seconds=10)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    lab.client.close()


@pytest.mark.report("RB74")
async def test_P9_R11_a_run_whose_bell_is_lost_is_found(lab: Lab) -> None:
    for n in range(1, 5):
        forget_who_waits(lab)
        started = await lab.asks(n)
        forget_who_waits(lab)
        assert (await ended(lab.broker, started)).result == "approve"


async def test_R11_a_server_without_its_settings_gets_them_again(
    start_server: Callable[..., ServerProcess], serve: Callable[..., Worker], namespace: str
) -> None:
    server = start_server()
    async with AsyncBroker(server.url, namespace=namespace, settings=QUICK, partitions=4) as broker:
        serve(asks=asks, options={"url": server.url})
        await await_until(lambda: sweeps(broker))
        server.call("FLUSHALL")
        await broker.start(
            "asks", session="s"
        )  # a sweeper that sleeps notices after a while, or when it is stirred
        await await_until(lambda: server.call("EXISTS", f"{{{namespace}}}:meta") == 1)
    async with AsyncBroker(server.url, namespace=namespace) as late:
        assert late._link.space.count == 4


async def sweeps(broker: AsyncBroker) -> bool:
    return bool((await broker.fleet()).workers)


async def test_R17_a_paused_server_only_makes_it_late(lab: Lab) -> None:
    lab.server.pause()
    asked = asyncio.create_task(lab.asks(1))
    done, _ = await asyncio.wait([asked], timeout=0.3)
    assert not done
    lab.server.resume()
    assert (await ended(lab.broker, await asked)).result == "approve"
    assert (await run_when(lab.broker, await lab.asks(2), RunState.FINISHED)).errors == ()
