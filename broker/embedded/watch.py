"""The watchdog: a small process that stops a server nobody has used for a while, and ends with it.

A server that outlives the process that started it needs an owner. The watchdog reads the number of connections every
now and then; its own is not counted, a new one in between is. It stops the server under the start lock, after a last
look, so that nobody is handed a server about to end.
"""

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


def watch(path: Path) -> None:
    """Watch the server of the home at `path`, and return when it is gone or has been stopped."""
    home = Home(path)
    idle = float((home.read_state() or {}).get("idle_seconds", 0))
    pause = min(max(idle / LOOKS, SHORTEST), LONGEST)
    while idle and not _gone(home):
        with suppress(OSError, ReplyError):
            if _watch_until_stopped(home, idle, pause):
                return
        time.sleep(SHORTEST)


def _watch_until_stopped(home: Home, idle: float, pause: float) -> bool:
    """Watch over one connection until the server was stopped. Raises OSError when the connection ends."""
    address = home.address()
    if address is None:
        return True
    with Link(address, home.password()) as link:
        seen = _connections(link)
        quiet_since = time.monotonic()
        while True:
            now = _connections(link)
            if now != seen or now[0]:
                seen, quiet_since = now, time.monotonic()
            elif time.monotonic() - quiet_since >= idle and _stop_if_quiet(home, link, seen):
                return True
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


def _gone(home: Home) -> bool:
    """Whether the server has ended and nobody is starting it anew."""
    try:
        with exclusive(home.start_lock, LONGEST):
            return not held(home.server_lock)
    except Unavailable:
        return False
