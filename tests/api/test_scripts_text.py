"""What the text of every script on the server has to keep to, whatever it does."""

import re
from itertools import chain
from pathlib import Path

import pytest

from broker.core.states import CallState, RunState, Settlement

LUA = Path(__file__).resolve().parents[2] / "broker/store/lua"
FILES = sorted(LUA.glob("*.lua"))
SCRIPTS = [path for path in FILES if not path.name.startswith("_")]

STATES = {str(state) for state in chain(RunState, Settlement, CallState)}

# Managed services and narrow ACLs forbid these; what needs them has a tested substitute elsewhere.
FORBIDDEN = {
    *(
        "ACL",
        "CLIENT",
        "CLUSTER",
        "CONFIG",
        "DEBUG",
        "EVAL",
        "EVALSHA",
        "FCALL",
        "FLUSHALL",
        "FLUSHDB",
        "FUNCTION",
    ),
    *(
        "KEYS",
        "LATENCY",
        "MEMORY",
        "MODULE",
        "MONITOR",
        "RANDOMKEY",
        "REPLICAOF",
        "SAVE",
        "SCAN",
        "SCRIPT",
        "SELECT",
    ),
    *("SHUTDOWN", "SLOWLOG", "WAIT", "WAITAOF"),
}

# Words that name an event or a reply may look like states; these are the places where they stand.
NAMES = re.compile(
    r"""
      \bhistory\([^,()]*(?:\([^()]*\))?[^,()]*,\s*$  # the name of an event
    | \btell\(\s*$                                  # the same, on a bell
    | '(?:event|for)',\s*$                           # the same, on a bell
    | \bevent\s*=\s*$
    | (?:return|reply\s*=)\s*\{\s*(?:'\w+',\s*)?$      # the name of a reply, or its reason
    """,
    re.VERBOSE,
)
QUOTED = re.compile(r"""(['"])((?:\\.|(?!\1).)*)\1""")


def code(path: Path) -> list[tuple[int, str]]:
    """Numbered lines without their comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(number, re.sub(r"--.*", "", line)) for number, line in enumerate(lines, 1)]


def spelt_states(line: str) -> list[str]:
    """Quoted words of the line that are states and stand where no name of another thing can stand."""
    return [
        quoted.group(2)
        for quoted in QUOTED.finditer(line)
        if quoted.group(2) in STATES and not NAMES.search(line[: quoted.start()])
    ]


def test_there_are_scripts() -> None:
    assert SCRIPTS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_script_spells_a_state(path: Path) -> None:
    assert [(number, words) for number, line in code(path) if (words := spelt_states(line))] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_script_uses_a_command_that_may_be_forbidden(path: Path) -> None:
    words = {quoted.group(2) for _, line in code(path) for quoted in QUOTED.finditer(line)}
    assert words & FORBIDDEN == set()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_says_what_it_takes_and_gives(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    header = lines[: next(number for number, line in enumerate(lines) if not line.startswith("--"))]
    assert header[0].startswith(f"-- {path.stem}: ")
    missing = [
        word
        for word in ("KEYS", "ARGV", "Reply")
        if not any(line.startswith(f"-- {word} ") for line in header)
    ]
    assert missing == []
    assert "repeat" in "\n".join(header)


@pytest.mark.report("RA62")
def test_the_clock_is_read_in_one_place() -> None:
    clocks = [path.name for path in FILES for _, line in code(path) if "'TIME'" in line or "os.time" in line]
    assert clocks == ["_prelude.lua"]


@pytest.mark.parametrize(
    "line",
    [
        "if f.state == 'ready' then",
        "move(r, 'lease', 'leased')",
        'set(r, "state", "open")',
        "f.state = 'dead'",
    ],
)
def test_a_spelt_state_is_noticed(line: str) -> None:
    assert spelt_states(line)


@pytest.mark.parametrize(
    "line",
    [
        "tell('dead', r.id, f.session)",
        "history(f.session, 'leased', id)",
        "'event', 'dead'",
    ],
)
def test_names_of_other_things_are_not_states(line: str) -> None:
    assert not spelt_states(line)
