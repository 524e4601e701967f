"""`broker agui check` on recorded streams, as files and on standard input."""

import io
import json
from pathlib import Path

import pytest

from broker.interop.agui.rules import Rule
from tests.cli.conftest import Cli
from tests.seed_systems.agui.streams import event, message, run


def test_the_command_names_each_broken_rule(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    stream = run(
        event("SUBAGENT_STARTED", subagentRunId="sub_2", name="payer"),
        event("CUSTOM", name="x", value=1, a=2),
    )
    path.write_text("".join(json.dumps(one) + "\n" for one in stream))
    told = cli("agui", "check", str(path))
    assert (told.code, told.err) == (1, "")
    assert told.out.splitlines()[0].split() == ["3", "unknown-field", "a:", "a", "is", "not", "described"]
    assert "4  subagent-left-open  sub_2 is active" in told.out
    assert "The stream does not conform to AG-UI: 4 events, 1 error, 1 warning." in told.out
    as_json = cli("agui", "check", str(path), "--json")
    assert (as_json.code, as_json.json["conforms"], as_json.json["events"]) == (1, False, 4)
    assert as_json.json["violations"][1] == {
        "rule": "subagent-left-open", "level": "error", "event": 4, "text": "sub_2 is active when its run finishes",
        "says": Rule.SUBAGENT_LEFT_OPEN.says, "page": "events/subagents",
    }  # fmt: skip


def test_the_command_reads_standard_input_whatever_is_in_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(f"data: {json.dumps(one)}\n\n" for one in run(*message())).encode()
    for given, code in ((text, 0), (text.replace(b"Hello", b"\xff\xfe"), 0), (b"\xff\n" + text, 1), (b"", 1)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given), encoding="ascii"))
        told = cli("agui", "check", "-", "--json")
        assert (told.code, told.json["conforms"]) == (code, code == 0)


def test_the_command_says_what_file_it_cannot_read(cli: Cli, tmp_path: Path) -> None:
    told = cli("agui", "check", str(tmp_path / "none.jsonl"), "--json")
    assert (told.code, told.fault["field"]) == (2, "FILE")


def test_a_stream_wrong_in_every_event_is_told_in_short(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    path.write_text((json.dumps(event("NEW")) + "\n") * 150)
    told = cli("agui", "check", str(path))
    assert told.out.count("unknown-event") == 100
    assert "51 more" in told.err
