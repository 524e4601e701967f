"""Waits and time limits that end in the middle of something."""

import asyncio
import random
from functools import partial

import pytest
import redis

from broker import Approve, AsyncBroker
from broker.store.keys import Keyspace
from broker.testing import FaultProxy, RunningServer, await_until

from .cancelling import MOST_WAITS, CancelledAt, step
from .world import ADA, approval, told


async def test_a_wait_that_is_cancelled_leaves_its_neighbours_their_bells(
    server: RunningServer, proxy: FaultProxy, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Off: the connection is opened in a waiter's task."""
    monkeypatch.setattr("broker._async._runtime.SUBSCRIBE_SECONDS", 0.05)
    async with AsyncBroker(server.url, namespace=namespace, by=ADA) as near:
        for at in range(1, MOST_WAITS):
            paused = [await near.suspend("a", approval(n), session=f"s{at}.{n}") for n in range(2)]
            ids = [one.interrupt_ids[0] for one in paused]
            async with AsyncBroker(proxy.url, namespace=namespace) as far:
                proxy.hang()
                tries = proxy.connections + 3
                neighbour = asyncio.create_task(far.wait(ids[0]))
                await await_until(partial(is_resting, far, proxy, tries))
                proxy.restore()
                stepping = CancelledAt(far.wait(ids[1]), at)
                cancelled = asyncio.create_task(step(stepping))
                heard = partial(is_subscribed, server, namespace, ids[1])
                await await_until(partial(stepping.is_there, heard))
                cancelled.cancel()
                await asyncio.wait([cancelled])
                await await_until(partial(is_subscribed, server, namespace, ids[0]))
                await near.inbox.answer(ids[0], Approve())
                async with asyncio.timeout(5):
                    await neighbour
                if stepping.waits < at:
                    return


def is_resting(broker: AsyncBroker, proxy: FaultProxy, tries: int) -> bool:
    """Whether a subscription was tried often enough, in vain, and is not being tried."""
    return proxy.connections >= tries and broker._link.announcements._line is None


def is_subscribed(server: RunningServer, namespace: str, id_: str) -> bool:
    with redis.Redis.from_url(server.url) as client:
        return bool(client.pubsub_channels(Keyspace(namespace, 1).partition(0).key("settled", id_)))


async def test_a_time_limit_around_a_call_always_ends_it(proxy: FaultProxy, namespace: str) -> None:
    """Two hundred times, wherever the call is by then. Off, on Python 3.11: the client has a `socket_timeout`."""
    chance = random.Random(1)
    async with AsyncBroker(proxy.url, namespace=namespace) as broker:
        started = await broker.start("a", session="s", key="k")
        proxy.delay(0.02)
        for _ in range(200):
            with pytest.raises(TimeoutError):
                await looking(broker, started.run_id, chance.uniform(0, 0.02))
        proxy.restore()
        assert told(await broker.start("a", session="s", key="k")) == "replayed"


async def looking(broker: AsyncBroker, run_id: str, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while True:
            await broker.runs.get(run_id)
