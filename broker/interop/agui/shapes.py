"""AG-UI 1.0 on the wire: interrupts, resume entries, run outcomes, and the messages that carry them.

CamelCase, unset fields absent and never null. Reading is strict: a null for a whole optional field is refused, as is a
known field with a bad value; `read_compat` takes nulls of older producers for absent and says so. Null inside
`metadata`, `payload` or `state` is data. Fields and outcomes of another version are kept and written back.
"""

from enum import StrEnum
from typing import ClassVar, Final, Self, TypeVar

from pydantic import InstanceOf

from ...core.fields import Id, Json, JsonArray, JsonObject, Text, Trust
from ...core.limits import JSON
from ...core.shape import Model, Tagged, bare_type, slots
from ...errors import InvalidInput

TOOL_CALL: Final = "tool_call"
INPUT_REQUIRED: Final = "input_required"
CONFIRMATION: Final = "confirmation"
RESERVED: Final = "core:"
"""Reasons that begin so belong to the protocol."""


class Status(StrEnum):
    """What became of an interrupt. Closed: another word is refused."""

    RESOLVED = "resolved"
    """Somebody answered; a no is an answer too."""
    CANCELLED = "cancelled"
    """Nobody did: the interrupt is abandoned."""


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


class Shape(Model):
    """A value on AG-UI's wire: snake_case here, camelCase there."""

    @classmethod
    def _wire_name(cls, name: str) -> str:
        return _camel(name)

    @classmethod
    def _make(cls, values: dict[str, JSON], unknown: dict[str, JSON], trust: Trust) -> Self:
        try:
            return super()._make(values, unknown, trust)
        except InvalidInput as fault:
            head, dot, rest = fault.field.partition(".")
            wrong = InvalidInput(f"{_camel(head)}{dot}{rest}", fault.problem, fault.allowed)
        raise wrong


class Interrupt(Shape):
    """One question of a run that ended interrupted. Only `id` and `reason` are required.

    `reason` is open: `tool_call` (needs `tool_call_id`), `input_required`, `confirmation`, or `framework:name`; those
    of `core:` are the protocol's. `expires_at` is any text, ISO 8601 by convention.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "reason", "tool_call_id", "expires_at", "subagent_run_id")
    RULES: ClassVar[dict[str, JSON]] = {
        "if": {"properties": {"reason": {"const": TOOL_CALL}}},
        "then": {"required": ["toolCallId"]},
    }

    id: Id
    reason: Id
    message: Text | None = None
    tool_call_id: Id | None = None
    response_schema: JsonObject | None = None
    expires_at: Text | None = None
    metadata: JsonObject | None = None
    subagent_run_id: Id | None = None

    def model_post_init(self, context: object) -> None:
        """Hold the reason: a tool call names its call, and nobody but the protocol makes reasons of `core:`."""
        if self.reason == TOOL_CALL and self.tool_call_id is None:
            raise InvalidInput("toolCallId", "is missing", "the id of the call, for the reason tool_call")
        if context is None and self.reason.startswith(RESERVED):
            raise InvalidInput("reason", "is reserved for the protocol", "framework:name, or one of AG-UI's")


class ResumeEntry(Shape):
    """What became of one interrupt: answered (`resolved`) or abandoned (`cancelled`), nothing else.

    `payload` is any JSON; absent and null mean none, `false`, `0`, `""` and `[]` are answers.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("interrupt_id", "status")
    NULLABLE: ClassVar[frozenset[str]] = frozenset({"payload"})

    interrupt_id: Id
    status: Status
    payload: Json = None
    metadata: JsonObject | None = None


class RunOutcome(Tagged):
    """How a run ended. Open: match on the classes below and keep a `case _`."""

    TAG_KEY: ClassVar[str] = "type"

    @property
    def type(self) -> str:
        """The word on the wire."""
        return self.TAG

    @classmethod
    def _wire_name(cls, name: str) -> str:
        return _camel(name)

    @classmethod
    def _read_fields(cls, data: dict[str, JSON], trust: Trust) -> Self:
        own = {slot.wire for slot in slots(cls)}
        for name in data:
            if name in _OF_OUTCOMES - own:
                raise InvalidInput(name, f"is given on {cls.TAG}", "the fields of its outcome")
        return super()._read_fields(data, trust)


