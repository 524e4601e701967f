"""swink's approval request and its three answers, and what they are in the broker.

    approved                      Approve
    approved_with + value         Edit: a full replacement of the arguments
    rejected                      Reject; and an expired question, since swink knows no other way to say no

Cancelled, withdrawn and superseded questions have no answer there: swink cancels the turn, which is no rejection.
"""

from collections.abc import Iterator
from typing import Final, Self

from pydantic import StrictBool

from ...core.answers import Answer, AnswerKind, Approve, Edit, Reject
from ...core.fields import Id, Json, Trust
from ...core.limits import JSON, check_json
from ...core.models import Action, Interrupt
from ...core.records import Resolution
from ...core.shape import Model
from ...core.states import Settlement
from ...errors import InvalidInput
from .hiding import HIDDEN, hidden

OFFERS: Final = (AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT, AnswerKind.CANCEL)
"""The answers a question of swink takes."""

_DECISIONS: Final = "approved, rejected, approved_with"


class ApprovalRequest(Model):
    """One call that somebody is asked about: `{id, name, arguments, requires_approval, context?}`.

    `requires_approval` is what the tool declares. A repr hides the arguments, all text of the context, and what stands
    under keys that look like secrets.
    """

    id: Id
    name: Id
    arguments: Json
    requires_approval: StrictBool
    context: Json = None

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        yield from (("id", self.id), ("name", self.name), ("arguments", HIDDEN))
        yield "requires_approval", self.requires_approval
        if self.context is not None:
            yield "context", hidden(self.context)

    @classmethod
    def of(cls, interrupt: Interrupt) -> Self:
        """The request behind a question about a call. Raises `InvalidInput` for a question about none."""
        if interrupt.action is None or interrupt.call_id is None:
            raise InvalidInput("interrupt", "is not about a call", "an approval")
        said = interrupt.payload if isinstance(interrupt.payload, dict) else {}
        return cls(
            id=interrupt.call_id, name=interrupt.action.tool, arguments=interrupt.action.arguments,
            requires_approval=said.get("requires_approval") is not False, context=said.get("context"),
        )  # fmt: skip

    def interrupt(self, **rest: JSON) -> Interrupt:
        """The question for a suspension. `rest` is what `Interrupt` takes; swink's own waits have no deadline."""
        payload: dict[str, JSON] = {"requires_approval": self.requires_approval}
        if self.context is not None:
            payload["context"] = self.context
        action = Action(tool=self.name, arguments=self.arguments)
        given = {"offers": OFFERS, "expires_in": None, "payload": payload} | rest
        return Interrupt.approval(action, self.id, **given)

    @classmethod
    def _read(cls, data: JSON, trust: Trust) -> Self:
        # Rust reads a null option as an absent one, and so does this wire.
        if isinstance(data, dict) and "context" in data and data["context"] is None:
            data = {name: value for name, value in data.items() if name != "context"}
        return super()._read(data, trust)


def read_decision(data: JSON) -> Answer:
    """The answer behind swink's JSON. Raises `InvalidInput` for everything else: what is not understood never approves.

    A `value` belongs to `approved_with`, which must have one (null is one); beside `approved` it is refused, since it
    cannot be told which arguments were meant. Other keys are passed over.
    """
    said = data.get("decision") if isinstance(data, dict) else None
    match said:
        case "approved" if "value" not in data:
            return Approve()
        case "approved":
            raise InvalidInput("value", "is given beside approved", "approved_with, or no value")
        case "approved_with" if "value" in data:
            return Edit(arguments=check_json("value", data["value"]))
        case "approved_with":
            raise InvalidInput("value", "is missing", "the arguments to run with, whole")
        case "rejected":
            return Reject(reason="rejected")
        case _:
            raise InvalidInput("decision", "is none that is known", _DECISIONS)


def write_decision(answer: Answer) -> dict[str, JSON]:
    """An answer as swink's JSON (the reason of a rejection has no place there). Raises `InvalidInput` for others."""
    match answer:
        case Approve():
            return {"decision": "approved"}
        case Edit(arguments=arguments):
            return {"decision": "approved_with", "value": arguments}
        case Reject():
            return {"decision": "rejected"}
        case _:
            raise InvalidInput("answer", "has no form in swink", "approve, edit or reject")


def decision_of(resolution: Resolution) -> dict[str, JSON] | None:
    """How a question ended, as swink's JSON; None where swink would cancel the turn, which is no rejection."""
    if resolution.state is Settlement.RESOLVED and resolution.answer is not None:
        return write_decision(resolution.answer)
    return {"decision": "rejected"} if resolution.state is Settlement.EXPIRED else None
