"""Calls that are cancelled: at every place where they wait, with neighbours on the same connections."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any

import pytest
import redis

from broker import Approve, AsyncBroker
from broker.store.keys import Keyspace
from broker.testing import FaultProxy, RunningServer, await_until

from .calls import CALLS, NEW_EACH_TIME
from .calls_that_read import READS
from .test_lost_replies import repeated, undisturbed
from .world import ADA, Call, World, approval, new_world, told, traces

ALL = CALLS | READS
MOST_WAITS = 40


class CancelledAt:
    """Awaits a call, and cancels the task it is in when it waits for the n-th time."""

    def __init__(self, call: Awaitable[Any], at: int) -> None:
        self._call = call
        self._at = at
        self.waits = 0

    def is_there(self, beyond: Callable[[], bool]) -> bool:
        """Whether it has waited so often, or is beyond where it was to."""
        return self.waits >= self._at or beyond()

    def __await__(self) -> Generator[Any, Any, Any]:
        task, steps = asyncio.current_task(), self._call.__await__()
        assert task is not None
        fault: BaseException | None = None
        while True:
            try:
                waits_for = next(steps) if fault is None else steps.throw(fault)
            except StopIteration as ended:
                return ended.value
            self.waits += 1
            if self.waits == self._at:
                asyncio.get_running_loop().call_soon(task.cancel)
            fault = None
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - handed on to where it waits
                fault = error


async def move_in(w: World) -> list[str]:
    """Ids of three other runs."""
    return [(await w.sound.start("b", session=f"n{n}", queue="n")).run_id for n in range(3)]


async def ask(w: World, ids: list[str]) -> None:
    """A call for each neighbour, at the same time. Raises where one gets another one's answer."""
    found = await asyncio.gather(*map(w.faulty.runs.get, ids))
    assert [(one.id, one.session_id) for one in found] == [(one, f"n{n}") for n, one in enumerate(ids)]


async def step(stepping: CancelledAt) -> None:
    await stepping


async def cancelled_at(call: Call, w: World, ids: list[str], at: int) -> bool:
    """Whether the call waits so often; it was cancelled there then."""
    stepping = CancelledAt(call.act(w), at)

    task = asyncio.create_task(step(stepping))
    await asyncio.gather(ask(w, ids), asyncio.wait([task]))
    if stepping.waits >= at:
        assert task.cancelled() or task.exception() is None
    return stepping.waits >= at


@pytest.mark.parametrize("name", ALL)
async def test_a_call_cancelled_wherever_it_waits_harms_nobody_and_may_be_made_again(
    server: RunningServer, new_namespace: Callable[[], str], name: str
) -> None:
    """Off: a connection goes back to its pool with a reply still to come; an operation is not remembered."""
    call = ALL[name]
    _, (*expected, _) = await undisturbed(call, server, new_namespace())
    for at in range(1, MOST_WAITS):
        async with new_world(server.url, new_namespace()) as w:
            ids = await move_in(w)
            await call.prepare(w)
            if not await cancelled_at(call, w, ids, at):
                return
            await ask(w, ids)
            if name not in NEW_EACH_TIME:
                assert await repeated(call, w) in ("stale_lease", *call.answers)
                assert await traces(w) == expected


async def test_a_wait_that_is_cancelled_leaves_its_neighbours_their_bells(
    server: RunningServer, proxy: FaultProxy, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It subscribes for all, since they could not. Off: `_subscribe` forgets what it was stopped in."""
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
    waiting = broker._link.announcements
    return proxy.connections >= tries and bool(waiting._new) and not waiting._turn.locked()


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
