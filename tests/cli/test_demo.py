"""The demo: agents pause, are answered, and go on in other processes, although one worker is killed."""

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from broker import embedded
from broker.cli.demo.desk import cases
from broker.cli.demo.story import Counts
from broker.testing import RunningServer
from tests.cli.conftest import Cli

NO_URL = {"BROKER_URL": ""}


@pytest.fixture(autouse=True)
def leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the demo makes is made in here."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def pauses() -> int:
    calls = [
        message["tool_calls"] for case in cases().values() for message in case if message.get("tool_calls")
    ]
    return sum(made[0]["function"]["name"] != "look_up_order" for made in calls)


def test_the_demo_as_json(process: Cli, tmp_path: Path) -> None:
    told = process("demo", "--json", "--pace", "0.05", TMPDIR=str(tmp_path), **NO_URL)
    counts = told.json
    assert told.code == 0
    assert list(counts) == [
        "runs", "suspensions", "answered", "resumed", "resumed_elsewhere", "lost", "mismatched", "killed_workers",
        "wall_s",
    ]  # fmt: skip
    assert (counts["runs"], counts["lost"], counts["mismatched"]) == (12, 0, 0)
    assert counts["suspensions"] == counts["resumed"] == pauses() == 15
    assert counts["answered"] == 16
    assert 1 <= counts["resumed_elsewhere"] <= 15
    assert list(tmp_path.glob("broker-demo-*")) == []
    assert not embedded.is_up()  # the user's own server was left alone


def test_the_demo_without_a_terminal_tells_what_happens_line_by_line(process: Cli) -> None:
    told = process("demo", "--pace", "0.05", **NO_URL)
    assert told.code == 0
    *lines, last = told.out.splitlines()
    assert re.fullmatch(
        r"runs 12  suspensions 15  answered 16  resumed 15  resumed_elsewhere \d+  lost 0", last
    )
    events = [line for line in lines if re.match(r" *\d+\.\d s  ", line)]
    assert len([line for line in events if line.endswith("  finished")]) == 12
    assert len([line for line in events if line.endswith("  began")]) >= 12
    assert len([line for line in events if "  went on" in line]) >= 15
    assert any(re.search(r"worker-\d  went on, worker-\d had paused it$", line) for line in events)
    assert [line for line in events if "ana       rejected: change_address" in line]
    assert [line for line in events if "carrier   completed: trace_parcel" in line]
    assert [line for line in lines if len(line) > 80] == []


def test_the_demo_on_a_terminal_is_a_live_table(environment: dict[str, str]) -> None:
    parent, child = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "broker", "demo", "--pace", "0.05"], stdin=child, stdout=child, stderr=child,
        env=environment | NO_URL | {"LINES": "24"},
    ) as demo:  # fmt: skip
        os.close(child)
        seen = b""
        try:
            while chunk := os.read(parent, 65536):
                seen += chunk
        except OSError:  # the other side is closed
            pass
        os.close(parent)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert demo.returncode == 0
    last = text[text.rindex("PAUSED BY") :]
    assert last.count("finished") == 12
    assert "was killed at work" in last
    assert "resumed 15" in last


def test_the_demo_on_a_given_server(process: Cli, server: RunningServer, namespace: str) -> None:
    told = process("demo", "--json", "--pace", "0.05", "--url", server.url, "--namespace", namespace)
    assert (told.code, told.json["lost"]) == (0, 0)


@pytest.mark.parametrize("wrong", ["lost", "mismatched"])
def test_a_demo_with_a_fault_is_not_ok(wrong: str) -> None:
    counts = {
        "runs": 2,
        "suspensions": 3,
        "answered": 3,
        "resumed": 3,
        "resumed_elsewhere": 1,
        "lost": 0,
        "mismatched": 0,
    }
    assert Counts(**counts, killed_workers=1, wall_s=1).ok
    assert not Counts(**counts | {wrong: 1}, killed_workers=1, wall_s=1).ok
    assert not Counts(**counts | {"resumed_elsewhere": 0}, killed_workers=1, wall_s=1).ok
    assert not Counts(**counts | {"resumed": 2}, killed_workers=1, wall_s=1).ok
