"""A replay in which workers and the server are killed: nothing is lost, and what runs again was not recorded."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker import InvalidInput, Unavailable
from broker.replay import Options, Replay
from broker.replay.ledger import lines
from broker.replay.options import HARD_TIMES, THINKING
from broker.replay.report import executions
from broker.testing import await_until

from .checker import complaints
from .test_replay import RUNS, faults, some

NEVER = 3600.0
EARLY = 5
"""A seed by which the first kills come early."""


def quiet(path: Path, **more: Any) -> Options:
    """A replay of one worker that is ready for kills, and makes none by itself in time."""
    return Options(path, workers=1, approvers=1, timeout=120, kill_worker_every=NEVER, seed=EARLY, **more)


def left(replay: Replay, count: int) -> Callable[[], bool]:
    return lambda: len(lines(replay.effects)) >= count


async def test_kills_of_all_kinds_lose_nothing(tmp_path: Path) -> None:
    options = Options(
        RUNS, workers=2, approvers=1, timeout=120, kill_worker_every=0.8, restart_server_every=0.9, merge_turns=3,
        pace=0.1, seed=EARLY, history=tmp_path / "history",
    )  # fmt: skip
    async with Replay(options) as replay:
        await replay.drive()
        report = await replay.report()
        await replay.write_history()
    assert replay.trouble is None
    assert {name: count for name, count in faults(report).items() if name != "reruns"} == {}
    assert report.ok
    assert (report.runs, report.calls, report.merge_turns, report.seed) == (8, 18, 3, EARLY)
    assert (report.pace_s, report.lease_s) == (0.1, HARD_TIMES.lease.total_seconds())
    assert report.killed >= 1
    assert report.server_restarts >= 1
    assert complaints((tmp_path / "history").read_text().splitlines()) == []


async def test_a_call_runs_again_where_its_worker_died_before_the_record(tmp_path: Path) -> None:
    async with Replay(quiet(some("clocks-4", into=tmp_path), pace=1.5)) as replay:
        driving = asyncio.create_task(replay.drive())
        await await_until(left(replay, 1), timeout=60)
        replay.crew.model = replace(replay.crew.model, pace=0.0)
        await replay.mischief.replace_worker(lambda alive: alive[0])
        await driving
        report = await replay.report()
        (again,) = [each for each in executions(lines(replay.effects)).values() if len(each) > 1]
    assert report.ok
    assert faults(report) == {"reruns": 1}
    assert (report.killed, report.taken_over) == (1, 1)
    assert [(one["attempt"], one["worker"]) for one in again] == [(1, "worker-1"), (2, "worker-2")]


async def test_a_worker_that_dies_before_the_first_pause_loses_nothing(tmp_path: Path) -> None:
    async with Replay(quiet(some("clocks-1", into=tmp_path), pace=1.5)) as replay:
        driving = asyncio.create_task(replay.drive())
        await await_until(lambda: replay.run_ids[0] != "", timeout=60)

        async def leased() -> bool:
            return (await replay.broker.runs.get(replay.run_ids[0])).holder == "worker-1"

        await await_until(leased, timeout=60)
        replay.crew.model = replace(replay.crew.model, pace=0.0)
        await replay.mischief.replace_worker(lambda alive: alive[0])
        await driving
        report = await replay.report()
    assert report.ok
    assert faults(report) == {}
    assert (report.killed, report.taken_over, report.taken_over_early) == (1, 1, 1)


async def test_nothing_acknowledged_is_missing_after_a_kill_of_the_server(tmp_path: Path) -> None:
    async with Replay(quiet(some("clocks-2", "clocks-6", into=tmp_path), pace=0.2)) as replay:
        driving = asyncio.create_task(replay.drive())
        await await_until(lambda: bool(lines(replay.answers)), timeout=60)
        await replay.mischief.restart_server()
        told = [json.loads(line) for line in lines(replay.answers)]
        known = [await replay.broker.inbox.get(one["interrupt"]) for one in told]
        await driving
        report = await replay.report()
    assert all(one.resolution for one in known)
    assert report.ok
    assert faults(report) == {}
    assert (report.killed, report.server_restarts) == (0, 1)


async def test_a_worker_that_cannot_be_replaced_is_trouble(tmp_path: Path) -> None:
    options = Options(
        some("clocks-1", into=tmp_path), workers=1, approvers=1, pace=NEVER, kill_worker_every=0.1
    )
    async with Replay(options) as replay:
        replay.crew.model = replace(replay.crew.model, runs=str(tmp_path / "gone"))
        await replay.drive()
        report = await replay.report()
    assert replay.trouble is not None
    assert replay.trouble.startswith("worker-2 did not get ready: ")
    assert (faults(report), report.killed) == ({"lost": 1}, 1)


async def test_a_server_at_another_address_is_trouble(tmp_path: Path) -> None:
    async with Replay(quiet(some("clocks-6", into=tmp_path))) as replay:
        assert replay.server is not None
        replay.server.now = replace(replay.server.now, url="unix:///elsewhere")
        with pytest.raises(Unavailable, match="another address"):
            await replay.mischief.restart_server()


def test_something_killed_slows_the_record_down_and_shortens_the_lease() -> None:
    assert (Options(RUNS).thinking, Options(RUNS).settings) == (0.0, None)
    rough = Options(RUNS, restart_server_every=5)
    assert (rough.thinking, rough.settings) == (THINKING, HARD_TIMES)
    assert Options(RUNS, kill_worker_every=2, pace=0.0).thinking == 0.0


@pytest.mark.parametrize(
    "given",
    [
        {"kill_worker_every": 0}, {"kill_worker_every": -1.0}, {"restart_server_every": float("nan")},
        {"merge_turns": 0}, {"merge_turns": 65}, {"pace": -0.1}, {"pace": float("inf")},
    ],
    ids=str,
)  # fmt: skip
def test_options_out_of_range_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="is out of range"):
        Options(RUNS, **given)


def test_a_server_that_is_not_the_replays_own_is_not_killed() -> None:
    with pytest.raises(InvalidInput, match="not the replay's own"):
        Options(RUNS, url="redis://127.0.0.1", restart_server_every=5)
