"""Much that comes due in one moment is worked off in bounded steps, comes back apart, and its age is seen."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest

from broker import Approve, AsyncBroker, Settings, Settlement, Sweeper
from broker.testing import RunningServer, await_until
from broker.worker.sweeper import BATCH
from tests.clients.asking import ADA, refund
from tests.clock import MOVABLE, Clock
from tests.features.bells import waiting

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DUE = 4 * BATCH


@pytest.fixture
async def slow(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    """A broker whose sweeps are far apart, and whose back-off is an hour."""
    settings = Settings(sweep_every=timedelta(seconds=10), backoff_first=HOUR, backoff_most=HOUR)
    async with AsyncBroker(
        server.url, namespace=namespace, settings=settings, by=ADA, rendering=MOVABLE
    ) as broker:
        yield broker


async def due(broker: AsyncBroker, clock: Clock) -> list[str]:
    """Questions whose deadline passes in one moment, which is now."""
    asked = [
        (await broker.suspend("a", refund(expires_in=HOUR), session=f"s{n}")).interrupt_ids[0]
        for n in range(DUE)
    ]
    clock.advance(HOUR)
    return asked


@pytest.mark.report("RA52", "RA54")
async def test_RA52_RA54_a_sweep_ends_so_many_and_wakes_one_worker_for_each(
    slow: AsyncBroker, clock: Clock
) -> None:
    """Off: `read_due` without its limit: all of them end in one step, however many there are."""
    await due(slow, clock)
    sweeper, p = Sweeper(slow), slow._link.space.partition(0)
    with waiting(slow) as workers:
        for step in range(1, DUE // BATCH + 1):
            assert await sweeper.sweep(p)
            assert (await slow.fleet()).open == DUE - step * BATCH
            woken = workers.woken_for()
            assert len(woken) == len(set(woken)) == step * BATCH


@pytest.mark.report("RA54")
async def test_RA54_what_a_night_has_left_is_worked_off_without_a_pause(
    slow: AsyncBroker, clock: Clock
) -> None:
    """Off: `_full` of the sweeper, which would take a period for each step."""
    asked = await due(slow, clock)
    sweeping = asyncio.create_task(Sweeper(slow).run())

    async def all_ended() -> bool:
        return (await slow.fleet()).open == 0

    await await_until(all_ended, 8, what="all of them have ended, within less than two periods")
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)
    assert {(await slow.inbox.get(one)).state for one in asked} == {Settlement.EXPIRED}


@pytest.mark.report("RA52")
async def test_RA52_attempts_that_failed_together_come_back_apart(slow: AsyncBroker) -> None:
    """Off: `jitter` of `prepare.back_off`."""
    for n in range(20):
        await slow.start("a", session=f"s{n}")
    runs = await slow.queue("agents").lease(("a",), limit=20)
    await asyncio.gather(*(run.fail("Overload", "the model is busy") for run in runs))
    told = [await slow.runs.why(run.id) for run in runs]
    left = [one.back_off_until - one.at for one in told if one.back_off_until is not None]
    assert len(left) == 20
    assert HOUR / 2 - timedelta(minutes=1) < min(left) < max(left) <= HOUR + timedelta(seconds=1)
    assert max(left) - min(left) > timedelta(minutes=5)


@pytest.mark.report("RA54")
async def test_RA54_the_age_of_a_backlog_is_seen(broker: AsyncBroker, clock: Clock) -> None:
    """Since when the next run has been ready, not since when it was asked about. Off: `offered` in _runs.lua."""
    paused = await broker.suspend("a", refund(), session="s0")
    clock.advance(MINUTE)

    async def since() -> Any:
        (pool,) = (await broker.fleet()).pools
        return pool.ready, pool.since

    assert (await broker.fleet()).pools == ()
    await broker.inbox.answer(paused.interrupt_ids[0], Approve())
    for n in range(1, 4):
        clock.advance(MINUTE)
        await broker.start("a", session=f"s{n}")
    resolution = (await broker.inbox.get(paused.interrupt_ids[0])).resolution
    assert resolution is not None
    assert await since() == (4, resolution.at)
    (run,) = await broker.queue("agents").lease(("a",))
    assert run.id == paused.run_id
    left, at = await since()
    assert (left, at - resolution.at >= MINUTE) == (3, True)
