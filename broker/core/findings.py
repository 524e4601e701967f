"""What a check holds against the records: one function for each kind of record, pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from .causes import SWEEPER_REMEDY, awaited, could_take, ends_by_itself
from .diagnosis import Finding, Trouble
from .fleet import WorkerInfo
from .records import InterruptRecord
from .states import CLOSED, Mode, RunState


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What a check holds records against: the time, how late is too late, who reads, who sweeps, who works."""

    now: datetime
    within: timedelta
    readers: dict[str, tuple[str, ...]]
    sweeper: str | None
    workers: Sequence[WorkerInfo]

    def is_late(self, due: datetime | None) -> bool:
        """Whether something should have happened by now."""
        return due is not None and due + self.within < self.now


def of_interrupt(by: Yardstick, record: InterruptRecord, state: RunState | None) -> Iterator[Finding]:
    """An open interrupt: somebody or something may end it, and its run waits for it. `state` is its run's."""
    about: dict[str, Any] = {
        "run_id": record.run_id,
        "interrupt_id": record.id,
        "session_id": record.session_id,
    }
    if record.problem is not None:
        remedy = f"`broker cancel {record.id}` ends it; it counts as open until then."
        yield Finding(trouble=Trouble.UNREADABLE, text=record.problem, remedy=remedy, **about)
        return
    if state is None or state in CLOSED:
        text = f"{record.id} is open, and its run is {state or 'not there'}."
        yield Finding(
            trouble=Trouble.LEFT_OPEN, text=text, remedy=f"`broker cancel {record.id}` ends it.", **about
        )
        return
    one = awaited(record, by.readers)
    if ends_by_itself(one):
        if by.is_late(one.deadline):
            text = f"The deadline of {record.id} has passed, and nothing has ended it."
            yield Finding(trouble=Trouble.OVERDUE, text=text, remedy=SWEEPER_REMEDY, **about)
    elif not one.readers:
        text = f"{record.id} has no deadline that would end it, and nobody reads the {one.audience}."
        remedy = f"Let something follow the {one.audience}, answer it by hand, or `broker withdraw {record.run_id}`."
        yield Finding(trouble=Trouble.NOBODY_ANSWERS, text=text, remedy=remedy, **about)


def of_late_run(run: str, state: RunState | None) -> Finding:
    """A run whose lease or back-off ended long ago."""
    what = "has lost its lease" if state is RunState.LEASED else "is to come back after its back-off"
    return Finding(
        trouble=Trouble.OVERDUE,
        text=f"{run} {what}, and nothing has seen to it.",
        remedy=SWEEPER_REMEDY,
        run_id=run,
    )


def of_pool(
    by: Yardstick, queue: str, agent: str, build: str, count: int, run: str, since: datetime | None
) -> Iterator[Finding]:
    """The ready runs of a pool: somebody takes them. `run` is the best of them, ready since about `since`."""
    takers = [one for one in by.workers if could_take(one, queue, agent, build or None)]
    pool = f"agent {agent} on queue {queue}" + (f", build {build}" if build else "")
    many, them = (f"{count} runs are", "them") if count > 1 else ("1 run is", "it")
    if not takers:
        text = f"{many} ready for {pool}, and no worker that is alive takes {them}."
        remedy = f"Start a worker for {pool}, or `broker move RUN QUEUE` to one that has workers."
        yield Finding(trouble=Trouble.NO_WORKER, text=text, remedy=remedy, run_id=run)
    elif by.is_late(since) and any(one.holding < one.concurrency for one in takers):
        text = f"{many} ready for {pool}, and its workers, who have room, do not take {run}."
        remedy = f"`broker why {run}` tells more; look at the logs of {takers[0].name}."
        yield Finding(trouble=Trouble.NOT_TAKEN, text=text, remedy=remedy, run_id=run)


def of_marked(
    run: str, session: str, state: RunState | None, mode: Mode, left: int, *, is_timed: bool
) -> Iterator[Finding]:
    """A run that its session's active mark names: it is interrupted, and something moves it on."""
    about: dict[str, Any] = {"run_id": run, "session_id": session}
    if state is None or state in CLOSED:
        text = f"The session's active mark names {run}, which is {state or 'not there'}."
        remedy = "Repeating what closed it does no harm and does not help: please report this."
        yield Finding(trouble=Trouble.WRONG_MARK, text=text, remedy=remedy, **about)
    elif state is RunState.WAITING and not left:
        text = f"All interrupts of {run} are settled, and it still waits."
        remedy = f"`broker withdraw {run}` closes it; please report this."
        yield Finding(trouble=Trouble.NOT_RESUMED, text=text, remedy=remedy, **about)
    elif state in (RunState.READY, RunState.LEASED) and left and mode is not Mode.EACH:
        text = f"{run} is {state}, and {left} of its interrupts are open."
        yield Finding(trouble=Trouble.LEFT_OPEN, text=text, remedy="Please report this.", **about)
    elif state is RunState.LEASED and not is_timed:
        text = f"{run} is leased, and no timer ends its lease."
        yield Finding(
            trouble=Trouble.UNLISTED, text=text, remedy="Its worker's next renewal mends it.", **about
        )
