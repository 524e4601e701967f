"""Who answers in the demo: ana decides what the desk may do, a carrier completes what is done elsewhere."""

import asyncio
from dataclasses import dataclass, field

from ... import (
    Action,
    Answer,
    Approve,
    AsyncBroker,
    Audience,
    Complete,
    Edit,
    Fail,
    Principal,
    PrincipalKind,
    Reject,
)

ANA = Principal.local("ana")
OUTSIDE = Principal(id="carrier", kind=PrincipalKind.SERVICE)

MOST = 200.0
"""What ana lets the desk give back at once."""

JOBS: dict[str, Answer] = {
    "trace_parcel-1163": Complete(value="left with the neighbour at number 14"),
    "trace_parcel-1201": Fail(error="the carrier has no trace of it"),
    "export_invoices-81": Complete(value="invoices-81-2025.zip, 14 pages"),
    "export_invoices-99": Complete(value="invoices-99-2025.zip, 3 pages"),
}
"""How the jobs done elsewhere end, by their handle."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What those who answer know, for the telling: by interrupt, the tool it is about, and what they said."""

    tools: dict[str, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)


SAID = {
    "approve": "approved",
    "edit": "edited",
    "reject": "rejected",
    "complete": "completed",
    "fail": "failed",
}


def decide(action: Action) -> Answer:
    """Ana's answer to a call."""
    match action.tool, action.arguments:
        case "refund_payment", {"amount": float(amount)} if amount > MOST:
            return Edit(
                arguments={**action.arguments, "amount": MOST}, note="the rest needs a second pair of eyes"
            )
        case "change_address", {"country": country} if country != "NL":
            return Reject(reason=f"we do not ship to {country}")
        case _:
            return Approve()


async def answer_all(broker: AsyncBroker, notes: Notes, pace: float) -> None:
    """Answers whatever is asked, until cancelled. `notes` gets what each interrupt is about, and the answer."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_follow(broker, Audience.APPROVALS, notes, pace))
        group.create_task(_follow(broker, Audience.COMPLETIONS, notes, pace * 2))


async def _follow(broker: AsyncBroker, audience: Audience, notes: Notes, pace: float) -> None:
    async for delivery in broker.inbox.follow(audience):
        record = delivery.record
        action = record.interrupt.action
        if action is None:
            continue
        notes.tools[record.id] = action.tool
        await asyncio.sleep(pace)  # it is read, and thought about
        elsewhere = audience is Audience.COMPLETIONS
        answer = JOBS[str(record.interrupt.pending_handle)] if elsewhere else decide(action)
        notes.answers[record.id] = SAID[answer.kind]
        await broker.inbox.answer(record.id, answer, by=OUTSIDE if elsewhere else ANA, seen=record.digest)
