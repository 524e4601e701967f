"""The folder of an embedded server: where it is, that it is ours alone, and the files in it. Imports errors only.

Another user of the machine must not get in: the folder and the one of the socket are open to their owner alone,
and a random password stands behind them, which is what protects a server that has to listen on loopback.
"""

import hashlib
import json
import os
import secrets
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from ..errors import InvalidInput
from .resp import Address

SOCKET_BYTES: Final = 100
"""A socket's path is shorter than this many bytes: the limit is 104 on macOS and 108 on Linux, both with a zero."""
PRIVATE: Final = 0o700


def default_home() -> Path:
    """BROKER_HOME, else `broker` in the platform's folder for the state of applications. Touches nothing."""
    named = os.environ.get("BROKER_HOME")
    if named:
        return Path(named).absolute()
    try:
        user = Path.home()
    except RuntimeError:
        raise InvalidInput(
            "BROKER_HOME", "is not set and this user has no home directory", "a directory"
        ) from None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or user / "AppData" / "Local") / "broker"
    if sys.platform == "darwin":
        return user / "Library" / "Application Support" / "broker"
    state = Path(os.environ.get("XDG_STATE_HOME") or "")
    return (state if state.is_absolute() else user / ".local" / "state") / "broker"


def make_private(folder: Path) -> None:
    """Make `folder`, open to its owner alone. Raises InvalidInput when somebody else's or open to others.

    An empty folder of ours is closed to others; one with files in it is not touched, since they may be meant to be
    shared.
    """
    allowed = "a directory of this user with mode 700"
    try:
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        found = folder.lstat()
        if sys.platform == "win32":
            return
        if not stat.S_ISDIR(found.st_mode):
            raise InvalidInput(str(folder), "is a link", allowed)
        if found.st_uid != os.getuid():
            raise InvalidInput(str(folder), f"belongs to user {found.st_uid}, not to {os.getuid()}", allowed)
        if found.st_mode & 0o077 and not any(folder.iterdir()):
            folder.chmod(PRIVATE)
        elif found.st_mode & 0o077:
            mode = f"{stat.S_IMODE(found.st_mode):o}"
            raise InvalidInput(str(folder), f"is open to other users (mode {mode})", f"{allowed} (chmod 700)")
    except OSError as error:
        raise InvalidInput(str(folder), f"cannot be used ({error.strerror})", allowed) from None


@dataclass(frozen=True, slots=True)
class State:
    """What is written down at a start: where the server listens, how long it may be idle (0: for ever), since when."""

    address: Address
    idle_seconds: float
    since: datetime


@dataclass(frozen=True, slots=True)
class Home:
    """The files of one embedded server. Making the value touches nothing."""

    path: Path

    @property
    def config(self) -> Path:
        """The configuration that the server is started with."""
        return self.path / "server.conf"

    @property
    def log(self) -> Path:
        """What the server and its watchdog print."""
        return self.path / "server.log"

    @property
    def pidfile(self) -> Path:
        """Written by the server; removed before each start, so that it never names another process."""
        return self.path / "server.pid"

    @property
    def start_lock(self) -> Path:
        """Held by whoever looks for the server, starts it or stops it."""
        return self.path / "start.lock"

    @property
    def server_lock(self) -> Path:
        """Held by the server itself for as long as it lives."""
        return self.path / "server.lock"

    @property
    def watch_lock(self) -> Path:
        """Held by the watchdog for as long as it lives."""
        return self.path / "watch.lock"

    def password(self) -> str:
        """The password of this home's server, made when there is none. Call it under the start lock."""
        try:
            return (self.path / "password").read_text(encoding="ascii")
        except FileNotFoundError:
            self.renew_password()
            return self.password()

    def renew_password(self) -> None:
        """Make another one: a port that a server has left may be somebody else's, who was then sent the old one."""
        write_private(self.path / "password", secrets.token_urlsafe(32))

    def read_state(self) -> State | None:
        """What the last start wrote down, or None for a home that never had a server."""
        try:
            said = json.loads((self.path / "server.json").read_text(encoding="utf-8"))
            where = said["address"]
            address = where if isinstance(where, str) else (str(where[0]), int(where[1]))
            return State(address, float(said["idle_seconds"]), datetime.fromisoformat(said["since"]))
        except (FileNotFoundError, ValueError, TypeError, LookupError):
            return None

    def write_state(self, state: State) -> None:
        """Write down where the server will listen, for those who come after."""
        said = {
            "address": state.address,
            "idle_seconds": state.idle_seconds,
            "since": state.since.isoformat(),
        }
        write_private(self.path / "server.json", json.dumps(said) + "\n")

    def choose_address(self) -> Address:
        """A new server's address: a socket in a private folder with a short name, else a free port on loopback.

        Call it under the start lock and with no server alive: what is left at the socket's path is removed.
        """
        for path in self._socket_paths():
            if len(os.fsencode(path)) < SOCKET_BYTES and _can_listen(path):
                return str(path)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return ("127.0.0.1", int(probe.getsockname()[1]))

    def _socket_paths(self) -> Iterator[Path]:
        if sys.platform == "win32":
            return
        yield self.path / "server.sock"
        name = hashlib.sha256(os.fsencode(self.path.resolve())).hexdigest()[:16] + ".sock"
        if os.environ.get("XDG_RUNTIME_DIR"):
            yield Path(os.environ["XDG_RUNTIME_DIR"]).absolute() / "broker" / name
        yield Path(tempfile.gettempdir()).absolute() / f"broker-{os.getuid()}" / name


def _can_listen(path: Path) -> bool:
    """Whether a socket can be made at `path`, in a folder that is ours alone; some file systems have none."""
    try:
        make_private(path.parent)
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(str(path))
        path.unlink()
    except (InvalidInput, OSError):
        return False
    return True


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone may read, whole or not at all."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(
        os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
    draft.replace(path)
