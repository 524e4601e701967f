"""Who is woken for what: a worker that leaves the rest of what it was woken for wakes another one."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from broker import AsyncBroker, Principal
from broker.store.commands import wakes
from broker.store.keys import Pool
from broker.testing import RunningServer, await_until
from broker.worker.bells import Bells

from .fleet import QUICK

ONE, TWO = POOLS = [Pool("agents", "one"), Pool("agents", "two")]


class Waiting:
    """The bells of some workers that wait as theirs do, without a worker behind them."""

    def __init__(self, broker: AsyncBroker, stack: AsyncExitStack) -> None:
        self.link: Any = broker._link
        self._stack = stack

    async def worker(self, name: str) -> Bells:
        """One more, which is heard."""
        bells = await self._stack.enter_async_context(Bells.of(self.link, "agents", name))
        await await_until(lambda: all(map(self.link.announcements._stands.get, self._channels(name))))
        await bells.rung(0)  # that it stands
        await self.says(bells, name)
        return bells

    def _channels(self, name: str) -> list[str]:
        return [p.key("wake", one) for p in self.link.space.all() for one in (name, ":agents")]

    async def says(self, bells: Bells, name: str) -> None:
        """That it waits, as before each look."""
        bells.waits(POOLS)
        for p in self.link.space.all():
            await self.link.fetch(wakes.wait_for_runs(p, POOLS, name))


@pytest.fixture(params=[1, 3])
async def broker(
    request: pytest.FixtureRequest, server: RunningServer, namespace: str
) -> AsyncGenerator[AsyncBroker]:
    """A broker of one partition, and of three."""
    async with AsyncBroker(
        server.url, namespace=namespace, settings=QUICK, partitions=request.param, by=Principal.local("me")
    ) as broker:
        yield broker


@pytest.fixture
async def waiting(broker: AsyncBroker) -> AsyncGenerator[Waiting]:
    async with AsyncExitStack() as stack:
        yield Waiting(broker, stack)


async def test_P9_what_a_full_worker_was_woken_for_and_did_not_take_wakes_another(
    broker: AsyncBroker, waiting: Waiting
) -> None:
    """It said again that it waits, before it heard that it was woken. Off: `unheard` in `leave`."""
    bells = await waiting.worker("first")
    await broker.start("one", session="s")
    await await_until(lambda: bells._bell.said)
    for said in (bells._bell.said[0], b""):
        await waiting.says(bells, "first")
        other = await waiting.worker(f"other {said!r}")
        bells._bell.said.append(said)
        await bells.leave()
        await await_until(partial(getattr, other._bell, "said"))


async def test_P9_a_full_worker_is_in_no_set(broker: AsyncBroker, waiting: Waiting) -> None:
    """It is woken for a run of one partition, and waits in the others still. Off: the partition in `_places`."""
    bells = await waiting.worker("first")
    started = await broker.start("one", session="s")
    (offer,) = await bells.rung(1)
    assert offer.run == started.run_id
    await bells.leave()
    for p in waiting.link.space.all():
        for pool in POOLS:
            assert await waiting.link.fetch(wakes.wait_no_more(p, [pool], "first")) == (pool,)


async def test_P9_what_comes_after_a_worker_has_left_is_not_what_it_waits_for(
    broker: AsyncBroker, waiting: Waiting
) -> None:
    """Another one was woken for it; taken for a new one it would leave a name of a full worker. Off: in `waits`."""
    bells = await waiting.worker("first")
    await broker.start("one", session="s")
    await await_until(lambda: bells._bell.said)
    late = bells._bell.said[0]
    await bells.leave()
    bells._bell.said.append(late)
    await waiting.says(bells, "first")
    bells._bell.ring()
    assert await bells.rung(1) == []
