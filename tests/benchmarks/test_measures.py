"""The measures that are no series of lifecycles, each at its tiny size, on real servers and in real processes."""

import json
from pathlib import Path

import pytest

from benchmarks.measures import wake
from tests.benchmarks.measuring import taken


def test_memory_is_that_of_everything_beside_the_state() -> None:
    """Off: read the memory before the pauses are stored."""
    found = taken("bytes_open_4k")
    figures = found.details["bytes_open_4k"]["broker"]
    assert figures["JSON bytes"]["median"] > 3_800
    assert figures["bytes"]["median"] > 1_000
    assert figures["history entries"]["median"] == 1


def test_recorded_runs_are_paused_at_the_calls_that_need_an_approval(tmp_path: Path) -> None:
    """Off: pause at every call, whatever the rules beside the runs say."""
    call = {"function": {"name": "refund", "arguments": '{"order": 1}'}}
    other = {"function": {"name": "look_up", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "hello" * 100},
        {"role": "assistant", "tool_calls": [other, call]},
        {"role": "tool", "content": "done"},
        {"role": "assistant", "tool_calls": [other]},
    ]
    runs = tmp_path / "runs.jsonl"
    runs.write_text(json.dumps({"run_id": "a", "model": "m", "messages": messages}) + "\n")
    (tmp_path / "runs.toml").write_text('confirm = ["refund"]')
    found = taken("bytes_open_airline", runs)
    size = found.details["bytes_open_airline"]["broker"]["JSON bytes"]["median"]
    state = {
        "model": "m",
        "messages": messages[:2],
        "pending": {"id": "1.1", "name": "refund", "arguments": {"order": 1}},
    }
    assert size == pytest.approx(len(json.dumps(state, separators=(",", ":"))), abs=1)


def test_runs_without_a_call_to_pause_at_are_left_out(tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    runs.write_text('{"run_id": "a", "model": null, "messages": [{"role": "user", "content": "hello"}]}\n')
    assert taken_nothing(runs) == {"bytes_open_airline": "runs.jsonl holds no tool call to pause at"}


def taken_nothing(runs: Path) -> dict[str, str]:
    from benchmarks.measures import SHORT, How  # noqa: PLC0415

    return SHORT["bytes_open_airline"](How(1, print, tiny=True, runs=runs)).skipped


def test_a_journal_call_beside_two_writes_by_hand() -> None:
    found = taken("journal_call")
    assert set(found.measures) == {"journal_call_server_cpu", "journal_call_python_cpu"}
    ways = found.details["journal_call"]
    assert set(ways) == {"redis-hset", "broker"}
    assert ways["broker"]["history entries"]["median"] >= 3  # started, leased, finished


def test_an_idle_worker_is_watched_from_outside() -> None:
    """Off: count what the measurement itself is connected with."""
    found = taken("idle_worker")
    assert set(found.measures) == {"idle_worker_commands", "idle_worker_connections"}
    assert found.measures["idle_worker_connections"]["value"] == 3  # its calls, its bells, its renewals


@pytest.mark.report("RA16")
def test_ten_thousand_waiters_are_all_woken() -> None:
    found = taken("wake_10k")
    assert set(found.measures) == {wake.NAME}
    for figures in found.details[wake.NAME].values():
        assert 0 < figures["p50 ms"]["median"] <= figures["p99 ms"]["median"]


def test_a_killed_worker_loses_no_run() -> None:
    """Off: do not kill the first worker."""
    found = taken("recover")
    figures = found.details["recover"]["broker"]
    assert figures["p99 s"]["low"] > 0.5  # a lease of a second, of which three quarters were left
    assert figures["history entries"]["median"] >= 5  # started, leased, taken back, leased, finished