class Success(RunOutcome):
    """The run ended well. `pending_tool_call_ids` are calls the frontend is to make; absent is not the same as none."""

    TAG: ClassVar[str] = "success"

    pending_tool_call_ids: tuple[Id, ...] | None = None


class Interrupted(RunOutcome):
    """The run waits: these interrupts, at least one and of different ids, are to be answered together."""

    TAG: ClassVar[str] = "interrupt"
    RULES: ClassVar[dict[str, JSON]] = {"properties": {"interrupts": {"minItems": 1}}}

    interrupts: tuple[Interrupt, ...]

    def model_post_init(self, _context: object) -> None:
        """Hold what the list must be."""
        if not self.interrupts:
            raise InvalidInput("interrupts", "is empty", "at least one interrupt")
        ids = [one.id for one in self.interrupts]
        if len(set(ids)) != len(ids):
            raise InvalidInput("interrupts", "holds an id twice", "ids that differ within the run")


class Cancelled(RunOutcome):
    """The run was called off: neither success nor failure, with nothing left open. The next run is an ordinary one."""

    TAG: ClassVar[str] = "cancelled"


class UnknownOutcome(RunOutcome):
    """An outcome of another version, kept whole in `raw`. Nothing is closed on it."""

    SHOWN: ClassVar[tuple[str, ...]] = ("type",)

    raw: dict[str, JSON]

    @property
    def type(self) -> str:
        """The word on the wire."""
        return str(self.raw.get("type", ""))

    def to_wire(self) -> dict[str, JSON]:
        """The map as it came."""
        return dict(self.raw)


RunOutcome.VARIANTS = {kind.TAG: kind for kind in (Success, Interrupted, Cancelled)}
RunOutcome.OTHER = UnknownOutcome
_OF_OUTCOMES: Final = frozenset({"interrupts", "pendingToolCallIds", "interruptIds"})
"""The fields of any outcome: each belongs to one, and is refused on the others."""
for _kind in RunOutcome.VARIANTS.values():
    _others = sorted(_OF_OUTCOMES - {slot.wire for slot in slots(_kind)})
    _kind.RULES = {**_kind.RULES, "not": {"anyOf": [{"required": [name]} for name in _others]}}


class Event(Shape):
    """An event of a stream. Events are in the order in which they come; `timestamp` orders nothing."""

    TYPE: ClassVar[str]
    NULLABLE: ClassVar[frozenset[str]] = frozenset({"raw_event"})

    timestamp: Json = None
    raw_event: Json = None

    def __init_subclass__(cls, **options: JSON) -> None:
        super().__init_subclass__(**options)
        cls.RULES = {"properties": {"type": {"const": cls.TYPE}}, "required": ["type"]}

    def _head(self) -> dict[str, JSON]:
        return {"type": self.TYPE}

    @classmethod
    def _read(cls, data: JSON, trust: Trust) -> Self:
        if not isinstance(data, dict) or data.get("type") != cls.TYPE:
            raise InvalidInput("type", "is another", cls.TYPE)
        return super()._read({name: value for name, value in data.items() if name != "type"}, trust)


class RunStarted(Event):
    """The event that begins a run: `RUN_STARTED`, with the version of the protocol that the agent speaks."""

    TYPE: ClassVar[str] = "RUN_STARTED"
    SHOWN: ClassVar[tuple[str, ...]] = ("thread_id", "run_id", "protocol_version")

    thread_id: Id
    run_id: Id
    protocol_version: Text | None = None
    parent_run_id: Id | None = None
    input: JsonObject | None = None


class RunError(Event):
    """The event of a run that failed: `RUN_ERROR`."""

    TYPE: ClassVar[str] = "RUN_ERROR"
    SHOWN: ClassVar[tuple[str, ...]] = ("code",)

    message: Text
    code: Text | None = None


