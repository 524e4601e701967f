"""The protocol's own table (tests/protocol.toml) as the model reads it. The project's states.py is not asked."""

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Key(NamedTuple):
    """What is done, to which record, in which state, and what is true beside it."""

    operation: str
    record: str
    found: str
    guard: str


class Row(NamedTuple):
    """What the caller is told, the state afterwards, and the doorbells that ring."""

    told: str
    next: str
    bells: frozenset[str]


class Table:
    """Every row of the protocol, and which of them were asked for."""

    def __init__(self) -> None:
        self._rows = dict(_rows())
        self.asked: set[Key] = set()

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, operation: str, record: str, found: str, guard: str) -> Row:
        """What the protocol says of this.

        A guard that is stated for some states only refuses (or repeats) alike in those that the table leaves out: the
        same is told, the state stays, and no more rings than in any of them.
        """
        key = Key(operation, record, found, guard)
        if key in self._rows:
            self.asked.add(key)
            return self._rows[key]
        alike = [
            row for k, row in self._rows.items() if k == key._replace(found=k.found) and row.next == k.found
        ]
        if not alike:
            msg = f"the protocol says nothing of {key}"
            raise LookupError(msg)
        least = min(alike, key=lambda row: len(row.bells))
        return least._replace(next=found)

    def leads(self, operation: str, record: str, found: str, wanted: str) -> bool:
        """Whether the operation may take such a record to the state wanted."""
        ways = [
            k for k, row in self._rows.items() if k[:3] == (operation, record, found) and row.next == wanted
        ]
        self.asked.update(ways[:1])
        return bool(ways)

    def never_asked(self) -> list[Key]:
        """The rows that nothing came by."""
        return sorted(self._rows.keys() - self.asked)


@cache
def _steps() -> list[dict[str, object]]:
    text = (Path(__file__).parents[1] / "protocol.toml").read_text(encoding="utf-8")
    steps: list[dict[str, object]] = tomllib.loads(text)["step"]
    return steps


def _rows() -> Iterator[tuple[Key, Row]]:
    for step in _steps():
        rows = step["rows"]
        assert isinstance(rows, list)
        for found, guard, told, then, bells, *_ in rows:
            key = Key(str(step["operation"]), str(step["record"]), found, guard)
            yield key, Row(told, then, frozenset(bells))
