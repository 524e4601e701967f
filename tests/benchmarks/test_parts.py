"""The parts that figures rest on: the closed loop, counting, percentiles, clocks; and what may be imported."""

import ast
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import broker
import broker.testing
from benchmarks import stats, workload
from benchmarks.board import Board
from benchmarks.harness import TrialFailed, board_of, trial
from benchmarks.job import ROLES, Job, Plan
from benchmarks.machine import cpu_seconds

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def board() -> Iterator[Board]:
    with board_of(Plan(10, warm_up=4)) as one:
        yield one


def job(board: Board, place: int = 0, **how: float) -> Job:
    ours, theirs = multiprocessing.Pipe()
    ours.close()
    plan = Plan(10, warm_up=4, batch=3, **how)  # type: ignore[arg-type]
    return Job("redis://unused", str(board.path), plan, theirs, place)


def test_a_batch_waits_for_the_driver_and_never_spans_the_warm_up(board: Board) -> None:
    board.allowed = 4
    turns = job(board).turns()
    assert (next(turns), next(turns)) == (range(3), range(3, 4))
    assert board.began_at == 0
    board.allowed = 14
    assert [*turns] == [range(4, 7), range(7, 10), range(10, 13), range(13, 14)]
    assert board.began_at > 0


def test_the_loop_is_closed(board: Board) -> None:
    board.allowed = 14
    turns = job(board, window=6).turns()
    assert [next(turns), next(turns)] == [range(3), range(3, 6)]
    board.add_finished(3)
    assert next(turns) == range(6, 9)
    board.stop()
    assert [*turns] == []


def test_at_a_rate_lifecycles_begin_one_at_a_time(board: Board) -> None:
    board.allowed = 14
    assert [*job(board, rate=10_000.0).turns()] == [range(n, n + 1) for n in range(14)]


def test_processes_of_one_role_share_the_lifecycles(board: Board) -> None:
    """Off: let each process take all of a step."""
    board.allowed = 14
    board.add_finished(7, 0)
    ours = [job(board, pairs=2, place=place) for place in range(2)]
    taken = [[n for turn in one.turns() for n in turn] for one in ours]
    assert taken == [[*range(0, 14, 2)], [*range(1, 14, 2)]]


def test_what_processes_of_one_role_resume_is_counted_together(board: Board) -> None:
    """Off: count what the first process has noted."""
    first, second = (job(board, place=place) for place in range(2))
    for one in (first, second):
        one.resumed(3)
        one.finished()
    assert (board.resumed(3), board.resumed(4), board.finished) == (2, 0, 2)


def test_the_resuming_role_may_have_more_processes_than_the_others() -> None:
    plan = Plan(1, resumers=3)
    assert [plan.processes(role) for role in ROLES] == [1, 1, 3]


def test_what_a_process_notes_is_seen_by_the_others(board: Board) -> None:
    other = Board(board.path, board.count)
    one = job(board)
    one.answering(5)
    one.resumed(5)
    one.resumed(5)
    one.finished(2)
    assert (other.resumed(5), other.finished) == (2, 2)
    assert 0 < other.answered_at[5] <= other.resumed_at[5]
    other.stop()
    assert one.over


def test_a_process_that_fails_fails_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.harness.load", lambda _: SimpleNamespace(prepare=lambda _: None))
    with pytest.raises(TrialFailed, match="KeyError: 'no such variant'"):
        trial("no such variant", Plan(1, warm_up=1))


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [stats.percentile(values, part) for part in (0.0, 0.5, 0.99, 1.0)] == [1.0, 50.0, 99.0, 100.0]
    assert stats.percentile([7.0], 0.99) == 7.0


def test_a_summary_shows_every_round() -> None:
    assert stats.summary([3.0, 1.0, 2.0]) == {
        "median": 2.0,
        "low": 1.0,
        "high": 3.0,
        "values": [3.0, 1.0, 2.0],
    }
    assert stats.ratios([2.0, 9.0], [4.0, 3.0]) == [0.5, 3.0]
    assert [stats.rounded(n) for n in (0.0, 0.0123456, 123456.0)] == [0.0, 0.01235, 123500.0]


def test_the_clock_of_a_process_is_the_sum_of_its_threads() -> None:
    before = cpu_seconds(os.getpid())
    times = os.times()
    assert before == pytest.approx(times.user + times.system, abs=0.1)
    assert cpu_seconds(os.getpid()) >= before


def test_a_state_takes_about_four_thousand_bytes() -> None:
    sizes = {len(workload.dumps(workload.snapshot(number))) for number in (0, 7, 99_999)}
    assert len(sizes) == 1
    assert 3_800 < sizes.pop() < 4_200
    assert workload.snapshot(1) == workload.snapshot(1) != workload.snapshot(2)


def test_only_exported_names_are_measured() -> None:
    allowed = {"broker": set(broker.__all__), "broker.testing": set(broker.testing.__all__)}
    found = []
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom | ast.Import) else []
            )
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if isinstance(node, ast.Import):
                found += [f"{path.name}: {name}" for name in names if name.partition(".")[0] == "broker"]
            elif module.partition(".")[0] == "broker":
                found += [f"{path.name}: {module}.{n}" for n in names if n not in allowed.get(module, set())]
    assert found == []
