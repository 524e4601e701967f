"""`broker agui check`: holds a recorded stream of AG-UI events against the protocol's rules."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from ..errors import InvalidInput
from ..interop.agui.rules import Level, Violation
from ..interop.agui.validator import StreamValidator, check_stream
from .invocation import Invocation
from .screen import BAD, DIM, GOOD, WAITS, count, lines

DOES_NOT_CONFORM = 1
SHOWN = 100
"""So many broken rules are told to a person; a stream that is wrong in one way often is so in every event."""

StreamFile = Annotated[
    str, typer.Argument(metavar="FILE", help="A recorded stream, - for standard input.", show_default=False)
]


async def check(cli: Invocation, file: StreamFile) -> int:
    """Holds a stream of AG-UI events against its rules.

    The stream is one event of JSON a line, or server-sent events. Each rule that is broken is named, with the number
    of the event. The exit code is 0 where the stream conforms: warnings are for what a consumer passes over.
    """
    found = _checked(file)
    if cli.screen.as_json:
        cli.screen.give(
            {
                "conforms": found.conforms,
                "events": found.events,
                "violations": [one.to_json() for one in found.violations],
            }
        )
    else:
        _tell(cli, found)
    return 0 if found.conforms else DOES_NOT_CONFORM


def _checked(file: str) -> StreamValidator:
    if file == "-":
        return check_stream(sys.stdin)
    try:
        with Path(file).open(encoding="utf-8", errors="replace") as stream:
            return check_stream(stream)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not a name of a file"
    raise InvalidInput("FILE", f"cannot be read ({reason})", "a file of events, or - for standard input")


def _tell(cli: Invocation, found: StreamValidator) -> None:
    if found.violations:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style=DIM, no_wrap=True)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for one in found.violations[:SHOWN]:
            grid.add_row(*_row(one))
        cli.screen.say(grid, "")
    if len(found.violations) > SHOWN:
        cli.screen.note(f"{len(found.violations) - SHOWN} more; with --json all of them are told.")
    errors = sum(one.rule.level is Level.ERROR for one in found.violations)
    counted = (
        count(found.events, "event"), count(errors, "error"), count(len(found.violations) - errors, "warning")
    )  # fmt: skip
    verdict = "The stream conforms to AG-UI" if found.conforms else "The stream does not conform to AG-UI"
    cli.screen.say(Text(f"{verdict}: {', '.join(counted)}.", style=GOOD if found.conforms else BAD))


def _row(one: Violation) -> tuple[str, Text, Text]:
    place = "end" if one.event is None else str(one.event)
    style = BAD if one.rule.level is Level.ERROR else WAITS
    return (
        place,
        Text(one.rule.word, style=style),
        lines(f"{one.field}: {one.text}" if one.field else one.text),
    )
