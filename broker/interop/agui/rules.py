"""The rules a stream of AG-UI events is held against, and how a broken one is told."""

from dataclasses import dataclass
from enum import Enum, StrEnum

from ...core.limits import JSON


class Level(StrEnum):
    """How much a broken rule weighs."""

    ERROR = "error"
    """The producer must not do it: the stream does not conform."""
    WARNING = "warning"
    """A consumer goes on and warns: the stream conforms."""


class Rule(Enum):
    """A rule of AG-UI 1.0: its name, its weight, what it says, and the page of the specification that says it."""

    FRAMING = "framing", Level.ERROR, "Each frame holds one whole event as JSON.", "transports/http-sse"
    MALFORMED = (
        "malformed", Level.ERROR,
        "A field that is described holds what the schema allows; an optional one is left out, never null.",
        "processing",
    )  # fmt: skip
    CONTRADICTION = (
        "contradiction", Level.ERROR, "No interrupts stand on a success or a cancelled outcome.", "subagents"
    )  # fmt: skip
    UNKNOWN_EVENT = "unknown-event", Level.WARNING, "An event of an unknown type is dropped.", "processing"
    UNKNOWN_FIELD = "unknown-field", Level.WARNING, "A field that is not described is stripped.", "processing"
    UNKNOWN_MEMBER = (
        "unknown-member", Level.WARNING,
        "A word or variant that is not described is stripped with what cannot be without it.",
        "processing",
    )  # fmt: skip

    FIRST_EVENT = "first-event", Level.ERROR, "A stream begins with RUN_STARTED or RUN_ERROR.", "lifecycle"
    RUN_ACTIVE = "run-active", Level.ERROR, "A run closes before the next one starts.", "lifecycle"
    AFTER_CLOSE = (
        "after-close", Level.ERROR,
        "After RUN_FINISHED comes only RUN_STARTED or a late RUN_ERROR; after RUN_ERROR only RUN_STARTED.",
        "lifecycle",
    )  # fmt: skip
    TRUNCATED = "truncated", Level.ERROR, "A run ends with RUN_FINISHED or RUN_ERROR.", "lifecycle"
    RUN_REUSED = "run-reused", Level.ERROR, "A run id names one run of its thread.", "event-model"
    RUN_MISMATCH = "run-mismatch", Level.WARNING, "RUN_FINISHED carries the ids of its run.", "lifecycle"
    PENDING_CALLS = (
        "pending-calls", Level.ERROR,
        "pendingToolCallIds, where not empty, are the calls of the run without a result, in order.",
        "tool-calls",
    )  # fmt: skip
    INTERRUPT_REUSED = (
        "interrupt-reused", Level.ERROR, "An interrupt's id is unique in its run.", "interrupts"
    )  # fmt: skip

    ALREADY_OPEN = "already-open", Level.ERROR, "What is open is not opened again.", "streaming"
    NOT_OPEN = "not-open", Level.ERROR, "Only what is open is continued or closed.", "streaming"
    LEFT_OPEN = "left-open", Level.ERROR, "What a run opens, it closes before it finishes.", "streaming"
    REOPENED_OTHERWISE = (
        "reopened-otherwise", Level.ERROR, "What is opened again says what it said first.", "text-messages"
    )  # fmt: skip
    FIRST_CHUNK = (
        "first-chunk", Level.ERROR, "The first chunk carries what opening its item requires.", "streaming"
    )  # fmt: skip
    CHUNK_CONFLICT = (
        "chunk-conflict", Level.ERROR, "A later chunk repeats only what the first one said.", "streaming"
    )  # fmt: skip
    CHUNK_AMBIGUOUS = (
        "chunk-ambiguous", Level.ERROR, "A chunk without id and owner continues one item, not several.",
        "streaming",
    )  # fmt: skip
    OWNER = "owner", Level.ERROR, "What an owner has opened, no other continues.", "subagents"
    NO_BASELINE = "no-baseline", Level.WARNING, "An activity's delta follows its snapshot.", "activity"

    SUBAGENT_ACTIVE = "subagent-active", Level.ERROR, "An active invocation is not announced.", "subagents"
    SUBAGENT_REUSED = (
        "subagent-reused", Level.ERROR,
        "An invocation starts once in a run, and in a later run only where it was suspended.",
        "subagents",
    )  # fmt: skip
    SUBAGENT_LATE = (
        "subagent-late", Level.ERROR, "An invocation is announced before its first event.", "subagents"
    )  # fmt: skip
    SUBAGENT_PARENT = (
        "subagent-parent", Level.ERROR, "A parent that is named was announced in this run.", "subagents"
    )  # fmt: skip
    SUBAGENT_NOT_ACTIVE = (
        "subagent-not-active", Level.ERROR, "Only an active invocation finishes or fails.", "subagents"
    )  # fmt: skip
    SUBAGENT_LEFT_OPEN = (
        "subagent-left-open", Level.ERROR, "A run finishes after all its invocations.", "subagents"
    )  # fmt: skip
    INTERRUPT_OWNER = (
        "interrupt-owner", Level.ERROR,
        "interruptIds of an invocation and the subagentRunId of each interrupt agree, both ways.",
        "subagents",
    )  # fmt: skip
    OWNER_UNNAMED = (
        "owner-unnamed", Level.WARNING, "A suspended owner names the interrupts it has raised.", "subagents"
    )  # fmt: skip
    WAITS_FOR_NOTHING = (
        "waits-for-nothing", Level.WARNING,
        "A suspended invocation, or one below it, owns an interrupt of the run.",
        "subagents",
    )  # fmt: skip

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
        """What `broker agui check --json` gives of it: `rule`, `level`, `event`, `text`, `says`, and any `field`."""
        rule = self.rule
        told: dict[str, JSON] = {
            "rule": rule.word, "level": rule.level.value, "event": self.event, "text": self.text, "says": rule.says,
        }  # fmt: skip
        return told | ({"field": self.field} if self.field else {})
