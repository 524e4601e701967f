"""Workers are killed while questions are open, answers come in, and calls run: nothing is lost, nothing doubled."""

import asyncio

import pytest

from broker import AsyncBroker

from .asking import all_over, approve, open_questions, start_all
from .crew import Crew, judge, server_time
from .sizes import Size

pytestmark = pytest.mark.drill
BACKLOG = 20
"""Answers are held back while so many runs wait for a worker: else it is the machine that is measured."""


async def kill_one_in_the_middle_of(crew: Crew, answering: asyncio.Task[list[str]]) -> list[str]:
    """Kills a worker that is in a call while answers come in, and returns when another is up; what is unsure."""
    victim = await crew.busy()
    assert victim is not None
    await crew.kill(victim)
    crew.hire(1)
    unsure = await answering
    await asyncio.to_thread(crew.alive[-1].says, "begins")
    return unsure


async def test_R01_workers_killed_again_and_again_lose_nothing_and_double_nothing(
    broker: AsyncBroker, crew: Crew, size: Size
) -> None:
    """The one effect that may come twice is that of a call whose worker died between begin and record.

    Off: reclaim.lua without lost leases (lost); guard `journal-stored` of begin.lua (lost); end.lua without its
    `note_call` (doubled).
    """
    crew.hire(3)
    runs = await start_all(broker, "pays", size(60, 1000))
    ids, unsure = await open_questions(broker, len(runs)), list[str]()
    part = len(ids) // size(3, 10)
    for start in range(0, len(ids), part):
        some = approve(broker, ids[start : start + part], per_second=size(50, 200), backlog=BACKLOG)
        unsure += await kill_one_in_the_middle_of(crew, asyncio.create_task(some))
    await all_over(broker, runs)
    verdict = await judge(crew, runs)
    verdict.unsure = unsure
    assert len(crew.deaths) == size(3, 10)
    assert verdict.is_good, verdict


async def test_R02_all_workers_killed_and_new_ones_started_go_on_with_everything(
    broker: AsyncBroker, crew: Crew, size: Size
) -> None:
    """Off: reclaim.lua without lost leases: what the dead held is never given back."""
    crew.hire(3)
    runs = await start_all(broker, "pays", size(40, 1000))
    ids = await open_questions(broker, len(runs))
    few = BACKLOG
    answering = asyncio.create_task(approve(broker, ids[:few], per_second=size(40, 200)))
    assert await crew.busy()
    await crew.kill(*list(crew.alive))
    unsure = await answering
    assert (await broker.fleet()).open == len(ids) - few
    assert sorted(await open_questions(broker, 0)) == sorted(ids[few:])
    crew.hire(3)
    for worker in crew.alive:
        await asyncio.to_thread(worker.says, "begins")
    idle_until = await server_time(broker)
    unsure += await approve(broker, ids[few:], per_second=size(40, 200), backlog=BACKLOG)
    await all_over(broker, runs)
    verdict = await judge(crew, runs, idle_until=idle_until)
    verdict.unsure = unsure
    assert verdict.is_good, verdict
