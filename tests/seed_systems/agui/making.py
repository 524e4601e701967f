"""Threads, questions and requests that the tests of AG-UI share."""

from typing import Any

from broker import Action, AnswerKind, AsyncBroker, Interrupt
from broker.interop import agui

THREAD = "th_2"
EDITABLE = (AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT, AnswerKind.CANCEL)


def transfer(call: str = "call_9", **more: Any) -> Interrupt:
    """May this much be sent?"""
    return Interrupt.approval(Action(tool="wire_transfer", arguments={"to": "a", "n": 1}), call, **more)


async def ask(broker: AsyncBroker, *asked: Interrupt, thread: str = THREAD, run: str = "run_5") -> str:
    """The broker's run behind the AG-UI run that has just paused with these questions."""
    done = await broker.suspend("payer", *asked, session=thread, key=run, protocol_id=run)
    return done.run_id


async def ids(broker: AsyncBroker, run_id: str) -> tuple[str, ...]:
    """The ids of a run's questions."""
    return (await broker.runs.get(run_id)).interrupt_ids


def entry(interrupt: str, payload: Any = None, status: str = "resolved", **more: Any) -> dict[str, Any]:
    """One resume entry, as JSON."""
    return {"interruptId": interrupt, "status": status, "payload": payload, **more}


def request(
    *entries: dict[str, Any], thread: str = THREAD, run: str = "run_6", **more: Any
) -> agui.RunAgentInput:
    """What a client sends."""
    body = {"threadId": thread, "runId": run, "messages": [], **more}
    return agui.RunAgentInput.from_json({**body, "resume": list(entries)} if entries else body)


async def foreign(
    broker: AsyncBroker, *interrupts: dict[str, Any], run: str = "run_5", thread: str = THREAD
) -> str:
    """The broker's run behind an AG-UI run of another agent that ended with these interrupts."""
    event = {"type": "RUN_FINISHED", "threadId": thread, "runId": run}
    outcome = {"type": "interrupt", "interrupts": list(interrupts)}
    pause = agui.suspension_of(agui.RunFinished.from_json(event | {"outcome": outcome}), "payer")
    assert pause is not None
    (done,) = await broker.batch.suspend([pause])
    assert done.ok, done
    return getattr(done, "run_id", "")
