"""Text and JSON from anybody, made fit for a page: what would hide, turn or control text is shown by its code point.

Templates escape everything; nothing here makes markup.
"""

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, NamedTuple

from ...core.digest import canonical_json
from ...core.limits import JSON

LONG: Final = 600
"""Text of more characters is folded."""
BRIEF: Final = 120
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)
MOST_ROWS: Final = 400
"""A value of more parts is shown as plain JSON only."""
MOST_LEVELS: Final = 8


class Piece(NamedTuple):
    """A part of a text: either it reads as it is, or it is the name of a character that would not show."""

    text: str
    is_hidden: bool


def pieces(text: str) -> list[Piece]:
    """A text in parts, in order: what can be read, and the names of what could not be seen (`U+202E`)."""
    if text.isprintable():
        return [Piece(text, is_hidden=False)]
    found: list[Piece] = []
    for hidden, characters in groupby(text.replace("\r\n", "\n"), _hides):
        if hidden:
            found += [Piece(f"U+{ord(one):04X}", is_hidden=True) for one in characters]
        else:
            found.append(Piece("".join(characters), is_hidden=False))
    return found


def plain(text: str) -> str:
    """The same as one string, for titles and labels."""
    return "".join(f"[{one.text}]" if one.is_hidden else one.text for one in pieces(text))


def _hides(character: str) -> bool:
    return not (character.isprintable() or character in "\n\t" or unicodedata.category(character) == "Zs")


def brief(value: JSON, most: int = BRIEF) -> str:
    """A value on one line of at most so many characters; an object as its names and values."""
    if isinstance(value, dict):
        parts = []
        for name, item in value.items():
            parts.append(f"{name}: {_one_line(item, most)}")
            if sum(map(len, parts)) > most:
                break
        text = "  ·  ".join(parts)
    else:
        text = _one_line(value, most)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _one_line(value: JSON, most: int) -> str:
    if isinstance(value, str):
        return " ".join(value[: most * 2].split())
    parts: list[str] = []
    for part in _ENCODER.iterencode(value):  # no further than it is shown
        parts.append(part)
        if sum(map(len, parts)) > most:
            break
    return "".join(parts)


def raw(value: JSON, indent: int | None = 2) -> str:
    """A value as JSON for a person: what would not show is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1] if _hides(character) else character


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a value shown as a tree: how deep it lies, its name, and its value where it has no parts."""

    depth: int
    name: str
    kind: str
    value: Any = field(default=None, repr=False)


def rows(value: JSON) -> list[Row] | None:
    """A value as lines of a tree; None where it is too large or deep for that, or has no parts."""
    if not isinstance(value, dict | list) or not value:
        return None
    found: list[Row] = []
    for row in _walk(value, 0):
        found.append(row)
        if len(found) > MOST_ROWS or row.depth > MOST_LEVELS:
            return None
    return found


def _walk(value: JSON, depth: int) -> Iterator[Row]:
    items = value.items() if isinstance(value, dict) else ((f"{n + 1}", one) for n, one in enumerate(value))
    for name, item in items:
        if isinstance(item, dict | list) and item:
            yield Row(depth, name, "parts")
            yield from _walk(item, depth + 1)
        else:
            yield Row(depth, name, kind_of(item), item if isinstance(item, str) else json.dumps(item))


def kind_of(value: JSON) -> str:
    """The sort of a JSON value without parts."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "nothing" if value is None else "empty"


class Change(NamedTuple):
    """One place where two values differ; None on the side where there is nothing."""

    path: str
    before: str | None
    after: str | None


def changes(before: JSON, after: JSON, at: str = "") -> list[Change]:
    """Where two values differ, with what stands there before and after, in the order of the first."""
    if isinstance(before, dict) and isinstance(after, dict):
        found: list[Change] = []
        for name in [*before, *(name for name in after if name not in before)]:
            path = f"{at}.{name}" if at else name
            if name not in after:
                found.append(Change(path, _told(before[name]), None))
            elif name not in before:
                found.append(Change(path, None, _told(after[name])))
            else:
                found += changes(before[name], after[name], path)
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [one for n, (old, new) in pairs for one in changes(old, new, f"{at}[{n + 1}]")]
    return (
        [] if canonical_json(before) == canonical_json(after) else [Change(at, _told(before), _told(after))]
    )


def _told(value: JSON) -> str:
    return value if isinstance(value, str) else raw(value)
