"""Worker processes whose clocks are wrong: deadlines, leases and order are those of the server's clock."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker import AsyncBroker, HistoryEntry, RunState, Settlement
from tests.worker.fleet import LEASE, ended

from .asking import all_over, approve, open_questions, start_all
from .crew import Crew, judge, server_time
from .sizes import Size

pytestmark = pytest.mark.drill
MINUTES = 601.0
"""Ten, and a second more than a start may be repeated for: whoever is so far behind would be refused."""
GENEROUS = timedelta(seconds=10)
WAIT = timedelta(seconds=0.5)


CLOCKS = {"ahead": [MINUTES], "behind": [-MINUTES], "jumping": [MINUTES, 0.0, -MINUTES]}
"""By how many seconds the clock of each worker is wrong; one jumps. Runs are pinned to them as builds."""


async def hire_with_wrong_clocks(crew: Crew) -> None:
    for build, skews in CLOCKS.items():
        crew.hire(1, "skewed", skews=skews, build=build)
        said = await asyncio.to_thread(crew.alive[-1].says, "clock ")
        now = await server_time(crew.broker)
        if len(skews) == 1:
            for told in said.split()[1:]:
                off = datetime.fromtimestamp(float(told), UTC) - now
                assert abs(off - timedelta(seconds=skews[0])) < GENEROUS


async def start_on_each(broker: AsyncBroker, agent: str, given: Any, count: int) -> list[str]:
    """So many runs of an agent on each of the workers; `starts` is given the session of what it starts."""
    return [
        (
            await broker.start(
                agent, given or f"new-{build}-{n}", session=f"{agent}-{build}-{n}", build=build
            )
        ).run_id
        for build in CLOCKS
        for n in range(count)
    ]


@pytest.mark.report("RA62")
async def test_R13_wrong_clocks_of_workers_change_neither_deadlines_nor_leases_nor_order(
    broker: AsyncBroker, crew: Crew, size: Size
) -> None:
    """And a worker that dies with its wrong clock is missed as soon as any.

    Off: `server_now` of link.py by the clock of its own process: those behind could start nothing.
    """
    began = await server_time(broker)
    await hire_with_wrong_clocks(crew)
    paid = await start_all(broker, "pays", size(20, 200))
    waits = await start_on_each(broker, "waits", WAIT.total_seconds(), size(4, 20))
    holds = await start_on_each(broker, "holds", 1.5 * LEASE.total_seconds(), size(2, 10))
    starts = await start_on_each(broker, "starts", None, size(4, 20))
    others = (*waits, *holds, *starts)
    await all_over(broker, others)
    entries = [entry for one in others for entry in await of(broker, one)]
    assert [entry for entry in entries if entry.event in ("lease_lost", "failed")] == []
    for one in waits:
        run = await broker.runs.get(one)
        assert (run.state, run.result) == (RunState.FINISHED, Settlement.EXPIRED)
        await check_deadline(broker, await of(broker, one))
    for one in starts:
        assert (await ended(broker, (await broker.runs.get(one)).result)).state is RunState.FINISHED
    await pay_and_kill(broker, crew, paid, per_second=size(40, 200))
    over = await server_time(broker)
    for one in (*paid, *others):
        times = [entry.at for entry in await of(broker, one)]
        assert times == sorted(times)
        assert began - timedelta(seconds=1) <= times[0] <= times[-1] <= over


async def pay_and_kill(broker: AsyncBroker, crew: Crew, paid: dict[str, int], per_second: float) -> None:
    """Answers everything, and kills a worker that is in the middle of a call."""
    ids = await open_questions(broker, len(paid))
    answering = asyncio.create_task(approve(broker, ids, per_second))
    victim = await crew.busy()
    assert victim is not None
    await crew.kill(victim)
    await answering
    await all_over(broker, paid)
    verdict = await judge(crew, paid)
    assert verdict.is_good, verdict


async def of(broker: AsyncBroker, run_id: str) -> tuple[HistoryEntry, ...]:
    return await broker.history((await broker.runs.get(run_id)).session_id)


async def check_deadline(broker: AsyncBroker, history: tuple[HistoryEntry, ...]) -> None:
    """It is so long after the question was opened, to the millisecond, and the question ended then and not before."""
    asked = next(entry for entry in history if entry.event == "suspended")
    assert asked.interrupt_id is not None
    record = await broker.inbox.get(asked.interrupt_id)
    assert record.deadline is not None
    assert record.resolution is not None
    assert abs(record.deadline - asked.at - WAIT) <= timedelta(milliseconds=2)
    assert record.deadline <= record.resolution.at <= record.deadline + GENEROUS
