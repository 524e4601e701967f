"""Pausing from inside: what tools, nodes and middleware raise.

    async def quote(order):
        ended = interrupt({"ask": "is 40 too much?"})      # pauses here; entered again, it returns how that ended

Under a `guard` the code is entered again from the top when its questions are settled.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ClassVar, Final

from ...core.kinds import ApprovalPending, Custom, InterruptionKind, ScheduledPause, parse_kind
from ...core.limits import JSON, check_json
from ...core.models import Action, Interrupt
from ...core.records import InterruptRecord, Resolution
from ...errors import InvalidInput


class Interrupted(BaseException):
    """A dispatch pauses: why, and what whoever decides is shown. Not an `Exception`, so none of those handlers eats it.

    Equal by value. Its text shows the kind and never the payload.
    """

    code: ClassVar[str] = "interrupted"

    def __init__(self, kind: InterruptionKind, payload: JSON = None) -> None:
        super().__init__()
        self.kind = kind
        self.payload: JSON = check_json("payload", payload)

    def __str__(self) -> str:
        return f"It pauses here: {self.kind.label}."

    def __repr__(self) -> str:
        return f"Interrupted(kind={self.kind!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Interrupted)
            and self.question().content_digest == other.question().content_digest
        )

    def __hash__(self) -> int:
        return hash(self.question().content_digest)

    def __reduce__(self) -> tuple[object, ...]:
        return Interrupted, (self.kind, self.payload)

    def to_json(self) -> dict[str, JSON]:
        """`{"kind": {"type": ...}, "payload": ...}`; a null payload is written, as a payload may be any JSON."""
        return {"kind": self.kind.to_json(), "payload": self.payload}

    @classmethod
    def from_json(cls, data: JSON) -> "Interrupted":
        """The pause behind its JSON. Raises `InvalidInput` for a malformed kind; an unknown one is kept (E3)."""
        if not isinstance(data, dict) or "kind" not in data:
            raise InvalidInput("kind", "is missing", "an object with kind and payload")
        try:
            return cls(parse_kind(data["kind"]), data.get("payload"))
        except InvalidInput as fault:
            wrong = fault if fault.field.startswith("payload") else fault.inside("kind")
        raise wrong

    @classmethod
    def of(cls, record: InterruptRecord) -> "Interrupted":
        """What entelix would have raised for an interrupt of the broker, whoever asked it.

        An approval whose question has no payload gets entelix's: `run_id`, `tool_use_id`, `tool` and `input`.
        """
        one = record.interrupt
        if one.payload is None and isinstance(one.kind, ApprovalPending) and one.action is not None:
            shown = approval_payload(
                record.run_id, one.kind.tool_use_id, one.action.tool, one.action.arguments
            )
            return cls(one.kind, shown)
        return cls(one.kind, one.payload)

    def question(self, **asked: Any) -> Interrupt:
        """The question the broker asks for this pause; `asked` are further fields of it, such as `reviewers`."""
        fields: dict[str, Any] = {"kind": self.kind, "payload": self.payload, **asked}
        match self.kind:
            case ApprovalPending():
                return Interrupt(reason="tool_call", action=_action(self.payload), **fields)
            case ScheduledPause():  # nobody has to decide it in time: it waits
                waits = {} if "expires_at" in asked else {"expires_in": None}
                return Interrupt(reason=self.kind.TAG, **(waits | fields))
            case _:
                return Interrupt(**fields)


def approval_payload(run_id: str, tool_use_id: str, tool: str, arguments: JSON) -> dict[str, JSON]:
    """What an approval that awaits somebody external shows; `run_id` is empty where there is none."""
    return {"run_id": run_id, "tool_use_id": tool_use_id, "tool": tool, "input": arguments}


def _action(payload: JSON) -> Action | None:
    if isinstance(payload, dict) and isinstance(payload.get("tool"), str) and "input" in payload:
        return Action(tool=payload["tool"], arguments=payload["input"])
    return None


_CUSTOM: Final = Custom()


def interrupt(payload: JSON = None, kind: InterruptionKind = _CUSTOM) -> Resolution:
    """How this question ended; where it was not asked yet, raises `Interrupted` and so pauses the run.

    Under a guard the code is entered again from the top when the question is settled, and then this returns; the nth
    equal question gets the nth answer. Denied (`answer` is a `Reject`), abandoned and timed out stay apart: look at
    `state` and `answer`. Outside a guard it always raises.
    """
    raised, take = Interrupted(kind, payload), ANSWERS.get()
    found = take(raised) if take is not None else None
    if found is None:
        raise raised
    return found


ANSWERS: Final[ContextVar[Callable[[Interrupted], Resolution | None] | None]] = ContextVar(
    "broker_entelix_answers", default=None
)
"""Set by a guard: how a question of its run ended, for the first who asks."""
