"""Sending a command to a paused thread, from any process."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..._async.client import AsyncBroker
from ...core.answers import Answer, AnswerKind, Approve, Cancel, Principal, Respond
from ...core.kinds import ApprovalPending, Custom, ScheduledPause
from ...core.limits import check_id
from ...core.outcomes import Outcome
from ...core.policy import validate_answer
from ...core.records import InterruptRecord
from ...core.states import Settlement
from ...errors import InvalidInput, Refused, UnknownId
from .commands import ApproveTool, Command, GoTo, Resume, Update
from .decisions import AwaitExternal, decision_json

_KNOWN: Final = (ApprovalPending, Custom, ScheduledPause)


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a command: an outcome for each interrupt it answered, by interrupt id.

    `unmatched` has the outcomes of decisions about calls that nothing open asks about, by their `tool_use_id`. They
    released nothing; `Parked` ones are kept for a bounded time, in case the question is still to come.
    """

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    unmatched: Mapping[str, Outcome] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the whole command counted: every answer did, and every decision was about an open question."""
        return not self.unmatched and all(one.ok for one in self.outcomes.values())


async def open_interrupts(
    broker: AsyncBroker, thread: str, *, run_id: str | None = None
) -> tuple[InterruptRecord, ...]:
    """What a thread waits for: its open interrupts with kind and payload, whichever process asked them."""
    return tuple(one for one in await _asked(broker, thread, run_id) if one.state is Settlement.OPEN)


async def _asked(broker: AsyncBroker, thread: str, run_id: str | None) -> list[InterruptRecord]:
    """What the paused runs of a thread have asked at their last pause, settled or not."""
    paused = [run for run in await broker.active(thread) if run_id in (None, run)]
    runs = await asyncio.gather(*(broker.runs.get(run) for run in paused))
    return await asyncio.gather(*(broker.inbox.get(one) for run in runs for one in run.interrupt_ids))


async def send(
    broker: AsyncBroker,
    thread: str,
    command: Command,
    *,
    by: Principal | None = None,
    run_id: str | None = None,
) -> Sent:
    """What became of a command to a paused thread. The whole is checked before any of it counts.

    A decision answers the question about its call. `Resume` also approves what is no call: scheduled pauses and
    custom ones. `Update` and `GoTo` settle all that is open; the graph finds the command among the answers, and a
    tool call that waited is given up, not rejected. Nothing of it settles a kind this release does not know. With
    several paused runs in a thread, `run_id` names one. Safe to repeat while the thread is paused. Raises
    `InvalidInput`, `UnknownId` where nothing waits, and `Refused` with what does not fit.
    """
    decisions = _decisions(command)
    asked = await _asked(broker, thread, run_id)
    _check_one_run(asked, command)
    calls = {one.interrupt.call_id: one for one in asked if one.interrupt.call_id is not None}
    # With nothing open it is a repeat, and each answer is told what it was told before.
    rest = [one for one in asked if one.state is Settlement.OPEN] or asked
    planned = [(calls[id], answer) for id, answer in decisions.items() if id in calls]
    planned += [(one, answer) for one in rest if (answer := _answer(command, one)) is not None]
    strays = {id: answer for id, answer in decisions.items() if id not in calls}
    if not planned and not strays:
        if not asked:
            raise UnknownId("open interrupt of thread", thread)
        raise InvalidInput("decisions", "is missing", f"decisions about {', '.join(sorted(calls))}")
    for one, answer in planned:
        if wrong := validate_answer(one.interrupt, answer):
            raise Refused(wrong)
    answered = await asyncio.gather(*(broker.inbox.answer(one.id, answer, by=by) for one, answer in planned))
    missed = await asyncio.gather(
        *(broker.inbox.answer_call(thread, id, answer, by=by) for id, answer in strays.items())
    )
    ids = [one.id for one, _ in planned]
    return Sent(dict(zip(ids, answered, strict=True)), dict(zip(strays, missed, strict=True)))


def _decisions(command: Command) -> dict[str, Answer]:
    match command:
        case Resume(decisions=found):
            decisions = dict(found)
        case ApproveTool(tool_use_id=id, decision=decision):
            decisions = {id: decision}
        case Update() | GoTo():
            return {}
        case _:
            raise InvalidInput(
                "command", "is not known to this release", "resume, approve_tool, update, goto"
            )
    for id, decision in decisions.items():
        check_id("tool_use_id", id)
        decision_json(decision)
        if isinstance(decision, AwaitExternal):
            raise InvalidInput(f"decisions.{id}", "is await_external", "approve, or reject with a reason")
    return decisions


def _check_one_run(waiting: Sequence[InterruptRecord], command: Command) -> None:
    runs = sorted({one.run_id for one in waiting})
    if len(runs) > 1 and not isinstance(command, ApproveTool):
        raise InvalidInput("run_id", "is missing, and several runs of the thread are paused", ", ".join(runs))


def _answer(command: Command, record: InterruptRecord) -> Answer | None:
    """What a command says about an interrupt, beside its decisions; None where it says nothing about it."""
    if isinstance(command, Update | GoTo):
        return _move(command, record)
    one = record.interrupt
    is_pause = one.call_id is None and isinstance(one.kind, Custom | ScheduledPause)
    approves = isinstance(command, Resume) and is_pause and AnswerKind.APPROVE in one.offered
    return Approve() if approves else None


def _move(command: Command, record: InterruptRecord) -> Answer:
    one = record.interrupt
    if not isinstance(one.kind, _KNOWN):
        fault = f"cannot go past {record.id}, whose kind {one.kind.type} is not known"
        raise InvalidInput("command", fault, "an explicit cancel of it")
    if one.call_id is None and AnswerKind.RESPOND in one.offered:
        return Respond(payload=command.to_json())
    return Cancel(reason=f"the thread goes on by {command.TAG}", payload=command.to_json())
