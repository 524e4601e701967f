"""A recorded stream of AG-UI events, read, judged and told on the screen."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.table import Table
from rich.text import Text

from ..errors import InvalidInput
from ..interop.agui import Level, StreamValidator, Violation, check_stream
from .screen import BAD, DIM, GOOD, WAITS, Screen, count, lines

SHOWN = 100
"""So many broken rules are told to a person; a stream that is wrong in one way often is so in every event."""


def checked(file: str) -> StreamValidator:
    """The stream in a file, or on standard input for `-`. Raises `InvalidInput` where it cannot be read."""
    if file == "-":
        return check_stream(_text(sys.stdin.buffer))
    try:
        with Path(file).open("rb") as stream:
            return check_stream(_text(stream))
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not a name of a file"
    raise InvalidInput("FILE", f"cannot be read ({reason})", "a file of events, or - for standard input")


def _text(stream: Iterable[bytes]) -> Iterator[str]:
    """Its lines, in UTF-8 wherever it is read; a byte that is none of it spoils its own event."""
    return (line.decode("utf-8", "replace") for line in stream)


def tell(screen: Screen, found: StreamValidator) -> None:
    """The broken rules, event by event, and the verdict."""
    if found.violations:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style=DIM, no_wrap=True)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for one in found.violations[:SHOWN]:
            grid.add_row(*_row(one))
        screen.say(grid, "")
    if len(found.violations) > SHOWN:
        screen.note(f"{len(found.violations) - SHOWN} more; with --json all of them are told.")
    errors = sum(one.rule.level is Level.ERROR for one in found.violations)
    counted = (
        count(found.events, "event"), count(errors, "error"), count(len(found.violations) - errors, "warning")
    )  # fmt: skip
    verdict = "The stream conforms to AG-UI" if found.conforms else "The stream does not conform to AG-UI"
    screen.say(Text(f"{verdict}: {', '.join(counted)}.", style=GOOD if found.conforms else BAD))


def _row(one: Violation) -> tuple[str, Text, Text]:
    place = "end" if one.event is None else str(one.event)
    style = BAD if one.rule.level is Level.ERROR else WAITS
    return (
        place,
        Text(one.rule.word, style=style),
        lines(f"{one.field}: {one.text}" if one.field else one.text),
    )
