"""Why a run is where it is, and what is wrong in a namespace: what `runs.why` and `check` give."""

from enum import StrEnum
from typing import ClassVar

from pydantic import StrictBool, StrictInt

from .fields import Id, Instant, Name
from .fleet import WorkerInfo
from .models import OnExpiry
from .records import HistoryEntry
from .shape import Model
from .states import RunState


class Cause(StrEnum):
    """What moves a run on next."""

    ANSWER = "answer"
    BACK_OFF = "back_off"
    JOB = "job"
    WORKER = "worker"
    LEASE = "lease"
    OPERATOR = "operator"
    NOTHING = "nothing"


class Awaited(Model):
    """One open interrupt of a run, and who or what may end it.

    `readers` are the groups of the doorbell that are handed it; `at_deadline` is what its deadline does then.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("interrupt_id", "audience", "deadline", "readers", "problem")
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"readers"})

    interrupt_id: Id
    kind: str
    tool: str | None = None
    audience: str
    reviewers: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    deadline: Instant | None = None
    at_deadline: OnExpiry | None = None
    problem: str | None = None


class Why(Model):
    """A run, what it waits for, and what to do about it. Times are the server's; `at` is when it was looked at.

    `stuck`: nothing that is there now will move it on. `ahead`: how many ready runs of its pool stand before it.
    `workers`: those alive that could take it. `next_timer`: when something happens by itself, which `timer` names.
    `sweeper` is the process that sees to timers, None where there is none now.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("run_id", "state", "cause", "stuck", "reason")
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"stuck", "awaited", "workers", "history"})

    run_id: Id
    session_id: Id
    agent: Name
    queue: Name
    build: Name | None = None
    state: RunState
    seq: StrictInt = 0
    cause: Cause
    stuck: StrictBool = False
    reason: str
    remedy: str
    at: Instant
    holder: str | None = None
    lease_until: Instant | None = None
    back_off_until: Instant | None = None
    ahead: StrictInt | None = None
    awaited: tuple[Awaited, ...] = ()
    workers: tuple[WorkerInfo, ...] = ()
    sweeper: str | None = None
    next_timer: Instant | None = None
    timer: str | None = None
    error: str | None = None
    history: tuple[HistoryEntry, ...] = ()


class Trouble(StrEnum):
    """What a check may find."""

    UNREADABLE = "unreadable"
    NOBODY_ANSWERS = "nobody_answers"
    OVERDUE = "overdue"
    LEFT_OPEN = "left_open"
    NOT_RESUMED = "not_resumed"
    NO_WORKER = "no_worker"
    NOT_TAKEN = "not_taken"
    UNLISTED = "unlisted"
    WRONG_MARK = "wrong_mark"
    NO_SWEEPER = "no_sweeper"


class Finding(Model):
    """One thing that is wrong: what it is, which record it is about, and what to do."""

    SHOWN: ClassVar[tuple[str, ...]] = ("trouble", "run_id", "interrupt_id", "text")

    trouble: Trouble
    text: str
    remedy: str
    run_id: str | None = None
    interrupt_id: str | None = None
    session_id: str | None = None


class Checked(Model):
    """What a check of a namespace found. Dead runs are listed, not held to be wrong: they wait for an operator.

    `looked_at` says at how many records; `cursor` goes on from here, None at the end.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("namespace", "findings", "dead", "looked_at", "cursor")
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"findings", "dead", "looked_at"})

    namespace: Name
    at: Instant
    findings: tuple[Finding, ...] = ()
    dead: tuple[str, ...] = ()
    looked_at: StrictInt = 0
    cursor: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with what was looked at."""
        return not self.findings
