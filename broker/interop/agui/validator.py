"""Holds a stream of AG-UI events against the rules of AG-UI 1.0, event by event."""

from collections.abc import Iterable, Iterator
from typing import Any

from ...core.limits import JSON
from .events import faults, stripped
from .frames import read_frames
from .ledger import SubagentLedger
from .owners import Broken
from .rules import Level, Rule, Violation
from .streaming import Item, Streams

_NAMES = frozenset({"messageId", "toolCallId", "stepName", "subagentRunId"})
"""Without these an event has no place in its run."""
_ENDS = frozenset({"RUN_FINISHED", "RUN_ERROR"})


class StreamValidator:
    """Takes the events of one stream in order, as JSON values, and gives the rules that each of them breaks.

    Nothing that is fed raises. What an event leaves in doubt is not held against the events after it: a field with a
    bad value is judged once and counts as absent then. `violations` are all so far; `conforms` tells whether none of
    them is an error. `close` ends the stream; repeating it is safe. `ledger` is what is known of the subagents.
    """

    def __init__(self) -> None:
        self.ledger: SubagentLedger = SubagentLedger()
        self.violations: list[Violation] = []
        self.events: int = 0
        self._activities: dict[str, Item] = {}
        self._streams = Streams(self._activities)
        self._run: dict[str, Any] | None = None
        self._ended: str | None = None
        self._seen: set[tuple[JSON, JSON]] = set()
        self._is_closed = False

    @property
    def conforms(self) -> bool:
        """Whether no rule is broken that a stream must keep."""
        return not any(one.rule.level is Level.ERROR for one in self.violations)

    def feed(self, event: JSON) -> list[Violation]:
        """The next event: gives the rules that it breaks."""
        self.events += 1
        found = list(self._judged(event))
        self.violations += found
        return found

    def close(self) -> list[Violation]:
        """The stream has ended: gives what is broken by that."""
        found: list[Violation] = []
        if not self._is_closed and self._run is not None:
            found.append(Violation(Rule.TRUNCATED, f"run {self._run.get('runId')} did not end"))
        elif not self._is_closed and self._ended is None:
            found.append(Violation(Rule.FIRST_EVENT, "there is no run"))
        self._is_closed = True
        self.violations += found
        return found

    def refuse(self, problem: str) -> list[Violation]:
        """The next frame holds no event that can be read."""
        self.events += 1
        found = [Violation(Rule.FRAMING, f"the frame {problem}", self.events)]
        self.violations += found
        return found

    def _judged(self, event: JSON) -> Iterator[Violation]:
        if not isinstance(event, dict):
            yield Violation(Rule.MALFORMED, "an event is an object", self.events)
            return
        found = list(faults(event, self.events))
        yield from found
        if any(one.field == "type" for one in found):
            return
        kept = stripped(event, found)
        lost = event.keys() - kept.keys()
        for rule, text in self._in_place(kept, lost, {one.field for one in found}):
            yield Violation(rule, text, self.events)

    def _in_place(self, event: dict[str, Any], lost: set[str], missing: set[str]) -> Iterator[Broken]:
        kind = event["type"]
        if kind == "RUN_STARTED":
            yield from self._start(event)
            return
        if kind == "RUN_ERROR" and self._ended != "RUN_ERROR":
            self.ledger.follow(event)
            self._run, self._ended = None, kind
            return
        if self._run is None:
            if self._ended is None:
                yield Rule.FIRST_EVENT, f"{kind} comes before any run"
                self._run = {}
            else:
                yield Rule.AFTER_CLOSE, f"{kind} follows {self._ended}"
                return
        if not _NAMES & (lost | missing):
            yield from self._streams.follow(event)
        if "subagentRunId" not in lost | missing or kind == "RUN_FINISHED":
            yield from self.ledger.follow(event, is_whole="outcome" not in lost)
        if kind == "RUN_FINISHED":
            yield from self._finish(event)

    def _start(self, event: dict[str, Any]) -> Iterator[Broken]:
        if self._run:
            yield Rule.RUN_ACTIVE, f"run {self._run.get('runId')} has not ended"
        ids = event.get("threadId"), event.get("runId")
        if None not in ids and ids in self._seen:
            yield Rule.RUN_REUSED, f"run {ids[1]} was on thread {ids[0]} before"
        self._seen.add(ids)
        self.ledger.follow(event)
        self._streams = Streams(self._activities)
        self._run, self._ended = event, None

    def _finish(self, event: dict[str, Any]) -> Iterator[Broken]:
        run = self._run or {}
        for name in ("threadId", "runId"):
            if name in event and event[name] != run.get(name, event[name]):
                yield Rule.RUN_MISMATCH, f"{name} is not {run[name]}, with which the run started"
        for item in self._streams.left_open:
            yield Rule.LEFT_OPEN, f"{item} is open when its run finishes"
        outcome = event.get("outcome", {})
        pending = outcome.get("pendingToolCallIds")
        if pending and pending != self._streams.unanswered:
            yield Rule.PENDING_CALLS, f"without a result are {', '.join(self._streams.unanswered) or 'none'}"
        ids = [one["id"] for one in outcome.get("interrupts", ())]
        for name in dict.fromkeys(name for name in ids if ids.count(name) > 1):
            yield Rule.INTERRUPT_REUSED, f"{name} is the id of several interrupts"
        self._run, self._ended = None, event["type"]


def check_stream(lines: Iterable[str]) -> StreamValidator:
    """A recorded stream, judged: one event of JSON a line, or server-sent events, as its first line tells.

    The validator that comes back has seen the whole stream; its `violations` are in order, those of the end last.
    """
    validator = StreamValidator()
    for frame in read_frames(lines):
        if frame.problem is not None:
            validator.refuse(frame.problem)
        else:
            validator.feed(frame.event)
    validator.close()
    return validator
