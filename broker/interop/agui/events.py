"""The events of AG-UI on the wire, and what is wrong with one of them by itself.

A known field with a bad value is an error. What is not described is stripped with a warning, so that a newer producer
is served: an unknown field alone, an unknown word or variant together with whatever requires it. The shapes here only
judge what somebody else sent, fault by fault; what the broker itself says and reads is in `shapes`, which is stricter.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import StrictBool, StrictStr, ValidationError

from ...core.limits import JSON
from .messages import (
    ABSENT,
    Content,
    Described,
    Message,
    Moment,
    Object,
    Outcome,
    Patch,
    RunInput,
    Some,
    SubagentEnding,
    TextRole,
    Usage,
    one_of,
)
from .rules import Rule, Violation


class Event(Described):
    """What every event may carry."""

    type: StrictStr
    timestamp: Moment = ABSENT
    raw_event: Some = ABSENT
    metadata: Object = ABSENT


class Attributed(Event):
    """An event that may belong to a subagent's work."""

    subagent_run_id: StrictStr = ABSENT


class RunStarted(Event):
    """Opens a run."""

    thread_id: StrictStr
    run_id: StrictStr
    protocol_version: StrictStr = ABSENT
    parent_run_id: StrictStr = ABSENT
    input: RunInput = ABSENT


class RunFinished(Event):
    """Closes a run that did not fail."""

    thread_id: StrictStr
    run_id: StrictStr
    result: Some = ABSENT
    outcome: Outcome = ABSENT
    usage: list[Usage] = ABSENT


class RunError(Event):
    """Ends a run that failed."""

    message: StrictStr
    code: StrictStr = ABSENT
    usage: list[Usage] = ABSENT


class Step(Attributed):
    """Opens or closes a step."""

    step_name: StrictStr


class OfMessage(Attributed):
    """Concerns one message, or a span of reasoning, and says no more."""

    message_id: StrictStr


class TextStart(OfMessage):
    """Opens a text message."""

    role: TextRole = ABSENT
    name: StrictStr = ABSENT


class ReasoningStart(OfMessage):
    """Opens a reasoning message."""

    role: Literal["reasoning"]


class MessageContent(OfMessage):
    """Goes on with a text or reasoning message."""

    delta: StrictStr


class ReasoningChunk(Attributed):
    """A reasoning message in short."""

    message_id: StrictStr = ABSENT
    delta: StrictStr = ABSENT


class TextChunk(ReasoningChunk):
    """A text message in short."""

    role: TextRole = ABSENT
    name: StrictStr = ABSENT


class EncryptedValue(Attributed):
    """What only the producer can read, for a message or a call."""

    subtype: Annotated[StrictStr, one_of("tool-call", "message")]
    entity_id: StrictStr
    encrypted_value: StrictStr
    encrypted_value_type: StrictStr = ABSENT


class OfCall(Attributed):
    """Concerns one tool call, and says no more."""

    tool_call_id: StrictStr


class CallStart(OfCall):
    """Opens a tool call."""

    tool_call_name: StrictStr
    parent_message_id: StrictStr = ABSENT


class CallArgs(OfCall):
    """Goes on with a call's arguments."""

    delta: StrictStr


class CallChunk(Attributed):
    """A tool call in short."""

    tool_call_id: StrictStr = ABSENT
    tool_call_name: StrictStr = ABSENT
    parent_message_id: StrictStr = ABSENT
    delta: StrictStr = ABSENT


class CallResult(OfCall):
    """What a call returned."""

    message_id: StrictStr
    content: Content
    role: Literal["tool"] = ABSENT


class StateSnapshot(Attributed):
    """The state as it is; null is a state."""

    snapshot: Any


class StateDelta(Attributed):
    """A change of the state."""

    delta: Patch


class MessagesSnapshot(Event):
    """The messages as they are."""

    messages: list[Message]


class ActivitySnapshot(OfMessage):
    """An activity as it is."""

    activity_type: StrictStr
    content: Object
    replace: StrictBool = ABSENT


class ActivityDelta(OfMessage):
    """A change of an activity."""

    activity_type: StrictStr
    patch: Patch


class Raw(Attributed):
    """Somebody else's event."""

    event: Any
    source: StrictStr = ABSENT


class Custom(Attributed):
    """An application's own event."""

    name: StrictStr
    value: Any


class SubagentStarted(Event):
    """Announces an invocation."""

    subagent_run_id: StrictStr
    name: StrictStr
    description: StrictStr = ABSENT
    parent_subagent_run_id: StrictStr = ABSENT
    parent_tool_call_id: StrictStr = ABSENT
    parent_message_id: StrictStr = ABSENT


class SubagentFinished(Event):
    """Closes an invocation's part of a run."""

    subagent_run_id: StrictStr
    result: Some = ABSENT
    outcome: SubagentEnding = ABSENT


class SubagentError(Event):
    """Ends an invocation that failed."""

    subagent_run_id: StrictStr
    message: StrictStr
    code: StrictStr = ABSENT


