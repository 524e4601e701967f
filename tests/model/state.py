"""What the model remembers, and the steps that several operations share.

The states and what callers are told are never written here: they come from the rows of the protocol's table, which
the model only has to find. What it knows by itself are the facts that choose the row: tokens, sequences, deadlines.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from broker.core.settings import Settings
from broker.store.commands.values import micros

from .table import Row, Table

Told = tuple[Any, ...]
"""What a caller is told: the word, then the facts that belong to it."""

CLOSED = ("finished", "withdrawn")
DECIDED = ("resolved", "cancelled")


class Undone(Exception):
    """An operation that is refused after it had begun: nothing of it stays."""

    def __init__(self, *told: Any) -> None:
        super().__init__(*told)
        self.told: Told = told


@dataclass(slots=True)
class ModelRun:
    """One run. `fresh` are settled interrupts that nothing has spent, `shown` those the lease holder was given."""

    id: str
    session: str
    state: str = "none"
    seq: int = 0
    fence: int = 0
    tries: int = 0
    mode: str = ""
    start_op: str = ""
    point: str = ""
    digest: str = ""
    withdraw_op: str = ""
    requeue_op: str = ""
    refused: list[str] = field(default_factory=list)
    nonce: str = ""
    until: int = 0
    ready_at: int = 0
    ids: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    calls: dict[str, str] = field(default_factory=dict)
    completed: dict[str, str] = field(default_factory=dict)
    """Calls that were completed before their pause: the verdict's place, which the run has yet to read."""

    @property
    def offered(self) -> bool:
        """Whether workers may take it."""
        return self.state == "ready" and not self.ready_at

    def unlease(self) -> None:
        """Takes the lease away."""
        self.nonce, self.until, self.shown = "", 0, []


@dataclass(slots=True)
class ModelInterrupt:
    """One interrupt. `op` is the decider's, `slot` says where the verdict lies."""

    id: str
    run: str
    call: str
    audience: str
    offers: tuple[str, ...]
    digest: str
    policy: str
    default: str
    deadline: int | None
    seq: int
    asked: int = 0
    state: str = "none"
    op: str = ""
    answer: str = ""
    slot: str = ""


@dataclass(slots=True)
class ModelEarly:
    """An answer that came before its question."""

    op: str
    kind: str
    slot: str
    seen: str


@dataclass(slots=True)
class Records:
    """Everything that an operation may change."""

    runs: dict[str, ModelRun] = field(default_factory=dict)
    interrupts: dict[str, ModelInterrupt] = field(default_factory=dict)
    aliases: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    early: dict[tuple[str, str], ModelEarly] = field(default_factory=dict)
    receipts: dict[tuple[str, str], int] = field(default_factory=dict)
    retention: dict[str, int] = field(default_factory=dict)
    verdicts: set[str] = field(default_factory=set)
    unseen: dict[str, int] = field(default_factory=dict)
    bells: set[str] = field(default_factory=set)


class Model:
    """The protocol, one partition of it."""

    def __init__(self, table: Table, settings: Settings) -> None:
        self.table = table
        self.settings = settings
        self.tries = settings.tries
        self.keep_settled = micros(settings.keep_settled)
        self.keep_parked = micros(settings.keep_parked)
        self.lease = micros(settings.lease)
        self.now = 0
        self.records = Records()

    @contextmanager
    def whole(self) -> Iterator[None]:
        """All or nothing: what an `Undone` interrupts is forgotten."""
        before = deepcopy(self.records)
        try:
            yield
        except Undone:
            self.records = before
            raise

    def run(self, run: str, session: str) -> ModelRun:
        """The run of that id; one in the state `none` where there is none."""
        return self.records.runs.get(run) or ModelRun(run, session)

    def open_of(self, run: ModelRun) -> list[ModelInterrupt]:
        """The open interrupts of a run's present pause."""
        found = [self.records.interrupts[one] for one in run.ids]
        return [i for i in found if i.state == "open"]

    def due(self, i: ModelInterrupt) -> bool:
        """Whether its deadline has passed and means something."""
        passed = i.deadline is not None and i.deadline <= self.now
        return i.state == "open" and i.policy != "wait" and passed

    # Steps -----------------------------------------------------------------------------------------------------

    def says(self, operation: str, record: str, found: str, guard: str) -> Row:
        """The row that fits; its doorbells ring."""
        row = self.table.row(operation, record, found, guard)
        self.records.bells |= row.bells
        return row

    def moves(self, run: ModelRun, operation: str, guard: str) -> str:
        """Takes a run where its row says; what the caller is told."""
        row = self.says(operation, "run", run.state, guard)
        run.state = row.next
        return row.told

    def settle(
        self, i: ModelInterrupt, operation: str, guard: str, op: str, answer: str = "", *, quiet: bool = False
    ) -> None:
        """Ends an interrupt, and with it what depends on it; `quiet`: the caller decides what becomes of the run."""
        row = self.table.row(operation, "interrupt", i.state, guard)
        i.state, i.op, i.answer = row.next, op, answer
        self.records.bells |= row.bells & {"dispositions"}
        self.records.unseen.pop(i.id, None)
        run = self.records.runs[i.run]
        self._end_call(run, i)
        run.fresh.append(i.id)
        if run.mode == "first" and not quiet:
            for other in self.open_of(run):
                self.settle(other, "supersede", "mode first: another one is answered", op, quiet=True)
        if not quiet:
            self._go_on(run)

    def _go_on(self, run: ModelRun) -> None:
        left, before = self.open_of(run), run.state
        if before != "waiting":
            guard = "mode each"
        elif run.mode == "first":
            guard = "mode first"
        elif not left:
            guard = "the last open one"
        else:
            guard = "mode each: not the last one" if run.mode == "each" else "not the last one"
        self.moves(run, "settle", guard)
        if run.state != before:
            run.tries = 0

    def _end_call(self, run: ModelRun, i: ModelInterrupt) -> None:
        found = run.calls.get(i.call, "none")
        if not i.call or found == "resolved":
            return
        if i.audience == "approvals" and i.answer in ("approve", "edit"):
            guard = "approved"
        elif found == "awaiting_completion":
            guard = "completed"
        else:
            guard = "rejected" if i.answer else "nobody answered"
        if guard != "approved" or found == "awaiting_confirmation":
            run.calls[i.call] = self.table.row("settle", "call", found, guard).next

    def expire(self, i: ModelInterrupt, guard: str = "") -> None:
        """Ends an interrupt whose deadline has passed, by its policy."""
        if i.policy == "default":
            i.slot = i.id
            self.records.verdicts.add(i.id)
            self.settle(i, "expire", "due, policy default answer", "expire 0", i.default)
        else:
            self.settle(i, "expire", guard or f"due, policy {i.policy}", "expire 0")

    def close(self, run: ModelRun) -> None:
        """What a run leaves when it is finished or withdrawn."""
        self.records.retention[f"r {run.id}"] = self.now + self.keep_settled

    def rings_again(self, run: ModelRun) -> None:
        """A repeat rings for what is still due."""
        if run.offered:
            self.records.bells.add("ready")
        self.ring(self.open_of(run))

    def ring(self, interrupts: list[ModelInterrupt]) -> None:
        """Tells readers of open interrupts; nobody has seen what was rung just now."""
        for i in interrupts:
            self.records.bells.add("interrupts")
            self.records.unseen[i.id] = self.now
