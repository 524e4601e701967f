"""From what is known of a run to why it stands where it stands: the rules, without a clock and a server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from .diagnosis import Awaited, Cause, Why
from .fleet import WorkerInfo
from .models import OnExpiry
from .records import HistoryEntry, InterruptRecord, RunRecord
from .states import Mode, RunState, Settlement

SWEEPER_REMEDY: Final = "Run a worker, or `Sweeper`, with a credential of this namespace: it sees to timers."


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one run. `readers`: by audience, the groups that are handed what is addressed to it."""

    run: RunRecord
    now: datetime
    interrupts: Sequence[InterruptRecord] = ()
    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    workers: Sequence[WorkerInfo] = ()
    sweeper: str | None = None
    ahead: int | None = None
    ready_at: datetime | None = None
    kept_until: datetime | None = None
    history: Sequence[HistoryEntry] = ()

    @property
    def pool(self) -> str:
        """The pool in words."""
        build = f", build {self.run.build}" if self.run.build else ""
        return f"agent {self.run.agent} on queue {self.run.queue}{build}"


def could_take(worker: WorkerInfo, queue: str, agent: str, build: str | None) -> bool:
    """Whether a worker that is alive takes runs of that pool."""
    fits = worker.queue == queue and agent in worker.agents
    return worker.alive and fits and build in (None, worker.build, *worker.builds.get(agent, ()))


def awaited(record: InterruptRecord, readers: Mapping[str, tuple[str, ...]]) -> Awaited:
    """An open interrupt, and who or what may end it."""
    one = record.interrupt
    audience = str(one.addressed_to)
    return Awaited(
        interrupt_id=record.id, kind=one.kind.type, tool=one.action.tool if one.action else None, audience=audience,
        reviewers=one.reviewers, readers=readers.get(audience, ()), deadline=record.deadline,
        at_deadline=one.at_expiry if record.deadline and record.problem is None else None, problem=record.problem,
    )  # fmt: skip


def ends_by_itself(one: Awaited) -> bool:
    """Whether its deadline ends it."""
    return one.deadline is not None and one.at_deadline not in (None, OnExpiry.WAIT)


def explain(known: Known) -> Why:
    """Why the run stands where it stands, and what to do about it."""
    match known.run.state:
        case RunState.WAITING:
            told = _waiting(known)
        case RunState.READY:
            told = _back_off(known) if known.ready_at else _ready(known)
        case RunState.LEASED:
            told = _leased(known)
        case RunState.DEAD:
            told = _dead(known)
        case _:
            told = _closed(known)
    return _why(known, told)


def _why(known: Known, told: dict[str, Any]) -> Why:
    run = known.run
    common: dict[str, Any] = {
        "run_id": run.id, "session_id": run.session_id, "agent": run.agent, "queue": run.queue, "build": run.build,
        "state": run.state, "seq": run.seq, "at": known.now, "workers": tuple(known.workers), "sweeper": known.sweeper,
        "error": run.errors[-1] if run.errors else None, "history": tuple(known.history),
    }  # fmt: skip
    return Why(**(common | {"awaited": _open(known)} | told))


def _open(known: Known) -> tuple[Awaited, ...]:
    return tuple(awaited(one, known.readers) for one in known.interrupts if one.state is Settlement.OPEN)


def _waiting(known: Known) -> dict[str, Any]:
    left = _open(known)
    dated = [one for one in left if ends_by_itself(one)]
    first = min(dated, key=lambda one: one.deadline or known.now, default=None)
    timer = {"next_timer": first.deadline, "timer": f"deadline of {first.interrupt_id}"} if first else {}
    told: dict[str, Any] = {"cause": Cause.ANSWER} | timer
    if not left:
        return told | _stuck(
            "It waits, and none of its interrupts is open: its records do not fit together.",
            f"Look at it with `broker show {known.run.id}`; `broker withdraw` closes it.",
        )
    lost = [one for one in left if not _has_cause(known, one)]
    if len(lost) < len(left) if known.run.mode is not Mode.ALL else not lost:
        return told | {"reason": f"It waits for {_whom(left)}.", "remedy": _how_to_answer(left[0])}
    return told | _stuck(_nobody(known, lost[0]), _how_to_answer(lost[0]))


def _has_cause(known: Known, one: Awaited) -> bool:
    return bool(one.readers) or (ends_by_itself(one) and known.sweeper is not None)


