"""What a replay came to, judged by the server's history, the stored results and what the processes left in files."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from ..core.digest import content_digest
from ..core.records import HistoryEntry, RunRecord
from ..core.settings import Settings
from ..core.states import RunState, Settlement
from .options import Options
from .player import exact
from .transcripts import Transcript

ANSWERED = (Settlement.RESOLVED, Settlement.CANCELLED)
ACKNOWLEDGED = ("accepted", "replayed")
"""What an approver is told when its answer counts."""


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of a replay.

    `calls` are those in the record, `suspensions` the pauses of runs, `answered` the questions that somebody answered
    (a pause may ask several), `resumed` the pauses that a worker went on from, `resumed_elsewhere` those where it was
    not the process that had paused. `reruns` are executions beyond the first of one call, `lost` runs that are not
    finished, `mismatched` finished runs whose messages are not the recorded ones, `doubled_answers` questions for
    which more than one answer was accepted, `effects` all executions of calls. `wall_s` is from the first start to
    the last end, with all processes connected before; a lifecycle is one pause, answered and gone on from.

    `reruns_unexplained` are those of `reruns` where the process that ran the call before was not killed, or had the
    result in the journal; `missing` answers that were accepted and that the server no longer knows of. `killed` are
    workers, `server_restarts` kills and starts of the server; `taken_over` runs that another process went on with
    since a lease was lost, `taken_over_early` those of them before their first pause. `lease_s`, `pace_s`,
    `merge_turns` and `seed` say how the replay was made.
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
    reruns_unexplained: int
    missing: int
    killed: int
    server_restarts: int
    taken_over: int
    taken_over_early: int
    lease_s: float
    pace_s: float
    merge_turns: int
    seed: int

    @property
    def ok(self) -> bool:
        """Whether every run ended as recorded, and nothing was decided twice, forgotten, or run again without need."""
        return not (
            self.lost or self.mismatched or self.doubled_answers or self.reruns_unexplained or self.missing
        )

    def to_json(self) -> dict[str, Any]:
        """The same as one JSON object."""
        return asdict(self)


@dataclass(slots=True)
class Story:
    """What the server's history tells of one run: who paused at which number, and who went on from there."""

    paused: dict[int, str] = field(default_factory=dict)
    resumed: dict[int, str] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    taken_over: list[int] = field(default_factory=list)
    _holder: str = ""
    _held: bool = False

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
                if self._held:
                    self.taken_over.append(entry.seq or 0)
                self._holder, self._held = entry.detail or "", True
            case "released" | "failed" | "handed_on":
                self._held = False
            case "suspended" if entry.seq not in self.paused:
                self._went_on(entry.seq - 1)
                self.paused[entry.seq] = self._holder
                self._held = False
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
    recorded: Sequence[str]
    answers: Sequence[str]
    killed: Sequence[str]
    restarts: int
    settings: Settings
    wall_s: float


def judge(found: Evidence, how: Options) -> Report:
    """The counts, from evidence alone."""
    resumed = sum(len(story.resumed) for story in found.stories)
    taken = [seq for story in found.stories for seq in story.taken_over]
    executed, said = executions(found.effects), accepted(found.answers)
    acknowledged = {
        line["interrupt"] for line in map(json.loads, found.answers) if line["outcome"] in ACKNOWLEDGED
    }
    known = {interrupt for story in found.stories for interrupt in story.answered}
    done = [one is not None and one.state is RunState.FINISHED for one in found.records]
    return Report(
        runs=len(found.transcripts),
        calls=sum(len(one.calls) for one in found.transcripts),
        suspensions=sum(len(story.paused) for story in found.stories),
        answered=sum(len(story.answered) for story in found.stories),
        resumed=resumed,
        resumed_elsewhere=sum(story.elsewhere for story in found.stories),
        reruns=len(found.effects) - len(executed),
        lost=done.count(False),
        mismatched=sum(
            finished and not _matches(one, record)
            for finished, one, record in zip(done, found.transcripts, found.records, strict=True)
        ),
        doubled_answers=sum(times > 1 for times in said.values()),
        effects=len(found.effects),
        wall_s=round(found.wall_s, 3),
        lifecycles_per_s=round(resumed / found.wall_s, 1) if found.wall_s else 0.0,
        reruns_unexplained=_unexplained(executed, found),
        missing=len(acknowledged - known),
        killed=len(found.killed),
        server_restarts=found.restarts,
        taken_over=len(taken),
        taken_over_early=taken.count(0),
        lease_s=found.settings.lease.total_seconds(),
        pace_s=how.thinking,
        merge_turns=how.merge_turns,
        seed=how.seed,
    )


def executions(effects: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """What the effects file says of each call, by its idempotency key, in the order of the leases it ran under."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in effects:
        record = json.loads(line)
        found[record["key"]].append(record)
    for some in found.values():
        some.sort(key=lambda one: int(one["fence"]))
    return found


def _unexplained(executed: Mapping[str, Sequence[dict[str, Any]]], found: Evidence) -> int:
    """How many executions came after one that did not die, or whose result was recorded under an earlier lease."""
    recorded: dict[str, int] = {}
    for line in found.recorded:
        record = json.loads(line)
        recorded[record["key"]] = min(record["fence"], recorded.get(record["key"], record["fence"]))
    return sum(
        one["worker"] not in found.killed
        or one["fence"] == after["fence"]
        or recorded.get(key, after["fence"]) < after["fence"]
        for key, some in executed.items()
        for one, after in pairwise(some)
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
