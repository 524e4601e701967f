"""The demo on a screen: a live table where there is a terminal, plain lines where there is none."""

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from ... import RunState
from ..screen import BAD, DIM, GOOD, WAITS, Screen, columns
from .stage import WORKERS, Stage
from .story import Line

STYLES = {RunState.FINISHED: GOOD, RunState.WAITING: WAITS, RunState.READY: DIM}


def intro(stage: Stage) -> Text:
    """What is going to be seen."""
    return Text.assemble(
        f"A support desk: {len(stage.scripts)} cases, {WORKERS} worker processes, and ana, who decides.\n",
        (f"Server: {stage.server}. One worker will be killed at work.\n", DIM),
    )


def table(stage: Stage) -> RenderableType:
    """All cases as they are now."""
    grid = columns(("CASE", "NOW", "PAUSED BY", "ANSWERED BY", "WENT ON AT"))
    for column, width in zip(grid.columns, (15, 24, 9, 11, 10), strict=True):
        column.width, column.no_wrap, column.overflow = width, True, "ellipsis"
    for line in stage.lines:
        now = Text(line.now, style=_style(line))
        resumed = Text(line.resumed_by, style=GOOD if line.moved else "")
        grid.add_row(line.title, now, line.paused_by, line.answered_by, resumed)
    lost = f"\n{stage.killed} was killed at work; its cases go on elsewhere." if stage.killed else "\n"
    return Group(grid, Text(lost, style=BAD if stage.killed else ""))


def _style(line: Line) -> str:
    return BAD if line.now.endswith("lost") else STYLES.get(line.state, "")


class Lines:
    """Tells what happened, line by line, each once."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._told: set[tuple[str, float, str, str]] = set()
        self._since: float | None = None
        self._killed = False

    def __call__(self, stage: Stage) -> None:
        """Tells what is new."""
        for event in stage.events:
            key = (event.title, event.at, event.who, event.what.partition(" ")[0])
            if key in self._told:
                continue
            self._told.add(key)
            self._since = self._since or event.at
            self._say(f"{event.at - self._since:5.1f} s  {event.title:<16}  {event.who:<8}  {event.what}")
        if stage.killed and not self._killed:
            self._killed = True
            self._say(f"{'':9}{'':18}{stage.killed:<8}  is killed now, at work")

    def _say(self, line: str) -> None:
        self._screen.out.print(Text(line), soft_wrap=True)


class Picture:
    """Keeps a table on a terminal up to date."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def __call__(self, stage: Stage) -> None:
        """Draws it anew."""
        self._live.update(table(stage))
