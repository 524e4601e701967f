"""`import` and `export`: swink's interrupt files in and out."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from broker import Broker, Interrupt, RunState
from broker.errors import ERROR_CODES, OUTCOME_CODES
from tests.cli.conftest import Ask, Cli
from tests.seed_systems.swink.files import FILE, snapshot

INVALID, UNKNOWN, CORRUPT = (ERROR_CODES[code].exit_code for code in ("invalid", "unknown", "corrupt"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of swink's with the interrupted session th_2, and an orphan."""
    made = tmp_path / "sessions"
    made.mkdir()
    (made / "th_2.jsonl").write_text("{}\n")
    (made / "th_2.interrupt.json").write_bytes(FILE)
    (made / "gone.interrupt.json").write_bytes(b"{")
    return made


@pytest.mark.row("S1")
def test_S1_a_file_goes_in_and_comes_out_byte_for_byte(
    cli: Cli, process: Cli, folder: Path, tmp_path: Path, broker: Broker
) -> None:
    file = folder / "th_2.interrupt.json"
    told = cli("import", str(file), "--agent", "deployer", "--queue", "ops", "--expires-in", "2h")
    (run_id,) = broker.active("th_2")
    assert (told.code, told.out) == (0, f"th_2: 2 questions, run {run_id}.\n")
    assert file.read_bytes() == FILE, "it stays where it is"
    run = broker.runs.get(run_id)
    assert (run.state, run.agent, run.queue) == (RunState.WAITING, "deployer", "ops")
    assert all(one.deadline is not None for one in broker.inbox.list().items)
    out = process("export", "th_2")
    assert (out.code, out.out.encode()) == (0, FILE)
    assert cli("export", "th_2", "--json").json == json.loads(FILE)
    for to, path in (
        (tmp_path, tmp_path / "th_2.interrupt.json"),
        (tmp_path / "a.json", tmp_path / "a.json"),
    ):
        told = cli("export", "th_2", "--to", str(to), "--json")
        assert told.json == {"session": "th_2", "file": str(path), "bytes": len(FILE)}
        assert path.read_bytes() == FILE
    assert cli("export", "th_2", "--to", str(tmp_path)).out.endswith(f"{len(FILE)} bytes.\n")
    again = cli("import", str(file), "--agent", "deployer", "--queue", "ops", "--expires-in", "2h")
    assert (again.code, "It was imported before." in " ".join(again.out.split())) == (0, True)


@pytest.mark.row("S7")
def test_S7_orphans_are_passed_over(cli: Cli, folder: Path, broker: Broker) -> None:
    told = cli("import", str(folder), "--json").json
    assert [(one["session"], (one["outcome"] or {}).get("code")) for one in told] == [
        ("th_2", "accepted"), ("gone", None),
    ]  # fmt: skip
    assert (broker.fleet().open, broker.active("gone")) == (2, {})
    told = cli("import", str(folder / "gone.interrupt.json"))
    assert (told.code, told.out) == (0, "gone: passed over, its session has no file.\n")


@pytest.mark.row("S8")
def test_S8_a_file_that_does_not_parse_stays_and_nothing_is_imported(
    cli: Cli, folder: Path, broker: Broker
) -> None:
    (folder / "gone.jsonl").write_text("{}\n")
    told = cli("import", str(folder), "--json")
    assert (told.code, told.fault["field"], told.out) == (INVALID, "gone.interrupt", "")
    assert (folder / "gone.interrupt.json").read_bytes() == b"{"
    assert broker.fleet().open == 0


def test_a_file_from_standard_input(process: Cli, broker: Broker) -> None:
    empty = json.dumps(snapshot(), indent=2)
    told = process("import", "-", "--session", "th_9", said=empty)
    assert (told.code, told.out.startswith("th_9: 1 question, run run_")) == (0, True)
    (one,) = broker.inbox.list().items
    assert (one.interrupt.reason, one.deadline) == ("swink:interrupted", None)
    assert process("export", "th_9").out == empty


