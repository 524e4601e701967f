"""What readers get: the broker's records as values, put together from scalar fields and stored bytes."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from pydantic import Field, InstanceOf, StrictInt

from .answers import Answer, AnswerKind, Principal
from .fields import Id, Instant, Json, JsonObject, Name
from .models import UNREADABLE, Interrupt
from .shape import Model
from .states import Mode, RunState, Settlement


class Resolution(Model):
    """The single, final outcome of an interrupt: how it ended, by whom, when, and the answer where there was one."""

    SHOWN: ClassVar[tuple[str, ...]] = ("interrupt_id", "state", "kind", "by", "at", "op")

    interrupt_id: Id
    state: Settlement
    answer: InstanceOf[Answer] | None = None
    by: Principal | None = None
    at: Instant
    op: str | None = None
    reason: str | None = None

    @property
    def kind(self) -> AnswerKind | None:
        """Which answer it was, None where it ended without one."""
        return self.answer.kind if self.answer is not None else None


class InterruptRecord(Model):
    """One interrupt as stored. `digest` is what an answer's `seen=` must equal.

    When its bytes cannot be read, `problem` says why, `interrupt` is a stand-in of an unknown kind, and the record
    still counts as active (P7).
    """

    SHOWN: ClassVar[tuple[str, ...]] = (
        "id",
        "run_id",
        "session_id",
        "seq",
        "state",
        "deadline",
        "interrupt",
        "problem",
    )

    id: Id
    run_id: Id
    session_id: Id
    seq: StrictInt
    queue: Name
    agent: Name
    build: Name | None = None
    state: Settlement
    opened_at: Instant
    deadline: Instant | None = None
    heartbeat_by: Instant | None = None
    """Until when its job has to tell that it still runs, where the interrupt asks for heartbeats."""
    interrupt: Interrupt = Field(default_factory=lambda: UNREADABLE)
    digest: str
    resolution: Resolution | None = None
    problem: str | None = None


class RunRecord(Model):
    """One run as stored, from its first step to its end. `seq` counts its pauses; `fence` only grows.

    `protocol_ids` are the runs of a protocol it went through, oldest first: the one it was started in, and those its
    answers came in.
    """

    SHOWN: ClassVar[tuple[str, ...]] = (
        "id",
        "session_id",
        "agent",
        "queue",
        "state",
        "seq",
        "fence",
        "tries",
        "holder",
    )
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"input"})

    id: Id
    session_id: Id
    agent: Name
    build: Name | None = None
    queue: Name
    priority: StrictInt = 0
    state: RunState
    seq: StrictInt = 0
    fence: StrictInt = 0
    tries: StrictInt = 0
    holder: str | None = None
    lease_until: Instant | None = None
    mode: Mode = Mode.ALL
    interrupt_ids: tuple[str, ...] = ()
    created_at: Instant
    updated_at: Instant
    errors: tuple[str, ...] = ()
    metadata: JsonObject = Field(default_factory=dict)
    input: Json = None
    result: Json = None
    protocol_ids: tuple[str, ...] = ()


def protocol_runs(first: Sequence[str], asked: Iterable[InterruptRecord]) -> tuple[str, ...]:
    """The runs of a protocol that a run went through: those known so far, and those of its last pause."""
    ids = dict.fromkeys(first)
    for one in asked:
        ids |= dict.fromkeys(one.interrupt.protocol_ids)
        if one.resolution is not None and one.resolution.answer is not None:
            ids |= dict.fromkeys(filter(None, (one.resolution.answer.protocol_id,)))
    return tuple(ids)


class HistoryEntry(Model):
    """One transition in a session's history: who, when, what, and the digest it was about (P14)."""

    SHOWN: ClassVar[tuple[str, ...]] = (
        "at",
        "event",
        "run_id",
        "seq",
        "interrupt_id",
        "state",
        "by",
        "op",
        "digest",
    )

    at: Instant
    event: str
    run_id: Id
    seq: StrictInt = 0
    interrupt_id: Id | None = None
    state: str | None = None
    by: Principal | None = None
    op: str | None = None
    digest: str | None = None
    detail: str | None = None
