"""What an approver says about one tool call, on entelix's wire: `"approve"`, `{"reject": {...}}`, `"await_external"`.

A decision is an `Answer` of the broker: `Approve` and `Reject` are, and `AwaitExternal` is the third, which no question
offers, so that no interrupt can be settled by it (E6).
"""

from typing import ClassVar, Final

from ...core.answers import Answer, Approve, Reject
from ...core.limits import JSON
from ...core.records import InterruptRecord
from ...core.states import Settlement
from ...errors import InvalidInput


class AwaitExternal(Answer):
    """Not here and not now: somebody elsewhere decides, and the run pauses until then."""

    TAG: ClassVar[str] = "await_external"


_ALLOWED: Final = "approve, reject with a reason, await_external"
_BARE: Final[dict[str, type[Answer]]] = {kind.TAG: kind for kind in (Approve, AwaitExternal)}


def parse_decision(data: JSON, *, field: str = "decision") -> Answer:
    """The decision behind its JSON. Raises `InvalidInput` for another word and for a reject without its reason (E5)."""
    if isinstance(data, str) and data in _BARE:
        return _BARE[data]()
    if isinstance(data, dict) and len(data) == 1:
        ((word, body),) = data.items()
        if word in _BARE and body is None:
            return _BARE[word]()
        if word == Reject.TAG and isinstance(body, dict):
            return _reject(body, field)
    raise InvalidInput(field, "is none of the three", _ALLOWED)


def _reject(body: dict[str, JSON], field: str) -> Answer:
    try:
        return Reject.from_json(body | {Answer.TAG_KEY: Reject.TAG})
    except InvalidInput as fault:
        wrong = fault
    raise wrong.inside(f"{field}.reject")


def decision_json(decision: Answer) -> JSON:
    """The JSON of a decision. Raises `InvalidInput` for an answer that entelix has no word for."""
    match decision:
        case Approve() | AwaitExternal():
            return decision.TAG
        case Reject():
            return {
                Reject.TAG: {key: value for key, value in decision.to_wire().items() if key != Answer.TAG_KEY}
            }
        case _:
            raise InvalidInput("decision", f"is {decision.kind}", _ALLOWED)


def decision_of(record: InterruptRecord) -> Answer | None:
    """What entelix is told of an interrupt: the decision, a reject where nobody decided in time, else None.

    `AwaitExternal` while it is open. None where it was cancelled, withdrawn or superseded, or settled by an answer that
    entelix has no word for: none of those is a decision, and least of all a reject (E12).
    """
    ended = record.resolution
    if ended is None:
        return AwaitExternal()
    if ended.state is Settlement.EXPIRED:
        waited = (record.deadline or ended.at) - record.opened_at
        return silence(waited.total_seconds())
    return ended.answer if isinstance(ended.answer, Approve | Reject) else None


def silence(seconds: float) -> Reject:
    """The reject that stands for nobody having decided within so many seconds (E11)."""
    return Reject(reason=f"no decision within {round(seconds, 3):g} s")
