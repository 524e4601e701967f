"""The watchdog: a small process that stops a server nobody has used for a while, and ends with it.

A server that outlives the process that started it needs an owner. The watchdog reads the number of connections every
now and then; its own is not counted, a new one in between is. It stops the server under the start lock, after a last
look, so that nobody is handed a server about to end.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..errors import Unavailable
from .home import Home
from .locks import exclusive, held
from .resp import Link, ReplyError, info
from .server import stop

LOOKS: Final = 5
"""So many looks at the server in one idle time."""
SHORTEST: Final = 0.05
LONGEST: Final = 5.0
"""Bounds of the seconds between two looks."""


def watch(path: Path, lock: int | None = None) -> None:
    """Watch the server of the home at `path`, and return when it is gone, was stopped, or is to run for ever.

    `lock` is the open file by which this process holds the watchdog's lock. It is let go under the start lock, so
    that whoever starts the next server either keeps this watchdog or sees that it has gone.
    """
    home = Home(path)
    while True:
        with suppress(OSError, ReplyError):
            _watch_until_stopped(home)
        with suppress(Unavailable), exclusive(home.start_lock, LONGEST):
            state = home.read_state()
            if not held(home.server_lock) or state is None or not state.idle_seconds:
                if lock is not None:
                    os.close(lock)
                return
        time.sleep(SHORTEST)


def _watch_until_stopped(home: Home) -> None:
    """Watch over one connection until the server was stopped. Raises OSError when the connection ends.

    The server started next may have another address and idle time, so both are read for each connection.
    """
    state = home.read_state()
    if state is None or not state.idle_seconds:
        return
    idle = state.idle_seconds
    pause = min(max(idle / LOOKS, SHORTEST), LONGEST)
    with Link(state.address, home.password()) as link:
        seen = _connections(link)
        quiet_since = time.monotonic()
        while True:
            now = _connections(link)
            if now != seen or now[0]:
                seen, quiet_since = now, time.monotonic()
            elif time.monotonic() - quiet_since >= idle and _stop_if_quiet(home, link, seen):
                return
            link.hear(pause)


def _stop_if_quiet(home: Home, link: Link, seen: tuple[int, int]) -> bool:
    """Stop the server unless somebody came since the last look or is coming just now."""
    try:
        with exclusive(home.start_lock, 0):
            return _connections(link) == seen and stop(home, LONGEST)
    except Unavailable:
        return False


def _connections(link: Link) -> tuple[int, int]:
    """How many connections there are beside this one, and how many have ever been made."""
    said = info(link)
    return int(said["connected_clients"]) - 1, int(said["total_connections_received"])
