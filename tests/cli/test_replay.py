"""`broker replay` on the demo's own cases as recorded runs, those without a refusal."""

import json
import re
from pathlib import Path

import pytest

from broker.cli.demo.desk import DONE_ELSEWHERE, NEEDS_A_PERSON, cases
from tests.cli.conftest import Cli

NAMES = ("broken-kettle", "late-parcel", "moving-out")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.jsonl"
    chosen = [{"run_id": name, "messages": cases()[name]} for name in NAMES]
    path.write_text("".join(json.dumps(record) + "\n" for record in chosen))
    confirm, long = (json.dumps(sorted(tools)) for tools in (NEEDS_A_PERSON, DONE_ELSEWHERE))
    path.with_suffix(".toml").write_text(f"confirm = {confirm}\nlong = {long}\n")
    return path


def test_every_run_ends_as_recorded(process: Cli, runs: Path, tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    words = ["replay", str(runs), "--workers", "2", "--approvers", "1", "--history", str(history)]
    told = process(*words, "--json", BROKER_URL="")
    assert (told.code, told.err) == (0, "")
    assert told.json["runs"] == 3
    assert told.json["suspensions"] == told.json["resumed"] == 4
    assert [told.json[name] for name in ("lost", "mismatched", "doubled_answers", "reruns")] == [0, 0, 0, 0]
    assert all(json.loads(line)["op"] for line in history.read_text().splitlines())


def test_the_report_for_a_person(process: Cli, runs: Path) -> None:
    told = process("replay", str(runs), "--workers", "1", "--approvers", "1", BROKER_URL="")
    assert told.code == 0
    assert re.search(r"^suspensions +4 *$", told.out, re.MULTILINE)
    assert told.out.endswith("Every run ended as it was recorded, and each tool ran once.\n")


def test_a_run_that_does_not_end_in_time(process: Cli, runs: Path) -> None:
    told = process("replay", str(runs), "--timeout", "0", "--json", BROKER_URL="")
    assert told.code == 1
    assert told.json["lost"] == 3
    assert "not through after 0 s" in told.fault["message"]


def test_a_server_of_somebody_else_is_not_killed(process: Cli, runs: Path) -> None:
    told = process(
        "replay", str(runs), "--restart-server-every", "1", "--url", "redis://127.0.0.1:1", "--json"
    )
    assert told.code == 2
    assert "not the replay's own" in told.fault["message"]


def test_killed_workers_and_joined_turns_on_the_command_line(process: Cli, runs: Path) -> None:
    rough = ["--kill-worker-every", "0.5", "--merge-turns", "2", "--pace", "0.2", "--seed", "5"]
    told = process("replay", str(runs), "--workers", "2", "--approvers", "1", *rough, "--json", BROKER_URL="")
    assert (told.code, told.err) == (0, "")
    assert (told.json["lost"], told.json["mismatched"], told.json["reruns_unexplained"]) == (0, 0, 0)
    assert (told.json["merge_turns"], told.json["pace_s"], told.json["seed"]) == (2, 0.2, 5)
    assert told.json["killed"] >= 1
