"""Which server wrote the data of a home, kept in a file beside them. Imports errors only.

A server that cannot read what another wrote either refuses to start or, worse, starts anew beside it. So the marker
is written before the first start, and a program that does not fit it is never tried.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from ..errors import UnsuitableServer
from .binaries import Family, ServerBinary

MARKER: Final = "server-family.json"
"""Name of the file."""
DATA: Final = "appendonlydir"
"""Name of the folder that every supported server keeps its append-only files in."""


@dataclass(frozen=True, slots=True)
class Marker:
    """Family and version of the server that last wrote the data, and the RDB version in them (None: not yet known)."""

    family: Family
    version: str
    rdb_version: int | None = None

    @classmethod
    def read(cls, home: Path) -> Self | None:
        """The marker of a home, or None for one without data. Raises UnsuitableServer for data of unknown origin."""
        path = home / MARKER
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            return cls(Family(said["family"]), str(said["version"]), said.get("rdb_version"))
        except FileNotFoundError:
            if not (home / DATA).exists():
                return None
            problem = f"{home / DATA} holds data, but {path}, which says whose they are, is missing"
        except (ValueError, KeyError, TypeError):
            problem = f"{path}, which says whose data {home} holds, cannot be read"
        raise UnsuitableServer(
            problem, "Put the file back, or move the data away to begin with an empty home"
        )

    def write(self, home: Path) -> None:
        """Put the marker beside the data, whole or not at all."""
        draft = home / f"{MARKER}.new"
        draft.write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")
        draft.replace(home / MARKER)

    def fits(self, binary: ServerBinary) -> bool:
        """Whether `binary` reads these data: the same family, and no older release than wrote them."""
        return binary.family is self.family and binary.version[:2] >= tuple(
            map(int, self.version.split(".")[:2])
        )

    def refusal(self, home: Path, binary: ServerBinary) -> UnsuitableServer:
        """The error for a program that does not fit."""
        rdb = "" if self.rdb_version is None else f", RDB version {self.rdb_version}"
        return UnsuitableServer(
            f"the data in {home} were written by {self.family.capitalize()} {self.version}{rdb} (so says {MARKER} "
            f"beside them), which {binary} does not read",
            f"Name a {self.family.capitalize()} {self.version} or newer in BROKER_SERVER_BIN, "
            "or use another BROKER_HOME",
        )


def rdb_version_of(home: Path) -> int | None:
    """The version in the head of the newest base file, such as 11 for `REDIS0011` and 80 for `VALKEY080`."""
    bases = sorted((home / DATA).glob("*.base.rdb"), key=lambda path: path.stat().st_mtime)
    if not bases:
        return None
    with bases[-1].open("rb") as file:
        head = re.match(rb"(?:REDIS|VALKEY)(\d+)", file.read(9))
    return int(head[1]) if head else None
