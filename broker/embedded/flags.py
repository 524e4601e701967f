"""How every server of ours is set up, as data: the embedded one, those of the tests, and the one in Compose.

The promises rest on two of these flags: nothing is evicted, and every write is in the append-only file before its
reply (on the disk within a second). Imports nothing of ours.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

SERVER_FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
)
"""Flag -> value. `docker-compose.yml` names the same ones, held to it by a test."""

Setting = str | int | Path | Sequence[str]
"""The value of one flag. A sequence writes the flag once for each (as `user` needs it)."""


def render(settings: Mapping[str, Setting]) -> str:
    """The text of a configuration file. Text is written as given; paths are quoted, so that any name is safe."""
    return "".join(
        f"{flag} {_quoted(str(each)) if isinstance(each, Path) or each == '' else each}\n"
        for flag, value in settings.items()
        for each in ([value] if isinstance(value, (str, int, Path)) else value)
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else _hex(c) for c in escaped) + '"'


def _hex(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))