class RunFinished(Event):
    """The event that ends a run: `RUN_FINISHED`. No outcome means success, a null one is refused."""

    TYPE: ClassVar[str] = "RUN_FINISHED"
    SHOWN: ClassVar[tuple[str, ...]] = ("thread_id", "run_id", "outcome")
    NULLABLE: ClassVar[frozenset[str]] = Event.NULLABLE | {"result"}

    thread_id: Id
    run_id: Id
    result: Json = None
    outcome: InstanceOf[RunOutcome] | None = None
    usage: Json = None
    metadata: JsonObject | None = None

    @property
    def ended(self) -> RunOutcome:
        """The outcome, success where none is given."""
        return self.outcome or Success()

    @property
    def closes(self) -> bool:
        """Whether the work is over; an interrupted run is not, and of an outcome nobody here knows nothing is said."""
        return isinstance(self.ended, Success | Cancelled) and not self.pending_tool_call_ids

    @property
    def pending_tool_call_ids(self) -> tuple[str, ...]:
        """The calls the frontend is to make before the thread goes on."""
        return (self.ended.pending_tool_call_ids or ()) if isinstance(self.ended, Success) else ()

    def passed_on(self) -> tuple["RunFinished", tuple[str, ...]]:
        """The event for readers of this version, and a warning where it lost an outcome that nobody here knows."""
        if not isinstance(self.outcome, UnknownOutcome):
            return self, ()
        return self.model_copy(update={"outcome": None}), (f"outcome {self.outcome.type!r} is not known",)


class RunAgentInput(Shape):
    """What a client sends to run an agent: a thread, a new run id, the messages, and the answers to what is open."""

    SHOWN: ClassVar[tuple[str, ...]] = ("thread_id", "run_id", "parent_run_id", "protocol_version", "resume")
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"messages"})
    NULLABLE: ClassVar[frozenset[str]] = frozenset({"state", "forwarded_props"})

    thread_id: Id
    run_id: Id
    messages: JsonArray
    protocol_version: Text | None = None
    parent_run_id: Id | None = None
    state: Json = None
    tools: JsonArray | None = None
    context: JsonArray | None = None
    forwarded_props: Json = None
    resume: tuple[ResumeEntry, ...] | None = None


M = TypeVar("M", bound=Model)


def read_compat(kind: type[M], data: JSON) -> tuple[M, tuple[str, ...]]:
    """The value of an older producer, and a warning for each null that was read as absent; see the strict `from_json`.

    Raises `InvalidInput` for everything else that is wrong.
    """
    warnings: list[str] = []
    return kind.from_json(_without_nulls(kind, data, "", warnings)), tuple(warnings)


def _without_nulls(kind: type[Model], data: JSON, place: str, warnings: list[str]) -> JSON:
    if not isinstance(data, dict):
        return data
    if issubclass(kind, Tagged):
        kind = kind.VARIANTS.get(data.get(kind.TAG_KEY, ""), kind.OTHER)
    known, out = {slot.wire: slot for slot in slots(kind)}, {}
    for name, value in data.items():
        slot = known.get(name)
        if slot is None or slot.nullable or (value is None and slot.required):
            out[name] = value
        elif value is None:
            warnings.append(f"{place}{name} is null; read as absent")
        else:
            out[name] = _inside(kind, slot.name, value, f"{place}{name}", warnings)
    return out


def _inside(kind: type[Model], field: str, value: JSON, place: str, warnings: list[str]) -> JSON:
    bare = bare_type(kind.model_fields[field].annotation)
    if isinstance(value, list):
        element = bare_type(getattr(bare, "__args__", (object,))[0])
        if isinstance(element, type) and issubclass(element, Model):
            return [_without_nulls(element, item, f"{place}[{n}].", warnings) for n, item in enumerate(value)]
    if isinstance(bare, type) and issubclass(bare, Model):
        return _without_nulls(bare, value, f"{place}.", warnings)
    return value
