"""The plugin in somebody else's project: a folder with a test file, and pytest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.testing import RunningServer, ServerProcess, Testbed, effect
from tests.docs.pages import ROOT, fences, text_of

PAGE = "docs/howto/test-your-agent.md"


def pytest_in(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    own = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)


def test_beyond_22_a_test_file_of_ten_lines_finds_a_tool_executed_twice(tmp_path: Path) -> None:
    """The first one of the how-to, and what the page says that it prints."""
    (file, expected) = (next(fences(text_of(PAGE), language)).body for language in ("python", "text"))
    assert len([line for line in file.splitlines() if line.strip()]) <= 10
    (tmp_path / "test_pay.py").write_text(file)
    done = pytest_in(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    printed = [line.removeprefix("E").strip() for line in done.stdout.splitlines()]
    first, *rest = expected.splitlines()
    assert f"broker.testing.crashing.CrashUnsafe: {first}" in printed
    assert set(rest) < set(printed)
    assert "1 failed" in done.stdout


TWO_TESTS = """
import redis

def test_one(testbed, broker_server):
    testbed.broker.start("agent", session="s_1")
    with redis.Redis.from_url(broker_server.url) as client:
        assert client.dbsize() > 0

def test_two(broker_server):
    with redis.Redis.from_url(broker_server.url) as client:
        assert [key for key in client.scan_iter("*") if b"test-" in key] == []
        print("other keys:", client.dbsize())
"""


def test_nothing_is_left_on_a_server_that_was_there_before(own_server: ServerProcess, tmp_path: Path) -> None:
    """BROKER_TEST_URL; what is somebody else's stays."""
    own_server.call("SET", "not ours", "1")
    (tmp_path / "test_two.py").write_text(TWO_TESTS)
    done = pytest_in(tmp_path, "-s", "-p", "no:randomly", BROKER_TEST_URL=own_server.url)
    assert done.returncode == 0, done.stdout
    assert "other keys: 1" in done.stdout


def test_every_fixture_has_a_line_of_help(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, "--fixtures")
    assert "testbed -- " in done.stdout
    assert "A place to try agents in" in done.stdout
    assert "broker_server [session scope]" in done.stdout


def test_an_effect_of_a_process_that_a_test_starts_is_seen(testbed: Testbed) -> None:
    effect("here")
    command = [sys.executable, "-c", "from broker.testing import effect; effect('there')"]
    subprocess.run(command, cwd=ROOT, check=True)
    assert testbed.effects == {"here": 1, "there": 1}


def test_a_testbed_needs_no_pytest(server: RunningServer, used_namespaces: list[str]) -> None:
    with Testbed(server.url) as made:
        used_namespaces.append(made.namespace)
        assert made.broker.start("agent", session="s_1").ok
    with pytest.raises(Exception, match="effect"):
        effect("after its end")
