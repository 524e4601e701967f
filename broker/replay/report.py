"""What a replay came to, judged by the server's history, the stored results and what the processes left in files."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..core.digest import content_digest
from ..core.records import HistoryEntry, RunRecord
from ..core.states import RunState, Settlement
from .player import exact
from .transcripts import Transcript

ANSWERED = (Settlement.RESOLVED, Settlement.CANCELLED)


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of a replay.

    `calls` are those in the record, `suspensions` the pauses of runs, `answered` the questions that somebody answered
    (a pause may ask several), `resumed` the pauses that a worker went on from, `resumed_elsewhere` those where it was
    not the process that had paused. `reruns` are executions beyond the first of one call, `lost` runs that are not
    finished, `mismatched` finished runs whose messages are not the recorded ones, `doubled_answers` questions for
    which more than one answer was accepted, `effects` all executions of calls. `wall_s` is from the first start to
    the last end, with all processes connected before; a lifecycle is one pause, answered and gone on from.
    """

    runs: int
    calls: int
    suspensions: int
    answered: int
    resumed: int
    resumed_elsewhere: int
    reruns: int
    lost: int
    mismatched: int
    doubled_answers: int
    effects: int
    wall_s: float
    lifecycles_per_s: float

    @property
    def ok(self) -> bool:
        """Whether every run ended as recorded, nothing ran twice and nothing was decided twice."""
        return not (self.lost or self.mismatched or self.doubled_answers or self.reruns)

    def to_json(self) -> dict[str, Any]:
        """The same as one JSON object."""
        return asdict(self)


@dataclass(slots=True)
class Story:
    """What the server's history tells of one run: who paused at which number, and who went on from there."""

    paused: dict[int, str] = field(default_factory=dict)
    resumed: dict[int, str] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    _holder: str = ""

    @classmethod
    def of(cls, entries: Iterable[HistoryEntry]) -> "Story":
        """The story in a run's entries, oldest first."""
        story = cls()
        for entry in entries:
            story._read(entry)
        return story

    def _read(self, entry: HistoryEntry) -> None:
        match entry.event:
            case "leased":
                self._holder = entry.detail or ""
            case "suspended" if entry.seq not in self.paused:
                self._went_on(entry.seq - 1)
                self.paused[entry.seq] = self._holder
            case RunState.FINISHED:
                self._went_on(entry.seq)
            case event if event in ANSWERED and entry.interrupt_id:
                self.answered.add(entry.interrupt_id)
            case _:
                pass

    def _went_on(self, seq: int) -> None:
        if seq in self.paused:
            self.resumed[seq] = self._holder

    @property
    def elsewhere(self) -> int:
        """How many pauses were gone on from by another process than the one that paused."""
        return sum(holder != self.paused[seq] for seq, holder in self.resumed.items())


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found after a replay: per recorded run its record on the server and its part of the history."""

    transcripts: Sequence[Transcript]
    records: Sequence[RunRecord | None]
    stories: Sequence[Story]
    effects: Sequence[str]
    answers: Sequence[str]
    wall_s: float


def judge(found: Evidence) -> Report:
    """The counts, from evidence alone."""
    resumed = sum(len(story.resumed) for story in found.stories)
    done = [one is not None and one.state is RunState.FINISHED for one in found.records]
    return Report(
        runs=len(found.transcripts),
        calls=sum(len(one.calls) for one in found.transcripts),
        suspensions=sum(len(story.paused) for story in found.stories),
        answered=sum(len(story.answered) for story in found.stories),
        resumed=resumed,
        resumed_elsewhere=sum(story.elsewhere for story in found.stories),
        reruns=sum(times - 1 for times in Counter(found.effects).values()),
        lost=done.count(False),
        mismatched=sum(
            finished and not _matches(one, record)
            for finished, one, record in zip(done, found.transcripts, found.records, strict=True)
        ),
        doubled_answers=sum(times > 1 for times in accepted(found.answers).values()),
        effects=len(found.effects),
        wall_s=round(found.wall_s, 3),
        lifecycles_per_s=round(resumed / found.wall_s, 1) if found.wall_s else 0.0,
    )


def accepted(answers: Iterable[str]) -> dict[str, int]:
    """How many accepted answers each interrupt has, in the approvers' own records."""
    counts: dict[str, int] = defaultdict(int)
    for line in answers:
        record = json.loads(line)
        if record["outcome"] == "accepted":
            counts[record["interrupt"]] += 1
    return counts


def _matches(transcript: Transcript, record: RunRecord | None) -> bool:
    result = record.result if record else None
    if not isinstance(result, dict):
        return False
    text = exact(list(transcript.messages))
    if "digest" in result:
        return bool(result["digest"] == content_digest(text.encode()))
    return exact(result.get("messages")) == text
