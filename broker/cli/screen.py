"""The terminal: what is said on it, in few colours and within its width. Data is text here, never markup.

Answers go to standard output, everything else (faults, notes, progress) to standard error.
"""

import asyncio
import sys
from collections.abc import Awaitable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..core.answers import Principal, PrincipalKind
from ..core.limits import JSON
from .safe import machine_json, pretty_json, safe, safe_lines

T = TypeVar("T")

SLOW_SECONDS = 0.4
"""After so long a wait is explained."""

DIM, GOOD, BAD, WAITS, NAME = "dim", "green", "red", "yellow", "bold"


class _Console(Console):
    """A console whose reader may leave."""

    def on_broken_pipe(self) -> None:
        """The reader has left: the command ends."""
        raise BrokenPipeError


class Screen:
    """Where one command speaks. With `as_json`, standard output gets JSON and nothing else."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.out: _Console = _Console(highlight=False, markup=False, emoji=False)
        self.err: _Console = _Console(highlight=False, markup=False, emoji=False, stderr=True)

    def give(self, value: JSON) -> None:
        """The one JSON value of this command, on standard output."""
        sys.stdout.write(machine_json(value, indent=sys.stdout.isatty()) + "\n")

    def say(self, *parts: RenderableType) -> None:
        """Some blocks for a person, on standard output. Long words are folded, never cut."""
        for part in parts:
            self.out.print(part, overflow="fold")

    def note(self, text: str) -> None:
        """A remark beside the answer, on standard error."""
        self.err.print(Text(text, style=DIM), overflow="fold")

    def complain(self, sentence: str) -> None:
        """A fault, on standard error."""
        self.err.print(Text.assemble(("broker: ", BAD), safe(sentence)), overflow="fold")

    async def busy(self, what: str, work: Awaitable[T]) -> T:
        """The result of `work`; a wait that gets long is explained on a terminal."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait([task], timeout=SLOW_SECONDS)
            if not done and self.err.is_terminal:
                with self.err.status(Text(what, style=DIM), spinner_style=DIM):
                    return await task
            return await task
        finally:
            task.cancel()


def facts(rows: Iterable[tuple[str, RenderableType | None]]) -> RenderableType:
    """Label and value, line by line; rows without a value are left out."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style=DIM, no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        if value is not None and value != "":
            grid.add_row(label, Text(value) if isinstance(value, str) else value)
    return grid


def columns(heads: Sequence[str], *, right: Sequence[str] = (), names: str = "") -> Table:
    """A quiet table: dim heads, no lines. Columns named in `right` hold numbers; the one in `names` stands out."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=DIM, pad_edge=False)
    for head in heads:
        table.add_column(
            head,
            justify="right" if head in right else "left",
            no_wrap=head in right,
            overflow="fold",
            style=NAME if head == names else "",
        )
    return table


def inset(part: RenderableType, left: int = 2) -> Padding:
    """A block, moved to the right."""
    return Padding(part, (0, 0, 0, left), expand=False)


def text(value: str, style: str = "") -> Text:
    """Somebody's text on one line."""
    return Text(safe(value), style=style)


def lines(value: str, style: str = "") -> Text:
    """Somebody's text, which may have lines."""
    return Text(safe_lines(value), style=style)


def json_block(value: JSON) -> Text:
    """Somebody's JSON."""
    return Text(pretty_json(value))


def who(by: Principal | None, *, plainly: bool = False) -> str:
    """A party in words: its id, what it is when it is no person, and whether that was verified."""
    if by is None:
        return "nobody"
    words = [by.id]
    if by.kind != PrincipalKind.PERSON:
        words.append(f"{'an' if by.kind == PrincipalKind.AGENT else 'a'} {by.kind}")
    if not plainly and by.verified:
        words.append("verified")
    return safe(", ".join(words))


def when(moment: datetime | None) -> str | None:
    """A moment in the local time of whoever looks."""
    return None if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


def span(length: timedelta) -> str:
    """A length of time by one unit: `45 s`, `2 min`, `5 h`, `3 d`."""
    number, unit = _measured(length)
    return f"{number} {unit}"


def brief_span(length: timedelta) -> str:
    """The same in few letters, for a list: `45s`, `2m`, `5h`, `3d`."""
    number, unit = _measured(length)
    return f"{number}{unit[0]}"


def _measured(length: timedelta) -> tuple[int, str]:
    seconds = max(round(length.total_seconds()), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size - size // 60:
            return round(seconds / size), unit
    return seconds, "s"


def ago(moment: datetime) -> str:
    """How long ago a moment was; clocks that disagree make it `now`, never a time to come."""
    length = datetime.now(UTC) - moment
    return "now" if length < timedelta(seconds=1) else f"{span(length)} ago"


def until(moment: datetime) -> str:
    """How long it is to a moment."""
    length = moment - datetime.now(UTC)
    return f"in {span(length)}" if length > timedelta() else "now"


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"
