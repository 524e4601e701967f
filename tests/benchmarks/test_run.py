"""A run with a few lifecycles: everything runs, nothing is lost or doubled, the file has its keys."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import comparison, plot, results, tables
from benchmarks.__main__ import main
from benchmarks.harness import TrialFailed
from benchmarks.measures import SHORT, How
from benchmarks.measures import Found as Measured

ROOT = Path(__file__).resolve().parents[2]

Found = dict[str, Any]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results file of one run, shared by the test workers: the first to come here makes it."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    path = folder / "benchmarks" / "tiny.json"
    with (folder / "benchmarks.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.with_suffix(".svg").exists():
            run(path)
    return path


def run(path: Path) -> None:
    parts = ["lifecycle", "latency", "micro", "bytes_open_4k", "bytes_open_airline"]
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--out", str(path), "--only", *parts]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "| broker" in done.stdout


@pytest.fixture
def found(file: Path) -> Found:
    return results.read(file)


def test_it_says_what_it_is_of(found: Found) -> None:
    assert set(found["machine"]) == {"processor", "cores", "memory_gib", "system"}
    assert {"python", "interrupt-broker", "redis", "hiredis", "server"} <= set(found["versions"])
    assert found["settings"]["server"]["appendfsync"] == "everysec"
    assert found["settings"]["broker"] == "default"
    assert found["tiny"] is True
    assert set(found["load"]) == {"before", "after"}
    assert len(found["made_at"]) == len("2026-01-01T00:00:00Z")


def test_every_variant_has_its_figures_and_lost_nothing(found: Found) -> None:
    expected = {
        "lifecycle": (
            ["redis-syncb", "redis-aio", "redis-aio:256", "broker-batch", "broker", "broker:256"],
            ["per_s", "server_us", "python_us"],
        ),
        "latency": (["redis-syncb", "broker"], ["per_s", "p50_ms", "p99_ms", "server_us", "python_us"]),
    }
    for name, (variants, figures) in expected.items():
        series = found["series"][name]
        assert list(series["variants"]) == list(series["plans"]) == variants
        for one in series["variants"].values():
            assert (one["missing"], one["doubled"]) == (0, 0)
            assert set(one["python_us_by_role"]) == {"pause", "approve", "resume"}
            assert list(one["ratio_to_floor"]) == figures
            for figure in figures:
                assert set(one[figure]) == {"median", "low", "high", "values"}
                assert 0 < one[figure]["low"] <= one[figure]["median"] <= one[figure]["high"]
        assert series["variants"][series["floor"]]["ratio_to_floor"]["server_us"]["values"] == [1.0]


def test_the_broker_kept_its_history_and_finished_every_run(found: Found) -> None:
    for series in found["series"].values():
        for name, one in series["variants"].items():
            if name.startswith("broker"):
                assert one["facts"]["history_entries"]["low"] >= 4  # suspended, resolved, leased, finished
                assert one["facts"]["unfinished"]["high"] == 0


def test_the_measures_that_releases_are_compared_by(found: Found) -> None:
    assert set(found["measures"]) == {
        "batch_throughput",
        "call_throughput",
        "call_throughput_256",
        "server_cpu",
        "python_cpu",
        "server_cpu_of_calls",
        "python_cpu_of_calls",
        "resume_latency_p50",
        "resume_latency_p99",
        "bytes_open_4k",
        "bytes_open_4k_bytes",
    }
    for one in found["measures"].values():
        assert 0 < one["low"] <= one.get("ratio", one.get("value")) <= one["high"]
        assert one.get("against") or one.get("unit")


def test_a_measure_that_cannot_be_taken_says_why(found: Found) -> None:
    assert found["skipped"] == {"bytes_open_airline": "no recorded runs were given (--runs FILE)"}
    assert "bytes_open_airline: left out, no recorded runs were given" in tables.report(found)


def test_what_is_missing_or_doubled_is_counted_over_everything(found: Found) -> None:
    assert found["counts"] == {"missing": 0, "doubled": 0}
    assert "all in all: 0 resumes missing, 0 doubled" in tables.report(found)


def test_the_short_measures(found: Found) -> None:
    micro = found["micro"]
    assert micro["state_bytes"]["json"] > micro["state_bytes"]["stored"]
    assert {"state: write", "state: read", "action: digest"} <= set(micro["codec_us"])
    operations = micro["operations"]
    assert list(operations) == [
        "start",
        "lease",
        "suspend",
        "suspend (no lease)",
        "follow",
        "answer",
        "lease with answers",
        "finish",
        "withdraw",
    ]
    for name, cost in operations.items():
        if name != "follow":  # the last delivery is not acknowledged
            assert cost["scripts"] == 1, name
        assert cost["client_us"] > 0
        assert cost["script_us"] > cost["commands_us"] > 0
        assert cost["commands"] > 1


def test_a_picture_stands_beside_it(file: Path, found: Found, tmp_path: Path) -> None:
    picture = file.with_suffix(".svg")
    text = picture.read_text(encoding="utf-8")
    assert "Lifecycles per second" in text
    assert "redis-aio" in text
    plot.draw(found, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text(encoding="utf-8") == text


def test_a_result_compared_with_itself_is_the_same(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(file), str(file)]) == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    ratios = {row[4].strip() for row in rows if row[4].strip() not in {"new/old", "-"}}
    assert ratios == {"1.00"}


def test_a_comparison_says_what_differs_and_how_far(found: Found) -> None:
    other = json.loads(json.dumps(found))
    other["versions"]["redis"] = "0.0"
    was = other["series"]["lifecycle"]["variants"]["broker"]["per_s"]
    was.update({name: was[name] * 100 for name in ("median", "low", "high")})
    text = comparison.compare(found, other)
    assert f"versions: redis was {found['versions']['redis']}, is 0.0" in text
    row = next(line for line in text.splitlines() if "lifecycle: broker, lifecycles/s" in line)
    assert [cell.strip() for cell in row.split("|")[4:6]] == ["100", "apart"]


def test_what_was_lost_or_doubled_is_a_fault(found: Found) -> None:
    assert results.faults(found) == []
    broken = json.loads(json.dumps(found))
    broken["series"]["lifecycle"]["variants"]["redis-aio"]["missing"] = 2
    broken["series"]["latency"]["variants"]["broker"]["doubled"] = 1
    broken["series"]["latency"]["variants"]["broker"]["facts"]["unfinished"]["values"] = [3]
    broken["details"]["wake"] = {"10 waiters": {"missing": {"values": [0, 4]}}}
    assert results.faults(broken) == [
        "lifecycle: redis-aio has 2 missing",
        "latency: broker has 1 doubled",
        "latency: broker has 3 unfinished",
        "wake: 10 waiters has 4 missing",
    ]


def test_a_part_that_fails_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off: let `collect` raise what a part raises: an hour of other parts would be lost with it."""

    def fails(_: How) -> Measured:
        raise TrialFailed("it is gone")

    monkeypatch.setitem(SHORT, "sync_call", fails)
    parts = ("sync_call", "bytes_open_4k")
    found = results.collect(parts=parts, rounds=1, tiny=True, say=lambda _: None)
    assert found["failed"] == {"sync_call": "it is gone"}
    assert "bytes_open_4k" in found["measures"]
    assert results.faults(found) == ["sync_call failed: it is gone"]
    assert "sync_call: failed, it is gone" in tables.report(found)


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"format": 99}')
    with pytest.raises(ValueError, match=r"other\.json does not hold"):
        results.read(path)


def test_the_committed_results_can_be_read_and_shown() -> None:
    for path in sorted(results.FOLDER.glob("*.json")):
        kept = results.read(path)
        assert kept["tiny"] is False
        assert results.faults(kept) == []
        assert "broker" in tables.report(kept)
