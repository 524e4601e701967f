"""Starting the server of a home, and the watchdog beside it, as processes that outlive us. Imports errors only.

Everything here is called under the start lock of the home.
"""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ..errors import Unavailable
from .binaries import ServerBinary, candidates, none_found
from .flags import SERVER_FLAGS, Setting, render
from .home import Home, State, write_private
from .locks import PAUSE, held, take
from .marker import Marker, rdb_version_of
from .resp import Address, Link, ReplyError

LOG_BYTES: Final = 1 << 20
"""The log is begun anew at a start that finds it longer than this; one older log is kept."""
WATCHDOG: Final = """
import sys, types
package = sys.modules["broker"] = types.ModuleType("broker")
package.__path__ = [sys.argv.pop(1)]
from broker.embedded.__main__ import main
main()
"""
"""`python -m broker.embedded` without the rest of the package: a process that lives for hours needs no clients."""
PORT_TRIES: Final = 3
"""A free port may be gone when the server takes it; so often another is tried."""


def start(home: Home, idle_seconds: float, seconds: float, named: str | None) -> None:
    """Start the server of a home that has none alive, and return when it answers.

    `named` is the path of the only program to be tried. Raises NoServer and UnsuitableServer when none fits the
    machine or the data, Unavailable when the server ends or does not answer within `seconds`.
    """
    binary = choose(home, named)
    _turn_log(home)
    for attempt in range(PORT_TRIES):
        address = _launch(home, binary, idle_seconds)
        if _answers(home, address, seconds):
            break
        if isinstance(address, str) or attempt == PORT_TRIES - 1:
            raise Unavailable(
                f"{binary} ended at its start, see {home.log}; its last words: {_last_words(home)}"
            )
    Marker(binary.family, binary.version_text, rdb_version_of(home.path)).write(home.path)


def _launch(home: Home, binary: ServerBinary, idle_seconds: float) -> Address:
    """Start `binary` and return the address it was given, without waiting for it."""
    lock = take(home.server_lock)
    if lock is None:
        raise Unavailable(f"the server of {home.path} lives but its address is not known, see {home.log}")
    try:
        address = home.choose_address()
        if not isinstance(address, str):
            home.renew_password()
        home.pidfile.unlink(missing_ok=True)
        write_private(home.config, render(settings(home, address)))
        home.write_state(State(address, idle_seconds, datetime.now(UTC)))
        _detach([str(binary.path), str(home.config)], home, lock)
    finally:
        os.close(lock)
    return address


def choose(home: Home, named: str | None) -> ServerBinary:
    """The program to start over the data of `home`: the first that fits them; the marker is written before any data."""
    marker = Marker.read(home.path)
    rejected: list[str] = []
    unfit: ServerBinary | None = None
    for binary in candidates(rejected, named):
        if marker is None:
            Marker(binary.family, binary.version_text).write(home.path)
            return binary
        if marker.fits(binary):
            return binary
        unfit = unfit or binary
    if marker is not None and unfit is not None:
        raise marker.refusal(home.path, unfit)
    raise none_found(rejected)


def settings(home: Home, address: Address) -> dict[str, Setting]:
    """The configuration of the server of `home`: the flags all our servers share, and where its files are."""
    where: dict[str, Setting] = {"bind": "127.0.0.1", "port": 0}
    if isinstance(address, str):
        where |= {"unixsocket": Path(address), "unixsocketperm": "700"}
    else:
        where["port"] = address[1]
    own: dict[str, Setting] = {
        "requirepass": home.password(),
        "dir": home.path,
        "logfile": home.log,
        "pidfile": home.pidfile,
        "daemonize": "no",
    }
    return {**SERVER_FLAGS, **where, **own}


def watch(home: Home) -> None:
    """Start the watchdog where none lives and the server is to be stopped when idle. Safe to repeat."""
    state = home.read_state()
    if state is None or not state.idle_seconds or not sys.executable:
        return
    lock = take(home.watch_lock)
    if lock is None:
        return
    command = [
        sys.executable,
        "-P",
        "-c",
        WATCHDOG,
        str(Path(__file__).parents[1]),
        "--watch",
        str(home.path),
    ]
    try:
        _detach(command if sys.platform == "win32" else [*command, "--lock", str(lock)], home, lock)
    finally:
        os.close(lock)


def _detach(command: list[str], home: Home, lock: int) -> None:
    """Run `command` as nobody's child, holding `lock` for as long as it lives.

    A shell in between starts it in the background and ends, so that it is no child of ours: nothing waits for it
    here, and it does not hear the signals of our terminal.
    """
    with home.log.open("ab") as log:
        if sys.platform == "win32":  # pragma: no cover - not among the platforms of the tests
            flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
            subprocess.Popen(  # noqa: S603 - our own command line
                command, stdout=log, stderr=log, cwd=home.path, creationflags=flags
            )
            return
        subprocess.run(  # noqa: S603 - our own command line, passed word by word
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.path,
            pass_fds=(lock,),
            start_new_session=True,
            umask=0o077,
            check=True,
        )


def _answers(home: Home, address: Address, seconds: float) -> bool:
    """Wait until the server answers: False when it ended instead. Raises Unavailable when it does neither in time."""
    end = time.monotonic() + seconds
    while True:
        if ready(home, address):
            return True
        if not held(home.server_lock) and sys.platform != "win32":
            return False
        if time.monotonic() >= end:
            raise Unavailable(f"the server of {home.path} has not answered for {seconds:g} s, see {home.log}")
        time.sleep(PAUSE)


def ready(home: Home, address: Address) -> bool:
    """Whether the server at `address` answers PING with our password; one that is still loading does not."""
    try:
        with Link(address, home.password()) as link:
            return link.text("PING") == "PONG"
    except (OSError, ReplyError):
        return False


def _turn_log(home: Home) -> None:
    if home.log.exists() and home.log.stat().st_size > LOG_BYTES:
        home.log.replace(home.log.with_suffix(".log.1"))


def _last_words(home: Home) -> str:
    lines = home.log.read_text(errors="replace").splitlines()
    return " / ".join(line.strip() for line in lines[-3:]) or "none"
