"""One real server per home, shared by every process that asks for it. Imports errors only.

Whoever comes first starts it, under a lock; the others find it. It outlives the process that started it, keeps its
data over restarts and kills, and is stopped by `down` or, when nobody has been connected for a while, by its watchdog.
"""

import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ..errors import InvalidInput, Unavailable
from . import launch
from .home import Home, default_home, make_private
from .locks import PAUSE, exclusive, held
from .resp import Link, ReplyError
from .resp import info as ask_info

IDLE: Final = timedelta(minutes=15)
"""How long a server without clients is kept, unless BROKER_IDLE_SECONDS or the caller says otherwise."""
START_WAIT: Final = timedelta(seconds=60)
"""How long a start may take: loading a long append-only file is part of it."""
STOP_WAIT: Final = timedelta(seconds=15)
"""How long a stop may take: the last writes reach the disk in it."""
KILLS: Final = 5
"""So often a server that was killed just when it had answered is started anew by one call."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The running server of a home. `url` holds its password and is not shown; `address` is the same without it."""

    home: Path
    url: str = field(repr=False)
    address: str
    pid: int
    family: str
    version: str
    since: datetime
    started: bool = False
    """Whether this very call started it."""


def resolve(url: str | None = None) -> str:
    """The URL of the server to use: the given one, else BROKER_URL, else the embedded server's, started if need be.

    Raises what `ensure` raises, and only where neither is given. Safe to repeat.
    """
    return url or os.environ.get("BROKER_URL") or ensure().url


def ensure(
    home: Path | None = None,
    *,
    idle: timedelta | None = None,
    wait: timedelta = START_WAIT,
    binary: Path | None = None,
) -> Embedded:
    """The server of `home` (default: BROKER_HOME, else the platform's state folder), started when it is not running.

    A server that this call starts is stopped after `idle` without clients (default: BROKER_IDLE_SECONDS, else 15
    minutes; zero: never). `binary` is the only program to be tried (default: BROKER_SERVER_BIN, else the packaged
    server, valkey-server and redis-server of PATH, in this order, the first that reads the data there are).

    Blocks for up to `wait`, some 50 ms as a rule. Safe to repeat and to race: one server is started, its data are
    those of the last one. Raises NoServer when there is no program, UnsuitableServer when none fits the data,
    InvalidInput when the home is not this user's alone, Unavailable when the server does not come up.
    """
    seconds = wait.total_seconds()
    with _at(home) as place:
        make_private(place.path)
        with exclusive(place.start_lock, seconds):
            for _ in range(KILLS):
                started = not _running(place, seconds)
                if started:
                    launch.start(place, _idle_seconds(idle), seconds, str(binary) if binary else None)
                launch.watch(place)
                found = _describe(place, started=started)
                if found:
                    return found
    raise Unavailable(f"the server of {place.path} ended right after it had answered, see {place.log}")


def is_up(home: Path | None = None) -> bool:
    """Whether the server of `home` is running and answers. Starts nothing."""
    return info(home) is not None


def info(home: Path | None = None) -> Embedded | None:
    """The running server of `home`, or None. Starts nothing. Raises InvalidInput when the home cannot be read."""
    with _at(home) as place:
        return _describe(place, started=False) if place.config.exists() else None


def down(home: Path | None = None, *, wait: timedelta = STOP_WAIT) -> bool:
    """Stop the server of `home` and keep its data; False when there was none. Its clients lose their connections.

    Safe to repeat. Raises Unavailable when it has not ended within `wait`, nothing is forced; InvalidInput when the
    home cannot be read.
    """
    seconds = wait.total_seconds()
    with _at(home) as place:
        if not place.config.exists():
            return False
        with exclusive(place.start_lock, seconds):
            return stop(place, seconds)


@contextmanager
def _at(home: Path | None) -> Generator[Home]:
    """The files of `home`. What the file system refuses (rights, space, locks) is told as a fault of the home."""
    path = home or default_home()
    try:
        yield Home(path.resolve())
    except OSError as error:
        fault = error.strerror or type(error).__name__
        raise InvalidInput(
            str(path), f"cannot be used ({fault})", "a directory of this user on a local disk"
        ) from error


def stop(place: Home, seconds: float) -> bool:
    """Stop the server of `place`; False when there was none. Call it under the start lock."""
    state = place.read_state()
    if state is None or not (sys.platform == "win32" or held(place.server_lock)):
        return False
    try:
        link = Link(state.address, place.password(), seconds=seconds)
    except (OSError, ReplyError):
        _signal(place)
    else:
        with link, suppress(OSError):  # It hangs up instead of replying.
            _shut_down(place, link)
    _await_end(place, seconds)
    return True


def _shut_down(place: Home, link: Link) -> None:
    try:
        link.call("SHUTDOWN")
    except ReplyError as error:
        raise Unavailable(f"the server of {place.path} refuses to stop ({error}), see {place.log}") from None


def _running(place: Home, seconds: float) -> bool:
    """Whether the server of `place` answers, after waiting for one that lives but is not ready. Under the start lock.

    A server whose socket somebody removed (a clean-up of run-time folders does that) is stopped, to be started
    anew: two servers over the same data would destroy them.
    """
    state = place.read_state()
    if state is None:
        return False
    address = state.address
    end = time.monotonic() + seconds
    while True:
        if sys.platform != "win32" and not held(place.server_lock):
            return False
        if launch.ready(place, address):
            return True
        if sys.platform == "win32":
            return False
        if isinstance(address, str) and not Path(address).exists() and place.pidfile.exists():
            _signal(place)
            _await_end(place, seconds)
            return False
        if time.monotonic() >= end:
            raise Unavailable(f"the server of {place.path} lives but has not answered for {seconds:g} s")
        time.sleep(PAUSE)


def _signal(place: Home) -> None:
    """Ask the server's process to end. The pid file is this server's own while its lock is held; it goes first."""
    with suppress(OSError, ValueError):
        os.kill(int(place.pidfile.read_text()), signal.SIGTERM)


def _await_end(place: Home, seconds: float) -> None:
    end = time.monotonic() + seconds
    while sys.platform != "win32" and held(place.server_lock):
        if time.monotonic() >= end:
            raise Unavailable(
                f"the server of {place.path} has not ended within {seconds:g} s, see {place.log}"
            )
        time.sleep(PAUSE)


def _describe(place: Home, *, started: bool) -> Embedded | None:
    state = place.read_state()
    if state is None:
        return None
    address = state.address
    password = place.password()
    try:
        with Link(address, password) as link:
            said = ask_info(link)
    except (OSError, ReplyError):
        return None
    shown = f"unix://{quote(address)}" if isinstance(address, str) else f"redis://{address[0]}:{address[1]}"
    return Embedded(
        home=place.path,
        url=shown.replace("://", f"://:{quote(password, safe='')}@", 1),
        address=shown,
        pid=int(said["process_id"]),
        family="valkey" if "valkey_version" in said else "redis",
        version=said.get("valkey_version", said["redis_version"]),
        since=state.since,
        started=started,
    )


def _idle_seconds(idle: timedelta | None) -> float:
    if idle is None:
        said = os.environ.get("BROKER_IDLE_SECONDS")
        try:
            return float(said) if said else IDLE.total_seconds()
        except ValueError:
            raise InvalidInput("BROKER_IDLE_SECONDS", "is no number", "seconds, 0 for never") from None
    return idle.total_seconds()