def test_what_is_interrupted_already_is_replaced_only_if_asked(
    cli: Cli, folder: Path, broker: Broker
) -> None:
    file = folder / "th_2.interrupt.json"
    cli("import", str(file))
    file.write_bytes(FILE + b"\n")
    told = cli("import", str(file), "--json")
    assert (told.code, told.fault["code"]) == (OUTCOME_CODES["conflict"].exit_code, "conflict")
    assert cli("import", str(file), "--replace").code == 0
    assert list(broker.active("th_2").values()) == [2]


def test_several_suspensions_need_one_named(cli: Cli, folder: Path, ask: Ask, broker: Broker) -> None:
    cli("import", str(folder))
    (mine,) = broker.active("th_2")
    ask(Interrupt.question("which one?"), session="th_2")
    told = cli("export", "th_2", "--json")
    assert (told.code, told.fault["field"]) == (INVALID, "run_id")
    assert mine in told.fault["allowed"]
    assert cli("export", "th_2", "--run", mine).out.encode() == FILE


FAULTS: dict[str, tuple[list[str], int]] = {
    "no file": (["import"], INVALID),
    "a file that is not there": (["import", "/nowhere/s.interrupt.json"], INVALID),
    "a name that tells no session": (["import", "pyproject.toml"], INVALID),
    "standard input without a session": (["import", "-"], INVALID),
    "a session that swink refuses": (["import", "-", "--session", "a:b"], INVALID),
    "two of one session": (["import", "a.interrupt.json", "b.interrupt.json", "--session", "s"], INVALID),
    "a span that is none": (["import", "-", "--session", "s", "--expires-in", "soon"], INVALID),
    "a bad agent": (["import", "-", "--session", "s", "--agent", "a b"], INVALID),
    "an unknown session": (["export", "s_404"], UNKNOWN),
    "an unknown run": (["export", "th_2", "--run", "run_of_none"], UNKNOWN),
    "a session that is no file name": (["export", "a/b"], INVALID),
    "a name too long to read": (["import", f"{'x' * 300}.interrupt.json"], INVALID),
    "nowhere to write": (["export", "th_2", "--to", "/nowhere/a.json"], INVALID),
    "a name too long to write": (["export", "th_2", "--to", "x" * 300], INVALID),
    "what is there and no file": (["export", "th_2", "--to", "pipe"], INVALID),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_goes_wrong_is_said(
    cli: Cli, name: str, folder: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("import", str(folder / "th_2.interrupt.json"))
    before = broker.fleet().open
    monkeypatch.chdir(folder)
    (folder / "a.interrupt.json").write_bytes(FILE)
    (folder / "b.interrupt.json").write_bytes(FILE)
    os.mkfifo(folder / "pipe")
    words, code = FAULTS[name]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(FILE)))
    told = cli(*words, "--json")
    assert (told.code, told.out) == (code, "")
    assert told.fault["exit_code"] == code
    assert broker.fleet().open == before
    assert (folder / "pipe").is_fifo()


def test_what_has_no_form_in_swink_says_what_is_missing(cli: Cli, ask: Ask) -> None:
    ask(session="other")
    told = cli("export", "other", "--json")
    assert (told.code, told.fault["field"], told.fault["problem"]) == (INVALID, "model", "is missing")


@pytest.mark.row("S8")
def test_S8_a_state_that_cannot_be_read_has_a_code_of_its_own(cli: Cli, folder: Path, broker: Broker) -> None:
    cli("import", str(folder / "th_2.interrupt.json"))
    (run_id,) = broker.active("th_2")
    link: Any = broker._link
    link.client.set(link.space.of_session("th_2").key("state", run_id), b"{")
    told = cli("export", "th_2", "--json")
    assert (told.code, told.fault["code"]) == (CORRUPT, "corrupt")
    assert broker.active("th_2")
