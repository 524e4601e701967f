"""Recorded streams of AG-UI as text: one event of JSON a line, or server-sent events; which of both, the text tells."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from ...core.limits import JSON


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: its event, or what is wrong with it. `event` is whatever JSON it holds, `problem` is None then."""

    event: JSON = field(default=None, repr=False)
    problem: str | None = None


_FIELDS = ("data", "event", "id", "retry", "")
"""What a line of server-sent events may begin with, before its colon; a comment begins with the colon."""


def read_frames(lines: Iterable[str]) -> Iterator[Frame]:
    """The frames of a stream, in order; blank lines and comments are none. Never raises for what it reads."""
    rest = iter(lines)
    for line in rest:
        text = line.lstrip("\ufeff").rstrip("\r\n")
        if text.strip():
            is_sse = text.partition(":")[0] in _FIELDS
            yield from _of_events(_chained(text, rest)) if is_sse else _of_lines(_chained(text, rest))
            return


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    for line in rest:
        yield line.rstrip("\r\n")


def _of_lines(lines: Iterator[str]) -> Iterator[Frame]:
    for line in lines:
        if line.strip():
            yield _frame(line)


def _of_events(lines: Iterator[str]) -> Iterator[Frame]:
    data: list[str] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not line:
            if data:
                yield _frame("\n".join(data))
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))
        elif name not in _FIELDS or not colon:
            yield Frame(problem="holds a line that is no field of server-sent events, and is not read")
    if data:
        yield Frame(problem="ends without the empty line that would hand it on")


def _frame(text: str) -> Frame:
    try:
        return Frame(json.loads(text, parse_constant=_refuse))
    except RecursionError:
        return Frame(problem="is nested too deep")
    except ValueError as error:
        return Frame(problem=f"is not JSON ({error})")


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
