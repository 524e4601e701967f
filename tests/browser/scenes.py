"""What lies in the inbox while the browser looks: questions as agents of an airline ask them."""

from datetime import timedelta
from typing import Any

from broker import Accepted, Action, AnswerKind, AsyncBroker, Interrupt, InterruptState, Principal
from broker.core.batches import Suspension

OFFERS = (AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT, AnswerKind.RESPOND, AnswerKind.CANCEL)

CONVERSATION = [
    {"role": "user", "content": "My flight LH 482 was cancelled. I want my money back, all of it."},
    {"role": "assistant", "content": "I am sorry. I see your booking for two passengers; both fares are refundable.",
     "tool_calls": [{"id": "call_9", "name": "find_booking", "arguments": {"locator": "B-7KQ2"}}]},
    {"role": "tool", "content": '{"locator": "B-7KQ2", "paid": 84260, "currency": "EUR"}'},
    {"role": "user", "content": [{"type": "text", "text": "Both of us, please. To the card we paid with."}]},
]  # fmt: skip

REFUND: dict[str, Any] = {
    "booking": "B-7KQ2",
    "cents": 84260,
    "currency": "EUR",
    "to": {"method": "card", "ending": "4417"},
    "passengers": ["Ines Moreau", "Tom Moreau"],
    "reason": "LH 482 cancelled by the airline",
    "notify": True,
}

TRIAGE: dict[str, Any] = {
    "type": "object",
    "required": ["team", "urgent"],
    "properties": {
        "team": {"enum": ["baggage", "refunds", "rebooking"], "title": "Team"},
        "urgent": {"type": "boolean", "title": "Urgent"},
        "minutes": {"type": "integer", "minimum": 5, "maximum": 240, "title": "Minutes needed"},
        "tags": {"type": "array", "items": {"type": "string"}, "title": "Tags"},
        "contact": {
            "type": "object", "title": "Contact", "properties": {"phone": {"type": "string", "title": "Phone"}},
        },
    },
}  # fmt: skip


def refund(**rest: Any) -> Interrupt:
    """A refund that a person has to approve."""
    given: dict[str, Any] = {
        "message": "The customer asks for a full refund of a cancelled flight.",
        "offers": OFFERS, "reviewers": ("refunds",), "labels": ("eu261",), "expires_in": timedelta(minutes=15),
        "requested_by": Principal(id="customer:ines.moreau"), "policy": "refunds-over-500", "policy_version": "7",
    }  # fmt: skip
    return Interrupt.approval(Action(tool="issue_refund", arguments=REFUND), "call_17", **(given | rest))


def triage() -> Interrupt:
    """A question with a form."""
    return Interrupt.question(
        {"ticket": "T-2210", "summary": "Two bags missing after MUC, customer travels on tomorrow."}, TRIAGE,
        message="Which team takes this ticket?", labels=("triage",),
    )  # fmt: skip


async def ask(broker: AsyncBroker, question: Interrupt, session: str = "s_1", agent: str = "airline") -> str:
    """One question; its id."""
    state = InterruptState(
        context_snapshot=CONVERSATION, system_prompt="You help passengers.",
    )  # fmt: skip
    paused = await broker.suspend(agent, question, session=session, state=state)
    return paused.interrupt_ids[0]


async def equal(broker: AsyncBroker, count: int) -> list[str]:
    """So many equal calls of as many sessions."""
    voucher = Action(tool="send_voucher", arguments={"value": 25, "currency": "EUR", "valid_days": 365})
    pauses = [
        Suspension(
            agent="goodwill", session=f"goodwill_{n}", interrupts=[Interrupt.approval(voucher, f"call_{n}")]
        )
        for n in range(count)
    ]
    ids: list[str] = []
    for at in range(0, count, 500):
        for outcome in await broker.batch.suspend(pauses[at : at + 500]):
            assert isinstance(outcome, Accepted)
            ids += outcome.interrupt_ids
    return ids


async def morning(broker: AsyncBroker) -> str:
    """A full inbox; the id of the refund in it."""
    found = await ask(broker, refund(), "chat-20418")
    await ask(broker, triage(), "ticket-2210", "triage")
    cancel = Action(
        tool="cancel_reservation", arguments={"locator": "B-9XW1", "fee_cents": 0, "waive": "weather"}
    )
    await ask(
        broker, Interrupt.approval(cancel, "call_3", labels=("weather",), reviewers=("ops",)), "chat-20431"
    )
    rebook = Action(
        tool="rebook", arguments={"locator": "B-3LM8", "from": "LH 482", "to": "LH 484", "class": "Y"}
    )
    await ask(broker, Interrupt.approval(rebook, "call_8", expires_in=timedelta(seconds=100)), "chat-20433")
    await equal(broker, 5)
    video = Action(tool="render_video", arguments={"prompt": "Gate change, 20 s, three languages"})
    await ask(
        broker, Interrupt.completion(video, "call_5", {"job": "r-118"}, expires_in=None), "studio-7", "studio"
    )
    await ask(
        broker,
        Interrupt(payload={"text": "Is a paper voucher fine?"}, message="Is a paper voucher fine?"),
        "chat-20440",
    )
    return found
