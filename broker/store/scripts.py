"""The scripts that run on the server: one file per operation, rendered with the tables they must agree with.

A script is addressed by the hash of its full text. A changed table therefore changes the hash, and two releases of
this package run side by side, each with its own scripts.

A source takes another one in by `--@use _name`. Guards are marked in the sources (`--@guard name`). The test suite
renders the scripts without each guard in turn and fails where no test notices; nothing else ever leaves one out.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from hashlib import sha1
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from ..core.models import OnExpiry
from ..core.states import TRANSITIONS, CallState, Mode, RunState, Settlement
from .fields import FIELDS
from .keys import SEGMENTS

GUARD: Final = re.compile(r"^.*--@guard (\S+)\n", re.MULTILINE)
USE: Final = re.compile(r"^--@use (\S+)\n", re.MULTILINE)
CLOCK: Final = "now = now + tonumber(redis.call('GET', TAG .. SEG.clock) or '0')"

# What a script that is not listed gets: it may run when the server is at its memory limit, since it frees more than
# it takes or lets a run go on (P15). The listed ones bring something new and are refused then.
CREATES: Final = frozenset({"start", "adopt", "suspend", "say"})


@dataclass(frozen=True, slots=True)
class Script:
    """One rendered script: its name, full text, and the hash it is called by."""

    name: str
    text: str
    sha: str


@dataclass(frozen=True, slots=True)
class Rendering:
    """How the scripts are rendered. Anything but the default is for tests.

    `without` leaves out the guards of that name; `clock` adds the offset kept in the partition's clock key to the
    server's time; `publish` is the command that announces (`SPUBLISH` on a cluster).
    """

    publish: str = "PUBLISH"
    clock: bool = False
    without: str | None = None

    def script(self, name: str, *, oom: bool = False) -> Script:
        """The script of one operation; `oom` lets one that creates records run at the memory limit all the same."""
        return _render(self, name, oom or name not in CREATES)


def names() -> tuple[str, ...]:
    """The names of all scripts, sorted."""
    return tuple(
        sorted(f.name[:-4] for f in _folder().iterdir() if f.name.endswith(".lua") and f.name[0] != "_")
    )


def guards(name: str) -> tuple[str, ...]:
    """The names of the guards in one script file (`_prelude` for those shared by all)."""
    return tuple(dict.fromkeys(GUARD.findall(_source(name))))


def _folder() -> Traversable:
    return files(__package__) / "lua"


@cache
def _source(name: str) -> str:
    return str((_folder() / f"{name}.lua").read_text(encoding="utf-8"))


def _set(words: type[StrEnum]) -> str:
    return "{ " + ", ".join(f"{word.value} = true" for word in words) + " }"


# A word of a script such as RUN.READY or SEG.run is put in as its text: a table of them would be built anew at every
# call. A field of a record, always written f.name, gets the short name it has on the server.
WORD: Final = re.compile(r"\b(RUN|SET|CALL|MODE|EXPIRY)\.([A-Z_]+)\b")
SEGMENT: Final = re.compile(r"\bSEG\.([a-z_]+)\b")
FIELD: Final = re.compile(r"\bf\.([a-z_]+)\b")
WORDS: Final[dict[str, type[StrEnum]]] = {
    "RUN": RunState,
    "SET": Settlement,
    "CALL": CallState,
    "MODE": Mode,
    "EXPIRY": OnExpiry,
}


def _word(found: re.Match[str]) -> str:
    return f"'{WORDS[found[1]][found[2]].value}'"


def _put_in(text: str) -> str:
    """The words, segments and fields of a script as they are on the server."""
    text = WORD.sub(_word, text)
    text = SEGMENT.sub(lambda found: f"'{SEGMENTS[found[1]]}'", text)
    return FIELD.sub(lambda found: f"f.{FIELDS[found[1]]}", text)


_KINDS: Final = {"run": SEGMENTS["run"], "interrupt": SEGMENTS["interrupt"], "call": SEGMENTS["calls"]}
"""The records of the transition table, as scripts call them."""


def _constants(publish: str, body: str) -> str:
    moves = [
        f"['{_KINDS[row.record]}{row.operation} {row.before or 'none'} {after}'] = true"
        for row in TRANSITIONS
        if f"'{row.operation}'" in body
        for after in row.after
    ]
    states = {"run": RunState, "interrupt": Settlement}
    return "\n".join(
        (
            f"local PUBLISH = '{publish}'",
            f"local MOVES = {{ {', '.join(moves)} }}",
            f"local STATES = {{ {', '.join(f'[SEG.{kind}] = {_set(words)}' for kind, words in states.items())} }}",
        )
    )


@cache
def _render(how: Rendering, name: str, oom: bool) -> Script:  # noqa: FBT001
    prelude = _source("_prelude").replace("--@clock", CLOCK if how.clock else "")
    used = USE.sub(lambda found: _source(found[1]), _source(name))
    body = "\n".join((_constants(how.publish, used), prelude, used))
    if how.without is not None:
        body = GUARD.sub(lambda found: "" if found[1] == how.without else found[0], body)
    lines = (line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("--"))
    text = ("#!lua flags=allow-oom\n" if oom else "#!lua\n") + _put_in("\n".join(lines)) + "\n"
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())
