"""One server for all who ask, with its data, whatever happens to it."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest

from broker import embedded
from broker.embedded.locks import held
from broker.errors import Unavailable
from broker.testing import wait_until
from tests.embedded.conftest import client, read, write

RACER = """
import json, sys
from pathlib import Path
from broker import embedded
print("here", flush=True)
sys.stdin.readline()
found = embedded.ensure(Path(sys.argv[1]))
print(json.dumps([found.pid, found.started, found.url]))
"""


def test_eight_racing_processes_start_one(home: Path) -> None:
    command = [sys.executable, "-c", RACER, str(home)]
    pipe = subprocess.PIPE
    racers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(8)]
    for racer in racers:
        assert racer.stdout
        assert racer.stdout.readline() == "here\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    results = [json.loads(racer.communicate()[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 8
    assert sum(started for _, started, _ in results) == 1
    assert len({pid for pid, _, _ in results}) == 1
    assert len({url for _, _, url in results}) == 1


def test_it_outlives_a_kill_with_its_data(home: Path) -> None:
    first = embedded.ensure(home)
    write(first, "kept")
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: not held(home / "server.lock"))
    assert not embedded.is_up(home)
    second = embedded.ensure(home)
    assert second.started
    assert second.pid != first.pid
    assert second.url == first.url  # clients reconnect by themselves
    assert read(second) == "kept"


def test_down_and_up_keep_the_data(home: Path) -> None:
    write(embedded.ensure(home), "kept")
    assert embedded.down(home)
    assert not embedded.is_up(home)
    assert not embedded.down(home)
    assert read(embedded.ensure(home)) == "kept"


def test_asking_again_changes_nothing(home: Path) -> None:
    first = embedded.ensure(home)
    again = embedded.ensure(home)
    assert first.started
    assert not again.started
    assert (again.pid, again.url, again.since) == (first.pid, first.url, first.since)


def test_it_tells_about_itself_without_its_password(home: Path) -> None:
    before = datetime.now(UTC)
    found = embedded.ensure(home)
    told = embedded.info(home)
    assert told is not None
    assert told.pid == found.pid
    assert told.home == home.resolve()
    assert told.family == "valkey"
    assert told.version.startswith("9.")
    assert before <= told.since <= datetime.now(UTC)
    password = (home / "password").read_text()
    assert password in told.url
    assert password not in told.address
    assert password not in repr(told)


def test_looking_at_a_home_makes_none(home: Path) -> None:
    assert embedded.info(home) is None
    assert not embedded.is_up(home)
    assert not embedded.down(home)
    assert not home.exists()


def test_a_server_whose_socket_was_removed_is_started_anew(home: Path) -> None:
    first = embedded.ensure(home)
    write(first, "kept")
    Path(first.address.removeprefix("unix://")).unlink()
    second = embedded.ensure(home)
    assert second.started
    assert read(second) == "kept"


def test_down_ends_a_server_whose_socket_was_removed(home: Path) -> None:
    found = embedded.ensure(home)
    Path(found.address.removeprefix("unix://")).unlink()
    assert embedded.down(home)
    assert not held(home / "server.lock")


def test_no_second_server_beside_one_that_does_not_answer(home: Path) -> None:
    found = embedded.ensure(home)
    os.kill(found.pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match="has not answered"):
            embedded.ensure(home, wait=timedelta(seconds=0.1))
        with pytest.raises(Unavailable, match="has not ended"):
            embedded.down(home, wait=timedelta(seconds=0.1))
    finally:
        os.kill(found.pid, signal.SIGCONT)
    # The stopped server had the request to end in its hands and follows it now, or answers it never got one.
    wait_until(lambda: embedded.is_up(home) or not held(home / "server.lock"))


@pytest.mark.parametrize("name", ["blank and 'quote\"", "Füße", "back\\slash", "x" * 200])
def test_any_path_will_do(home: Path, name: str) -> None:
    place = home / name
    try:
        found = embedded.ensure(place)
        write(found, "here")
        assert read(found) == "here"
        if found.address.startswith("unix:"):
            assert len(unquote(found.address.removeprefix("unix://")).encode()) < 100
    finally:
        embedded.down(place)


def test_two_homes_are_two_servers(home: Path) -> None:
    one, two = embedded.ensure(home / "one"), embedded.ensure(home / "two")
    try:
        write(one, "1")
        assert read(two) is None
        assert one.pid != two.pid
    finally:
        embedded.down(one.home)
        embedded.down(two.home)


def test_the_server_has_our_flags(home: Path) -> None:
    found = embedded.ensure(home)
    with client(found) as link:
        said = {flag: link.config_get(flag)[flag] for flag in embedded.SERVER_FLAGS}
    assert said == dict(embedded.SERVER_FLAGS)


def test_a_long_log_is_begun_anew(home: Path) -> None:
    embedded.ensure(home)
    embedded.down(home)
    with (home / "server.log").open("a") as log:
        log.write("x" * (1 << 20))
    embedded.ensure(home)
    assert (home / "server.log").stat().st_size < 1 << 20
    assert (home / "server.log.1").stat().st_size > 1 << 20


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    embedded.ensure(home)
    embedded.down(home)
    (manifest,) = (home / "appendonlydir").glob("*.manifest")
    manifest.write_text("broken")
    with pytest.raises(Unavailable, match=r"ended at its start.*manifest"):
        embedded.ensure(home)
