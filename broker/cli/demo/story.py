"""What happened in the demo, read from the sessions' histories on the server: the record is the only witness."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ... import HistoryEntry, RunRecord, RunState, Settlement
from ...core.limits import JSON
from ...replay.report import Story
from .desk import Message
from .people import Notes

ENDED = (Settlement.RESOLVED, Settlement.CANCELLED, Settlement.EXPIRED)


@dataclass(slots=True)
class Line:
    """One case as the table shows it: where it is, and who had it around its last pause."""

    title: str
    now: str = "starts"
    state: RunState = RunState.READY
    holder: str = ""
    paused_by: str = ""
    answered_by: str = ""
    resumed_by: str = ""

    @property
    def moved(self) -> bool:
        """Whether another worker went on than the one that paused."""
        return bool(self.resumed_by) and self.resumed_by != self.paused_by


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the plain telling."""

    at: float
    title: str
    who: str
    what: str


def follow(title: str, entries: Sequence[HistoryEntry], notes: Notes) -> tuple[Line, list[Event]]:
    """A case's line, and everything that happened in it, from its history."""
    line, events = Line(title), []
    for entry in entries:
        found = _read(line, entry, notes)
        if found is not None:
            events.append(Event(entry.at.timestamp(), title, *found))
    return line, events


def _read(line: Line, entry: HistoryEntry, notes: Notes) -> tuple[str, str] | None:
    about = notes.tools.get(entry.interrupt_id or "", "")
    match entry.event:
        case "leased":
            line.state, line.holder, line.now = RunState.LEASED, entry.detail or "", "runs"
            if not entry.seq:
                return line.holder, "began"
            line.resumed_by = line.holder
            return (
                line.holder,
                f"went on, {line.paused_by} had paused it" if line.moved else "went on where it had paused",
            )
        case "suspended":
            first = line.state is not RunState.WAITING
            line.state, line.now = RunState.WAITING, f"waits: {about}" if about else "waits for an answer"
            line.paused_by, line.answered_by, line.resumed_by = line.holder, "", ""
            return (line.holder, "paused") if first else None
        case "lease_lost":
            line.state, line.now = RunState.READY, f"{entry.detail} was lost"
            return entry.detail or "", "was lost, another worker goes on"
        case RunState.FINISHED:
            line.state, line.now = RunState.FINISHED, "finished"
            return line.holder, "finished"
        case event if event in ENDED:
            word = notes.answers.get(entry.interrupt_id or "", event)
            line.answered_by, line.now = entry.by.id if entry.by else "nobody", f"{word}: {about}"
            return line.answered_by, f"{word}: {about}"
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Counts:
    """What the demo came to. `answered` counts questions, of which one pause may ask several."""

    runs: int
    suspensions: int
    answered: int
    resumed: int
    resumed_elsewhere: int
    lost: int
    mismatched: int
    killed_workers: int
    wall_s: float

    @property
    def ok(self) -> bool:
        """Whether every run ended as it should, and some went on elsewhere."""
        whole = self.suspensions == self.resumed and self.answered >= self.suspensions > 0
        return whole and self.resumed_elsewhere > 0 and not self.lost and not self.mismatched

    def to_json(self) -> dict[str, JSON]:
        """The same as one JSON object."""
        return asdict(self)

    @property
    def last_line(self) -> str:
        """The same on one line."""
        names = ("runs", "suspensions", "answered", "resumed", "resumed_elsewhere", "lost")
        return "  ".join(f"{name} {getattr(self, name)}" for name in names)


def judge(
    histories: Sequence[Sequence[HistoryEntry]], records: Sequence[RunRecord], scripts: Sequence[list[Message]],
    killed: int, wall_s: float,
) -> Counts:  # fmt: skip
    """The counts, from the server's histories and results alone."""
    stories = [Story.of(entries) for entries in histories]
    done = [record.state is RunState.FINISHED for record in records]
    return Counts(
        runs=len(records),
        suspensions=sum(len(story.paused) for story in stories),
        answered=sum(len(story.answered) for story in stories),
        resumed=sum(len(story.resumed) for story in stories),
        resumed_elsewhere=sum(story.elsewhere for story in stories),
        lost=done.count(False),
        mismatched=sum(
            ended and record.result != {"messages": script}
            for ended, record, script in zip(done, records, scripts, strict=True)
        ),
        killed_workers=killed,
        wall_s=round(wall_s, 3),
    )
