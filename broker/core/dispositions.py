"""Why a call's checkpoint was written and how to go on, on ADK-Rust's wire; and how a subagent's part closed."""

from typing import ClassVar, Self

from pydantic import InstanceOf, StrictInt

from ..errors import InvalidInput
from .fields import Id, Json, OpenWord, Text, Trust
from .limits import JSON
from .shape import Model, Tagged
from .states import CallState


class ResolutionRecord(Model):
    """How a call ended: `Value` or `Raise`, never both."""

    KEY: ClassVar[str]


class Value(ResolutionRecord):
    """The call returned this; null is a result."""

    KEY: ClassVar[str] = "Value"

    value: Json


class Raise(ResolutionRecord):
    """The call ended with an error, or was not allowed to run; the text reaches the agent."""

    KEY: ClassVar[str] = "Raise"

    error: Text


class Disposition(Tagged):
    """Why a checkpoint was written. Open: match on the classes below and keep a `case _`."""

    TAG_KEY: ClassVar[str] = "kind"

    @property
    def kind(self) -> str:
        """The word on the wire; one of `CallState` where this release knows it."""
        return self.TAG


class PendingResult(Disposition):
    """Written before an inline call runs; after a crash it runs again under the same key."""

    TAG: ClassVar[str] = CallState.PENDING_RESULT.value


class Resolved(Disposition):
    """Written after a call; its record is handed out and the call never runs again."""

    TAG: ClassVar[str] = CallState.RESOLVED.value

    record: InstanceOf[ResolutionRecord]

    def to_wire(self) -> dict[str, JSON]:
        """Exactly one of `Value` and `Raise` beside the tag (A2)."""
        record = self.record
        payload = record.value if isinstance(record, Value) else getattr(record, "error", None)
        return {self.TAG_KEY: self.TAG, record.KEY: payload}

    @classmethod
    def _read_fields(cls, data: dict[str, JSON], trust: Trust) -> Self:
        if len(data) != 1 or not data.keys() <= {"Value", "Raise"}:
            raise InvalidInput(
                "resolved", "holds other than one of its two keys", "exactly one of Value and Raise"
            )
        record: ResolutionRecord
        if "Value" in data:
            record = Value._make({"value": data["Value"]}, {}, trust)
        else:
            record = Raise._make({"error": data["Raise"]}, {}, trust)
        return cls._make({"record": record}, {}, trust)


class AwaitingConfirmation(Disposition):
    """A gated call waits for a decision; nothing has run."""

    TAG: ClassVar[str] = CallState.AWAITING_CONFIRMATION.value


class AwaitingCompletion(Disposition):
    """A long-running call, started or about to be; its result comes from elsewhere. A null handle is none (A3)."""

    TAG: ClassVar[str] = CallState.AWAITING_COMPLETION.value

    pending_handle: Json = None

    @classmethod
    def _read_fields(cls, data: dict[str, JSON], trust: Trust) -> Self:
        return super()._read_fields(
            {k: v for k, v in data.items() if k != "pending_handle" or v is not None}, trust
        )


class UnknownDisposition(Disposition):
    """A disposition of another version, kept whole in `raw`: the call stays active and nothing is done about it."""

    SHOWN: ClassVar[tuple[str, ...]] = ("kind",)

    raw: dict[str, JSON]

    @property
    def kind(self) -> str:
        """The word on the wire."""
        return str(self.raw.get("kind", ""))

    def to_wire(self) -> dict[str, JSON]:
        """The map as it came."""
        return dict(self.raw)


Disposition.VARIANTS = {
    kind.TAG: kind for kind in (PendingResult, Resolved, AwaitingConfirmation, AwaitingCompletion)
}
Disposition.OTHER = UnknownDisposition


def parse_disposition(data: JSON) -> Disposition:
    """The disposition behind its JSON; a missing kind, a bare string or a malformed `resolved` is refused (A2, A4)."""
    return Disposition.from_json(data)


class CallRecord(Model):
    """The broker's record of one tool call or step of a run."""

    SHOWN: ClassVar[tuple[str, ...]] = ("call_id", "tool", "disposition", "attempt", "interrupt_id")

    call_id: Id
    tool: Id
    digest: str
    disposition: InstanceOf[Disposition]
    attempt: StrictInt = 0
    interrupt_id: Id | None = None


class SubagentEnd(OpenWord):
    """How a subagent's part of a run closed."""

    SUCCESS = "success"
    SUSPENDED = "suspended"


class SubagentOutcome(Model):
    """How a subagent's segment closed: done, or waiting on the interrupts it raised itself.

    AG-UI's wire: an absent outcome is success, a null one is refused; ids are a list, an empty list or absent (an
    ancestor that waits on a descendant has none), never null, and never on a success (G7, G8).
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("end", "ids")
    RULES: ClassVar[dict[str, JSON]] = {
        "properties": {"type": {"minLength": 1}},
        "if": {"properties": {"type": {"const": "success"}}},
        "then": {"not": {"required": ["interruptIds"]}},
    }

    end: SubagentEnd
    ids: tuple[str, ...] | None = None

    @classmethod
    def success(cls) -> Self:
        """The work completed."""
        return cls(end=SubagentEnd.SUCCESS)

    @classmethod
    def suspended(cls, interrupt_ids: tuple[str, ...] | list[str] | None = None) -> Self:
        """Waiting on these interrupts, or on a descendant's."""
        return cls(end=SubagentEnd.SUSPENDED, ids=None if interrupt_ids is None else tuple(interrupt_ids))

    @classmethod
    def of_event(cls, event: dict[str, JSON]) -> Self:
        """The outcome of a SUBAGENT_FINISHED event: no `outcome` is success, a null one is refused."""
        return cls.from_json(event["outcome"]) if "outcome" in event else cls.success()

    @property
    def is_suspended(self) -> bool:
        """Whether it waits rather than being done."""
        return self.end is SubagentEnd.SUSPENDED

    @property
    def interrupt_ids(self) -> tuple[str, ...]:
        """The interrupts a suspended subagent owns itself, or none."""
        return self.ids or ()

    @classmethod
    def _wire_name(cls, name: str) -> str:
        return {"end": "type", "ids": "interruptIds"}[name]

    @classmethod
    def _read(cls, data: JSON, trust: Trust) -> Self:
        if not isinstance(data, dict) or not isinstance(data.get("type"), str) or not data["type"]:
            raise InvalidInput(
                "outcome", "is null or has no type", "an object with the type success or suspended"
            )
        if data["type"] == SubagentEnd.SUCCESS and "interruptIds" in data:
            raise InvalidInput(
                "outcome.interruptIds", "is given on a success", "ids on a suspended outcome only"
            )
        return super()._read(data, trust)