def _nobody(known: Known, one: Awaited) -> str:
    if one.problem is not None:
        return (
            f"It waits for {one.interrupt_id}, whose record cannot be read: only an explicit cancel ends it."
        )
    if ends_by_itself(one) and known.sweeper is None:
        passed = one.deadline is not None and one.deadline <= known.now
        return f"The deadline of {one.interrupt_id} {'has passed' if passed else 'will come'}, and no process sweeps."
    return f"Nobody reads the {one.audience}, and {one.interrupt_id} has no deadline that would end it."


def _whom(left: Sequence[Awaited]) -> str:
    if len(left) > 1:
        return f"answers to {len(left)} interrupts"
    (one,) = left
    what = "the completion" if one.audience == "completions" else "an answer"
    of = f" by {', '.join(one.reviewers)}" if one.reviewers else ""
    return f"{what} to {one.interrupt_id}{of}"


def _how_to_answer(one: Awaited) -> str:
    if one.problem is not None:
        return f"`broker cancel {one.interrupt_id}` ends it without its record being read."
    verb = "complete" if one.audience == "completions" else "approve"
    if one.audience != "completions" and one.kind != "approval_pending":
        verb = "respond"
    withdraw = "`broker withdraw` takes the question back"
    return f"`broker {verb} {one.interrupt_id}` answers it, or let something follow the {one.audience}; {withdraw}."


def _ready(known: Known) -> dict[str, Any]:
    told: dict[str, Any] = {"cause": Cause.WORKER, "ahead": known.ahead}
    if known.ahead is None:
        return told | _stuck(
            "It is ready, and the list of ready runs does not hold it.",
            f"`broker move {known.run.id} QUEUE` to another queue enters it there.",
        )
    if not known.workers:
        return told | _stuck(
            f"It is ready, and no worker that is alive takes {known.pool}.",
            f"Start a worker for {known.pool}, or `broker move {known.run.id} QUEUE` to one that has workers.",
        )
    free = [one for one in known.workers if one.holding < one.concurrency]
    before = f", behind {known.ahead} others" if known.ahead else ""
    if free:
        return told | {
            "reason": f"It is ready{before}: a worker takes it.",
            "remedy": "Nothing is to be done.",
        }
    count = len(known.workers)
    full = "the worker for it has no room" if count == 1 else f"all {count} workers for it have no room"
    reason = f"It is ready{before}, and {full}."
    return told | {"reason": reason, "remedy": "Wait, or start more workers."}


def _back_off(known: Known) -> dict[str, Any]:
    told: dict[str, Any] = {"cause": Cause.BACK_OFF, "back_off_until": known.ready_at, "next_timer": known.ready_at,
                            "timer": "end of the back-off"}  # fmt: skip
    if known.sweeper is None:
        return told | _stuck(
            "Its last attempt failed; it is to come back, and no process sweeps.", SWEEPER_REMEDY
        )
    return told | {
        "reason": f"Its last attempt failed ({known.run.tries} in a row); it comes back when its back-off is over.",
        "remedy": "Nothing is to be done; `broker show` tells its failures.",
    }


def _leased(known: Known) -> dict[str, Any]:
    run = known.run
    told: dict[str, Any] = {"cause": Cause.LEASE, "holder": run.holder, "lease_until": run.lease_until,
                            "next_timer": run.lease_until, "timer": "end of the lease"}  # fmt: skip
    if run.lease_until is not None and run.lease_until > known.now:
        return told | {
            "reason": f"{run.holder} runs it.",
            "remedy": "Nothing is to be done; a lost worker's lease ends.",
        }
    if known.sweeper is None:
        return told | _stuck(f"{run.holder} has lost its lease, and no process sweeps.", SWEEPER_REMEDY)
    return told | {
        "reason": f"{run.holder} has lost its lease.",
        "remedy": "The sweeper gives it to another worker.",
    }


def _dead(known: Known) -> dict[str, Any]:
    count = len(known.run.errors)
    after = f", after {'a failure' if count == 1 else f'{count} failures'}" if count else ""
    remedy = f"Repair what failed, then `broker requeue {known.run.id}`; `broker withdraw` closes it."
    return {"cause": Cause.OPERATOR} | _stuck(f"It is dead{after}: an operator decides.", remedy)


def _closed(known: Known) -> dict[str, Any]:
    timer = {"next_timer": known.kept_until, "timer": "its records are deleted"} if known.kept_until else {}
    told: dict[str, Any] = {"cause": Cause.NOTHING, "remedy": "Nothing is to be done."}
    return told | timer | {"reason": f"It is {known.run.state}."}


def _stuck(reason: str, remedy: str) -> dict[str, Any]:
    return {"stuck": True, "reason": reason, "remedy": remedy}
