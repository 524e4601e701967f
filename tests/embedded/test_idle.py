"""The watchdog stops a server that nobody uses, and nothing else."""

import os
import signal
import subprocess
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from broker import embedded
from broker.embedded.locks import held
from broker.embedded.watch import LOOKS
from broker.testing import wait_until
from tests.embedded.conftest import client, read, write

SHORT = timedelta(seconds=0.3)


def stopped(home: Path) -> bool:
    """Whether server and watchdog have ended. Asking the server itself would be using it."""
    return not held(home / "server.lock") and not held(home / "watch.lock")


def watchdogs_of(home: Path) -> list[int]:
    """The process ids of those that watch, once there are any: one just started is still becoming one."""

    def listed() -> list[int]:
        ran = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True)
        return [int(line.split()[0]) for line in ran.stdout.splitlines() if f"--watch {home} " in line]

    return wait_until(listed)


def test_an_unused_server_is_stopped_and_its_data_are_kept(home: Path) -> None:
    write(embedded.ensure(home, idle=SHORT), "kept")
    wait_until(lambda: stopped(home), what="the stop of the idle server")
    assert read(embedded.ensure(home)) == "kept"


def test_a_server_with_a_client_is_not_stopped(home: Path) -> None:
    found = embedded.ensure(home, idle=SHORT)
    with client(found) as link:
        link.ping()

        def asked() -> int:
            return int(link.info("commandstats")["cmdstat_info"]["calls"])

        first, ours = asked(), count(1)
        wait_until(lambda: asked() - next(ours) >= first + 2 * LOOKS, what="looks during two idle times")
        assert link.info("server")["process_id"] == found.pid
    wait_until(lambda: stopped(home), what="the stop after the last client went")


def test_the_time_without_clients_is_a_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_IDLE_SECONDS", "0.3")
    embedded.ensure(home)
    wait_until(lambda: stopped(home))


def test_zero_means_for_ever(home: Path) -> None:
    embedded.ensure(home, idle=timedelta(0))
    assert not held(home / "watch.lock")
    assert held(home / "server.lock")


def test_the_watchdog_ends_with_its_server(home: Path) -> None:
    found = embedded.ensure(home)
    assert held(home / "watch.lock")
    os.kill(found.pid, signal.SIGKILL)
    wait_until(lambda: stopped(home), what="the end of the watchdog")


def test_the_next_server_is_watched_too(home: Path) -> None:
    for _ in range(5):  # the old watchdog stays for the next server or makes way for another one
        embedded.ensure(home, idle=timedelta(hours=1))
        embedded.down(home)
    embedded.ensure(home, idle=SHORT)
    wait_until(lambda: stopped(home), what="the stop of the idle server")


def test_a_watchdog_that_was_killed_is_replaced(home: Path) -> None:
    embedded.ensure(home, idle=timedelta(seconds=1))
    (watchdog,) = watchdogs_of(home)
    os.kill(watchdog, signal.SIGKILL)
    wait_until(lambda: not held(home / "watch.lock"))
    assert not embedded.ensure(home).started
    wait_until(lambda: stopped(home), what="the stop of the idle server")


def test_one_watchdog_watches(home: Path) -> None:
    for _ in range(3):
        embedded.ensure(home)
    assert len(watchdogs_of(home)) == 1
    assert (home / "server.log").read_text().count("Traceback") == 0
