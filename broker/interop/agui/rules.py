"""The rules a stream of AG-UI events is held against, and how a broken one is told."""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from ...core.limits import JSON


class Level(StrEnum):
    """How much a broken rule weighs."""

    ERROR = "error"
    """The producer must not do it: the stream does not conform."""
    WARNING = "warning"
    """A consumer goes on, and may warn: the stream conforms."""


_MUST, _WARN = Level.ERROR, Level.WARNING

_EVENTS: Final = "basic/index"
_PROCESSING: Final = "basic/processing"
_SSE: Final = "basic/transports/http-sse"
_STREAMING: Final = "basic/patterns/streaming"
_INTERRUPTS: Final = "basic/patterns/interrupt-resume"
_RUNS: Final = "events/lifecycle"
_TEXT: Final = "events/text-messages"
_CALLS: Final = "events/tool-calls"
_ACTIVITY: Final = "events/activity"
_SUBAGENTS: Final = "events/subagents"


class Rule(Enum):
    """A rule of AG-UI 1.0: its name, its weight, what it says, and the page of the specification that says it."""

    # fmt: off
    FRAMING = "framing", _MUST, "Each frame holds one whole event as JSON.", _SSE
    MALFORMED = "malformed", _MUST, (
        "A field that is described holds what the schema allows; one without a value is left out, never null."
    ), _PROCESSING
    CONTRADICTION = "contradiction", _MUST, "No interrupts stand on an outcome that has none.", _SUBAGENTS
    UNKNOWN_EVENT = "unknown-event", _WARN, "An event of an unknown type is dropped.", _PROCESSING
    UNKNOWN_FIELD = "unknown-field", _WARN, "A field that is not described is stripped.", _PROCESSING
    UNKNOWN_MEMBER = "unknown-member", _WARN, (
        "A word or variant that is not described is stripped, with what cannot be without it."
    ), _PROCESSING

    FIRST_EVENT = "first-event", _MUST, "A stream begins with RUN_STARTED or RUN_ERROR.", _RUNS
    RUN_ACTIVE = "run-active", _MUST, "A run closes before the next one starts.", _RUNS
    AFTER_CLOSE = "after-close", _MUST, (
        "After RUN_FINISHED comes only RUN_STARTED or a late RUN_ERROR; after RUN_ERROR only RUN_STARTED."
    ), _RUNS
    TRUNCATED = "truncated", _MUST, "A run ends with RUN_FINISHED or RUN_ERROR.", _RUNS
    RUN_REUSED = "run-reused", _MUST, "A run id names one run of its thread.", _EVENTS
    RUN_MISMATCH = "run-mismatch", _WARN, "RUN_FINISHED carries the ids of its run.", _RUNS
    PENDING_CALLS = "pending-calls", _MUST, (
        "pendingToolCallIds, where not empty, are the calls of the run without a result, in order."
    ), _CALLS
    INTERRUPT_REUSED = "interrupt-reused", _MUST, "An interrupt's id is unique in its run.", _INTERRUPTS

    ALREADY_OPEN = "already-open", _MUST, "What is open is not opened again.", _STREAMING
    NOT_OPEN = "not-open", _MUST, "Only what is open is continued or closed.", _STREAMING
    LEFT_OPEN = "left-open", _MUST, "What a run opens, it closes before it finishes.", _STREAMING
    REOPENED_OTHERWISE = "reopened-otherwise", _MUST, "What is opened again says what it said first.", _TEXT
    FIRST_CHUNK = "first-chunk", _MUST, "The first chunk carries what opening its item needs.", _STREAMING
    CHUNK_CONFLICT = "chunk-conflict", _MUST, "A later chunk repeats only what the first one said.", _STREAMING
    CHUNK_AMBIGUOUS = "chunk-ambiguous", _MUST, (
        "A chunk without id and owner continues one item, not one of several."
    ), _STREAMING
    OWNER = "owner", _MUST, "What an owner has opened, no other continues.", _SUBAGENTS
    NO_BASELINE = "no-baseline", _WARN, "An activity's delta follows its snapshot.", _ACTIVITY

    SUBAGENT_ACTIVE = "subagent-active", _MUST, "An active invocation is not announced again.", _SUBAGENTS
    SUBAGENT_REUSED = "subagent-reused", _MUST, (
        "An invocation starts once in a run, and in a later run only where it had not ended."
    ), _SUBAGENTS
    SUBAGENT_LATE = "subagent-late", _MUST, "An invocation is announced before its first event.", _SUBAGENTS
    SUBAGENT_PARENT = "subagent-parent", _MUST, "A parent that is named was announced in the run.", _SUBAGENTS
    SUBAGENT_NOT_ACTIVE = "subagent-not-active", _MUST, (
        "Only an active invocation finishes or fails."
    ), _SUBAGENTS
    SUBAGENT_LEFT_OPEN = "subagent-left-open", _MUST, "A run finishes after all its invocations.", _SUBAGENTS
    INTERRUPT_OWNER = "interrupt-owner", _MUST, (
        "The interruptIds of an invocation and the subagentRunId of each interrupt agree, both ways."
    ), _SUBAGENTS
    OWNER_UNNAMED = "owner-unnamed", _WARN, "A suspended owner names the interrupts it has raised.", _SUBAGENTS
    WAITS_FOR_NOTHING = "waits-for-nothing", _WARN, (
        "A suspended invocation, or one below it, owns an interrupt of the run."
    ), _SUBAGENTS
    # fmt: on

    def __init__(self, word: str, level: Level, says: str, page: str) -> None:
        self.word = word
        self.level = level
        self.says = says
        self.page = page


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule, the number of the event that breaks it (from 1; None for the stream's end), where in it, and how."""

    rule: Rule
    text: str
    event: int | None = None
    field: str = ""

    def __str__(self) -> str:
        """One line for a person."""
        place = f"event {self.event}" if self.event is not None else "end of stream"
        return f"{place}{f', {self.field}' if self.field else ''}: {self.text} ({self.rule.word})"

    def to_json(self) -> dict[str, JSON]:
        """What `broker agui check --json` gives: rule, level, event, text, what the rule says and where, any field."""
        rule = self.rule
        told: dict[str, JSON] = {
            "rule": rule.word, "level": rule.level.value, "event": self.event, "text": self.text,
            "says": rule.says, "page": rule.page,
        }  # fmt: skip
        return told | ({"field": self.field} if self.field else {})
