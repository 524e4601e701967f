"""A fleet with nothing to do asks the server for next to nothing, and is there when something happens."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from datetime import timedelta

import pytest
import redis

from broker import AsyncBroker, Interrupt, Principal, Replayed, RunState, Settlement, Sweeper
from broker.testing import ServerProcess, await_until
from tests.clock import MOVABLE, Clock

from .fleet import QUICK

LOOK = "zrangebyscore"
"""What a whole sweep begins with."""


@pytest.fixture
async def timed(own_server: ServerProcess) -> AsyncGenerator[AsyncBroker]:
    async with AsyncBroker(
        own_server.url, settings=QUICK, by=Principal.local("me"), rendering=MOVABLE
    ) as broker:
        yield broker


@pytest.fixture
def clock(own_server: ServerProcess) -> Generator[Clock]:
    clock = Clock(own_server.url, "default")
    yield clock
    clock.close()


def looks(server: ServerProcess) -> int:
    """How many whole sweeps there have been: each looks at four lists by time."""
    stats = server.call("INFO", "commandstats")
    assert isinstance(stats, bytes)
    for line in stats.decode().split():
        if line.startswith(f"cmdstat_{LOOK}:"):
            return int(line.partition("calls=")[2].partition(",")[0]) // 4
    return 0


async def sweep(sweeper: Sweeper, server: ServerProcess) -> bool:
    """Whether a sweep was a whole one."""
    before = looks(server)
    assert await sweeper.sweep(sweeper._link.space.partition(0))
    return looks(server) > before


async def test_a_sweep_of_nothing_new_is_passed_over(
    timed: AsyncBroker, own_server: ServerProcess, clock: Clock
) -> None:
    """Off: `_Seen.is_idle`, when it always says no; or `late`, when nothing is looked at for ever."""
    await timed.open()
    sweeper = Sweeper(timed)
    assert [await sweep(sweeper, own_server) for _ in range(4)] == [True, False, False, False]
    clock.advance(QUICK.sweep_every * 5)
    assert [await sweep(sweeper, own_server) for _ in range(2)] == [True, False]


async def test_what_happens_ends_the_idling(
    timed: AsyncBroker, own_server: ServerProcess, clock: Clock
) -> None:
    """Off: the counter, or the times, that the right to sweep comes with."""
    await timed.open()
    sweeper = Sweeper(timed)
    assert [await sweep(sweeper, own_server) for _ in range(2)] == [True, False]
    asked = await timed.suspend("a", Interrupt(expires_in=timedelta(hours=1)), session="s")
    assert [await sweep(sweeper, own_server) for _ in range(3)] == [True, True, True]  # nobody has seen it
    async for _ in timed.inbox.follow("approvals"):
        break
    async for _ in timed.inbox.follow("custom"):
        break
    clock.advance(timedelta(hours=1))
    assert await sweep(sweeper, own_server)
    assert (await timed.inbox.get(asked.interrupt_ids[0])).state is not Settlement.OPEN


async def test_a_lost_lease_ends_the_idling(
    timed: AsyncBroker, own_server: ServerProcess, clock: Clock
) -> None:
    """A lease moves no counter: its time is what is looked at. Off: the times that the right to sweep comes with."""
    started = await timed.start("a", session="s")
    await timed.queue("agents").lease(("a",))
    sweeper = Sweeper(timed)
    assert [await sweep(sweeper, own_server) for _ in range(2)] == [True, False]
    clock.advance(QUICK.lease)
    assert await sweep(sweeper, own_server)
    assert (await timed.runs.get(started.run_id)).state is RunState.READY


async def test_R11_a_counter_that_counts_anew_ends_the_idling(
    timed: AsyncBroker, own_server: ServerProcess
) -> None:
    """After a loss it may come to the number it had, with a run that nobody was woken for.

    Off: `held`, of the right to sweep.
    """
    await timed.start("a", session="s")
    await timed.queue("agents").lease(("a",))
    sweeper = Sweeper(timed)
    assert [await sweep(sweeper, own_server) for _ in range(2)] == [True, False]
    own_server.call("FLUSHALL")
    await timed.start("a", session="s")
    assert await sweep(sweeper, own_server)


async def test_P9_a_bell_that_a_repeat_rings_ends_the_idling(
    timed: AsyncBroker, own_server: ServerProcess
) -> None:
    """It waits for being seen like any other, and may be lost like any other. Off: `unseen` of the right to sweep."""
    question = Interrupt(expires_in=timedelta(hours=1))
    await timed.suspend("a", question, session="s", key="k")
    async with aclosing(timed.inbox.follow(question.addressed_to)) as deliveries:
        await anext(deliveries)
        with pytest.raises(TimeoutError):  # asking for the next one acknowledges the first
            async with asyncio.timeout(0.1):
                await anext(deliveries)
    sweeper = Sweeper(timed)
    assert [await sweep(sweeper, own_server) for _ in range(2)] == [True, False]
    assert isinstance(await timed.suspend("a", question, session="s", key="k"), Replayed)
    assert await sweep(sweeper, own_server)


async def test_P9_a_sweeper_that_sleeps_is_there_when_something_happens(
    timed: AsyncBroker, own_server: ServerProcess
) -> None:
    """A run that nobody is woken for, after nothing for a while. Off: `_sleep`, or the guard `stir`."""
    sweeping = asyncio.create_task(Sweeper(timed).run())
    stir, wake = (timed._link.space.partition(0).key(*key) for key in (("stir",), ("wake", ":agents")))
    try:
        await await_until(lambda: own_server.call("PUBSUB", "NUMSUB", stir) == [stir.encode(), 1])
        before = looks(own_server)
        with closing(redis.Redis.from_url(own_server.url)) as client, client.pubsub() as worker:
            worker.subscribe(wake)
            assert worker.get_message(timeout=5)
            await timed.start("a", session="s")
            heard = await asyncio.to_thread(worker.get_message, timeout=10)
        assert heard is not None
        assert looks(own_server) > before
    finally:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)


async def test_a_sweeper_that_sleeps_keeps_its_right_and_wakes_for_the_next_timer(
    timed: AsyncBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Off: the looks in `_sleep`, or the time that the first timer fires."""
    monkeypatch.setattr("broker.worker.sweeper.SLEEP", timedelta(seconds=0.2))
    question = Interrupt(expires_in=timedelta(seconds=3))
    asked = await timed.suspend("a", question, session="s")
    async with aclosing(timed.inbox.follow(question.addressed_to)) as deliveries:
        await anext(deliveries)
        with pytest.raises(TimeoutError):  # asking for the next one acknowledges the first
            async with asyncio.timeout(0.1):
                await anext(deliveries)
    sweeping, other = asyncio.create_task(Sweeper(timed, name="one").run()), Sweeper(timed, name="two")
    try:
        ended = await timed.inbox.wait(asked.interrupt_ids[0], 10)
        assert ended.state is Settlement.EXPIRED
        assert not await other.sweep(timed._link.space.partition(0))
    finally:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)
