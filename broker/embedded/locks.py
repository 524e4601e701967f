"""Locks between processes that end with their holder, however it ends. Imports errors only.

A lock belongs to an open file, so a child that inherits the file keeps the lock for as long as it lives. The server
and its watchdog are started in that way: whether they live is asked of the lock, never of a process id.
"""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ..errors import Unavailable

PAUSE = 0.005
"""Seconds between two looks at something another process does."""

if sys.platform == "win32":  # pragma: no cover - not among the platforms of the tests
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _unlock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


def take(path: Path) -> int | None:
    """An open file that holds the lock at `path`, to be handed to a child and closed; None while another holds it.

    Raises OSError where there are no locks, as on some network file systems.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(file)
    except (BlockingIOError, PermissionError):
        os.close(file)
        return None
    except OSError:
        os.close(file)
        raise
    return file


def held(path: Path) -> bool:
    """Whether somebody holds the lock at `path`. Ask only under another lock that those who take this one need."""
    file = take(path)
    if file is None:
        return True
    _unlock(file)
    os.close(file)
    return False


@contextmanager
def exclusive(path: Path, seconds: float) -> Generator[None]:
    """Hold the lock at `path`. Raises Unavailable when another process holds it for longer than `seconds`."""
    end = time.monotonic() + seconds
    while (file := take(path)) is None:
        if time.monotonic() >= end:
            raise Unavailable(f"another process has been busy with {path.parent} for {seconds:g} s")
        time.sleep(PAUSE)
    try:
        yield
    finally:
        _unlock(file)
        os.close(file)
