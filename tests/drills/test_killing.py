"""Workers are killed while questions are open, answers come in, and calls run: nothing is lost, nothing doubled."""

import asyncio

import pytest

from broker import AsyncBroker

from .asking import all_over, approve, open_questions, start_all
from .crew import Crew, judge, server_time
from .ledger import takes
from .sizes import Size

pytestmark = pytest.mark.drill


async def kill_again_and_again(crew: Crew) -> None:
    """Kills whoever is in the middle of a call, and hires another, until it is cancelled."""
    while True:
        victim = await crew.busy()
        if victim is None:
            continue
        await crew.kill(victim)
        crew.hire(1)
        await takes(0.4)


async def test_R01_workers_killed_again_and_again_lose_nothing_and_double_nothing(
    broker: AsyncBroker, crew: Crew, size: Size
) -> None:
    """The one effect that may come twice is that of a call whose worker died between begin and record.

    Off: reclaim.lua without lost leases (lost); guard `journal-stored` of begin.lua (lost); end.lua without its
    `note_call` (doubled).
    """
    crew.hire(4)
    runs = await start_all(broker, "pays", size(60, 1000))
    ids = await open_questions(broker, len(runs))
    killing = asyncio.create_task(kill_again_and_again(crew))
    unsure = await approve(broker, ids, per_second=size(30, 200))
    killing.cancel()  # else the last run has no worker that lives, and is dead in the end, as poison is
    await asyncio.gather(killing, return_exceptions=True)
    await all_over(broker, runs)
    verdict = await judge(crew, runs)
    verdict.unsure = unsure
    assert len(crew.deaths) >= size(2, 4)
    assert verdict.is_good, verdict


async def test_R02_all_workers_killed_and_new_ones_started_go_on_with_everything(
    broker: AsyncBroker, crew: Crew, size: Size
) -> None:
    """Off: reclaim.lua without lost leases: what the dead held is never given back."""
    crew.hire(3)
    runs = await start_all(broker, "pays", size(40, 1000))
    ids = await open_questions(broker, len(runs))
    half = len(ids) // 2
    answering = asyncio.create_task(approve(broker, ids[:half], per_second=size(40, 200)))
    assert await crew.busy()
    await crew.kill(*list(crew.alive))
    unsure = await answering
    assert (await broker.fleet()).open == len(ids) - half
    assert sorted(await open_questions(broker, 0)) == sorted(ids[half:])
    crew.hire(3)
    for worker in crew.alive:
        await asyncio.to_thread(worker.says, "begins")
    idle_until = await server_time(broker)
    unsure += await approve(broker, ids[half:], per_second=size(40, 200))
    await all_over(broker, runs)
    verdict = await judge(crew, runs, idle_until=idle_until)
    verdict.unsure = unsure
    assert verdict.is_good, verdict
