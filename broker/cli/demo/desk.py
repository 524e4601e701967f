"""The agent of the demo: a shop's support desk. What model and customers say is written down; the tools are these."""

import asyncio
import json
from collections.abc import Callable
from importlib import resources
from typing import Any, Final

from ... import Action, Complete, Edit, Fail, Interrupt, InterruptRecord, InterruptState, Reject, Run
from ...core.answers import Approve
from ...core.limits import JSON

AGENT: Final = "desk"
QUEUE: Final = "desk"

Message = dict[str, Any]

ORDERS: Final = {
    "1142": "kettle, 38.50, delivered",
    "1150": "tea towels, 24.00, delivered, paid twice",
    "1163": "lamp, 61.00, sent",
    "1171": "table cloth, 59.00, returned",
    "1188": "10 lanterns, 190.00, packed",
    "1190": "dinner set, 480.00, delivered",
    "1195": "coat rack, 45.00, packed",
    "1201": "mirror, 72.00, sent",
}

RUNS_AT_ONCE: Final[dict[str, Callable[..., str]]] = {
    "look_up_order": lambda order: f"order {order}: {ORDERS[order]}",
}
"""Tools that do no harm."""

NEEDS_A_PERSON: Final[dict[str, Callable[..., str]]] = {
    "refund_payment": lambda order, amount: f"{amount:.2f} refunded for order {order}",
    "cancel_order": lambda order: f"order {order} cancelled",
    "change_address": lambda customer, street, city, country: (
        f"customer {customer} now lives at {street}, {city}, {country}"
    ),
    "close_account": lambda customer: f"account of customer {customer} closed",
}
"""Tools that run when somebody has approved the call."""

DONE_ELSEWHERE: Final = frozenset({"trace_parcel", "export_invoices"})
"""Jobs of others: started here, completed hours later, by whoever does them."""


def cases() -> dict[str, list[Message]]:
    """Every case of the demo by its name: its messages, from the customer's letter to the desk's last word."""
    lines = (
        resources.files(__package__ or "").joinpath("cases.jsonl").read_text(encoding="utf-8").splitlines()
    )
    return {record["run_id"]: record["messages"] for record in map(json.loads, lines)}


class Desk:
    """Runs cases. `pace` is how long the model thinks, in seconds."""

    def __init__(self, pace: float) -> None:
        self._cases = cases()
        self._pace = pace

    async def work(self, run: Run[Any]) -> JSON:
        """Goes on with a case to its next question or its end; everything before is in the frozen state."""
        script = self._cases[run.input["case"]]
        messages: list[Message] = list(run.state.context_snapshot) if run.state else []
        messages += [told(one) for one in run.interrupts]
        while len(messages) < len(script):
            message = script[len(messages)]
            messages.append(message)
            if message["role"] == "assistant":
                await asyncio.sleep(self._pace)
            calls = message.get("tool_calls", [])
            questions = [question(call) for call in calls if call["function"]["name"] not in RUNS_AT_ONCE]
            if questions:
                await run.suspend(*questions, state=InterruptState(context_snapshot=messages))
                return None
            messages += [result(call["id"], *use(call)) for call in calls]
        return {"messages": messages}


def question(call: Message) -> Interrupt:
    """What is asked about a call that does not run at once."""
    tool, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
    action = Action(tool=tool, arguments=arguments)
    if tool in DONE_ELSEWHERE:
        job = f"{tool}-{arguments.get('order') or arguments.get('customer')}"
        return Interrupt.completion(action, call["id"], job)
    offers = ("approve", "edit", "reject", "cancel")
    return Interrupt.approval(
        action, call["id"], offers=offers, message=f"May the desk {tool.replace('_', ' ')}?"
    )


def told(asked: InterruptRecord) -> Message:
    """The tool message of a call that was asked about, by how the question ended."""
    action, ending = asked.interrupt.action, asked.resolution
    if action is None or ending is None:
        raise LookupError(asked.id)
    match ending.answer:
        case Approve():
            text = NEEDS_A_PERSON[action.tool](**action.arguments)
        case Edit(arguments=arguments):
            text = NEEDS_A_PERSON[action.tool](**arguments)
        case Reject(reason=reason):
            text = f"not done, {ending.by.id if ending.by else 'somebody'} says: {reason}"
        case Complete(value=value):
            text = str(value)
        case Fail(error=error):
            text = f"failed: {error}"
        case _:
            text = f"not done: {ending.state}"
    return result(asked.interrupt.call_id or "", action.tool, text)


def use(call: Message) -> tuple[str, str]:
    """The name of a harmless tool, and what it says."""
    tool = call["function"]["name"]
    return tool, RUNS_AT_ONCE[tool](**json.loads(call["function"]["arguments"]))


def result(call_id: str, tool: str, text: str) -> Message:
    """A tool message."""
    return {"role": "tool", "tool_call_id": call_id, "name": tool, "content": text}
