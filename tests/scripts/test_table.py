"""The protocol's table against the code's table and against the scripts, row by row (protocol.toml)."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from broker.core.states import TRANSITIONS
from broker.store import scripts

from .rows import ROWS, Key
from .snapshot import Snapshot, changed
from .world import World

TABLE = tomllib.loads((Path(__file__).parents[1] / "protocol.toml").read_text(encoding="utf-8"))
MOVES = set(TABLE["moves"])


class Row(NamedTuple):
    """One row of the table."""

    key: Key
    outcome: str
    next: str
    bells: list[str]
    writes: list[str]

    def __str__(self) -> str:
        return "-".join(self.key).replace(" ", "_").replace(":", "")


def rows() -> Iterator[Row]:
    for step in TABLE["step"]:
        for found, guard, outcome, then, bells, *writes in step["rows"]:
            key = Key(step["operation"], step["record"], found, guard)
            yield Row(key, outcome, then, bells, *(writes or [[]]))


ALL = list(rows())


def test_every_transition_of_the_code_is_in_the_protocol() -> None:
    stated = {(r.key.record, r.key.operation, r.key.found, r.next) for r in ALL}
    code = {
        (str(t.record), t.operation, str(t.before or "none"), str(after))
        for t in TRANSITIONS
        for after in t.after
    }
    assert code - stated == set()


def test_every_move_of_the_protocol_is_in_the_code() -> None:
    code = {
        (str(t.record), t.operation, str(t.before or "none"), str(after))
        for t in TRANSITIONS
        for after in t.after
    }
    moves = {(r.key.record, r.key.operation, r.key.found, r.next) for r in ALL if r.key.found != r.next}
    assert moves - code == set()


def test_every_row_is_set_up_once() -> None:
    keys = [r.key for r in ALL]
    assert sorted(keys) == sorted(set(keys))
    assert set(keys) ^ ROWS.keys() == set()


def test_no_script_makes_transitions_without_rows() -> None:
    assert set(TABLE["later"]) & set(scripts.names()) == set()


def but_bells(before: Snapshot, after: Snapshot, allowed: list[str]) -> list[str]:
    """The keys that changed, without those of doorbells and of the kinds allowed."""
    free = ("interrupts", "dispositions", "idle:", "unseen:", *(f"{kind}:" for kind in allowed), *allowed)
    return [name for name in changed(before, after) if not name.partition("}:")[2].startswith(free)]


def check(world: World, row: Row) -> None:
    """Sets a row up, does it, and compares what is told, the state after, the bells, and what else changed."""
    case = ROWS[row.key](world)
    assert (case.look() or "none") == row.key.found
    bells, before = world.bells(), world.snapshot(fields=("bell",) if row.bells else ())
    assert case.act() == row.outcome
    assert (case.look() or "none") == row.next
    assert sorted(name for name, count in world.bells().items() if count > bells[name]) == sorted(row.bells)
    if row.next == row.key.found and (row.outcome not in MOVES or row.writes):
        after = world.snapshot(fields=("bell",) if row.bells else ())
        found = but_bells(before, after, row.writes) if row.bells or row.writes else changed(before, after)
        assert found == []


@pytest.mark.parametrize("row", ALL, ids=str)
def test_a_script_does_what_its_row_says(world: World, row: Row) -> None:
    """P2, P3 and the rules of protocol.md that each row stands for; a refusal changes no key at all."""
    check(world, row)