EVENTS: Final[dict[str, type[Event]]] = {
    "RUN_STARTED": RunStarted,
    "RUN_FINISHED": RunFinished,
    "RUN_ERROR": RunError,
    "STEP_STARTED": Step,
    "STEP_FINISHED": Step,
    "TEXT_MESSAGE_START": TextStart,
    "TEXT_MESSAGE_CONTENT": MessageContent,
    "TEXT_MESSAGE_END": OfMessage,
    "TEXT_MESSAGE_CHUNK": TextChunk,
    "TOOL_CALL_START": CallStart,
    "TOOL_CALL_ARGS": CallArgs,
    "TOOL_CALL_END": OfCall,
    "TOOL_CALL_CHUNK": CallChunk,
    "TOOL_CALL_RESULT": CallResult,
    "REASONING_START": OfMessage,
    "REASONING_END": OfMessage,
    "REASONING_MESSAGE_START": ReasoningStart,
    "REASONING_MESSAGE_CONTENT": MessageContent,
    "REASONING_MESSAGE_END": OfMessage,
    "REASONING_MESSAGE_CHUNK": ReasoningChunk,
    "REASONING_ENCRYPTED_VALUE": EncryptedValue,
    "STATE_SNAPSHOT": StateSnapshot,
    "STATE_DELTA": StateDelta,
    "MESSAGES_SNAPSHOT": MessagesSnapshot,
    "ACTIVITY_SNAPSHOT": ActivitySnapshot,
    "ACTIVITY_DELTA": ActivityDelta,
    "SUBAGENT_STARTED": SubagentStarted,
    "SUBAGENT_FINISHED": SubagentFinished,
    "SUBAGENT_ERROR": SubagentError,
    "RAW": Raw,
    "CUSTOM": Custom,
}
"""Every event of the protocol: its type, and what it may hold."""

_CONTRADICTED: Final = frozenset({"interrupts", "interruptIds"})
"""What belongs on one outcome, and contradicts each of the others."""


def faults(event: dict[str, JSON], number: int) -> Iterator[Violation]:
    """What is wrong with an event by itself, whatever stands around it."""
    kind = event.get("type")
    if not isinstance(kind, str) or not kind:
        yield Violation(Rule.MALFORMED, "the type is missing or no text", number, "type")
        return
    shape = EVENTS.get(kind)
    if shape is None:
        yield Violation(Rule.UNKNOWN_EVENT, f"{kind} is no event of the protocol", number, "type")
        return
    try:
        shape.model_validate(event)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
    else:
        return
    for fault in found:
        place = _place(event, fault["loc"])
        yield Violation(
            *_judge(fault["type"], fault["msg"], place, fault.get("input")), number, ".".join(place)
        )


def _judge(kind: str, message: str, place: list[str], value: JSON) -> tuple[Rule, str]:
    if kind == "extra_forbidden":
        if place[-1] in _CONTRADICTED and place[0] == "outcome":
            return Rule.CONTRADICTION, f"{place[-1]} is given on an outcome that has none"
        return Rule.UNKNOWN_FIELD, f"{place[-1]} is not described"
    if kind == "unknown_member":
        return Rule.UNKNOWN_MEMBER, message
    if kind == "union_tag_invalid" and _has_word(value):
        return Rule.UNKNOWN_MEMBER, "is of a kind that is not described"
    if kind.startswith("union_tag"):
        return Rule.MALFORMED, "does not say of which kind it is"
    if kind == "missing":
        return Rule.MALFORMED, f"{place[-1]} is missing"
    return Rule.MALFORMED, message.replace("Input should be", "should be").removesuffix(
        " to extract fields from"
    )


def _has_word(value: JSON) -> bool:
    """Whether a variant is named at all, if by a name that nobody here knows."""
    words = [value.get(key) for key in ("type", "role", "op")] if isinstance(value, dict) else []
    return any(isinstance(word, str) and word for word in words)


def _place(event: dict[str, JSON], loc: tuple[int | str, ...]) -> list[str]:
    """The way to a fault in the event as it was sent: without the names of variants that pydantic puts between."""
    value: Any = event
    way: list[str] = []
    at_variant = False
    for part in loc:
        tags = [value.get(key) for key in ("type", "role", "op")] if isinstance(value, dict) else [part]
        if isinstance(part, str) and part in tags and not at_variant and not _holds(value, part):
            at_variant = isinstance(value, dict)
            continue
        at_variant = False
        way.append(str(part))
        if isinstance(value, dict):
            value = value.get(str(part))
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
    return way


def _holds(value: JSON, part: str) -> bool:
    return isinstance(value, dict) and part in value


def stripped(event: dict[str, JSON], found: list[Violation]) -> dict[str, JSON]:
    """The event without its fields that hold something bad or unknown: what can still be judged in its place."""
    bad = {one.field.partition(".")[0] for one in found if one.rule is not Rule.UNKNOWN_FIELD}
    return {name: value for name, value in event.items() if name not in bad or name == "type"}
