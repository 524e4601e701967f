"""What AG-UI's events carry inside them: messages and their parts, patches, interrupts, outcomes, a run's input.

Each shape says what its fields may hold, no more: what is done about a field of another kind is told in `events`.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictInt,
    StrictStr,
    Tag,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

ABSENT: Any = None
"""The default of a field that may be left out."""
_SAFE = 2**53 - 1
"""The largest whole number that survives JSON everywhere."""


def _some(value: object) -> object:
    if value is None:
        raise PydanticCustomError("null", "is null; a field without a value is left out")
    return value


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def one_of(*words: str) -> AfterValidator:
    """A word of a set that may grow: another text is unknown, not malformed."""

    def check(value: str) -> str:
        if value not in words:
            raise PydanticCustomError("unknown_member", "{told}", {"told": f"is none of {', '.join(words)}"})
        return value

    return AfterValidator(check)


Some = Annotated[Any, AfterValidator(_some)]
Object = dict[StrictStr, Any]
Texts = list[StrictStr]
Moment = Annotated[StrictInt, BeforeValidator(_whole), Field(ge=-_SAFE, le=_SAFE)]
Count = Annotated[StrictInt, BeforeValidator(_whole), Field(ge=0, le=_SAFE)]
TextRole = Annotated[StrictStr, one_of("developer", "system", "assistant", "user")]


class Described(BaseModel):
    """What the schema describes of one object: other fields are unknown, a null is no value."""

    # The generator makes every name camel case; nobody makes a value by hand who could miss the names here. Built when
    # the first event of its kind comes, since few programs that speak AG-UI judge streams.
    model_config: ClassVar[ConfigDict] = ConfigDict(  # type: ignore[pydantic-alias]
        extra="forbid",
        alias_generator=to_camel,
        defer_build=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )


class TextPart(Described):
    """A part of a message that is text."""

    type: Literal["text"]
    id: StrictStr = ABSENT
    text: StrictStr
    metadata: Some = ABSENT


class DataSource(Described):
    """Bytes carried inline."""

    type: Literal["data"]
    value: StrictStr
    mime_type: StrictStr


class UrlSource(Described):
    """Bytes behind an address."""

    type: Literal["url"]
    value: StrictStr
    mime_type: StrictStr = ABSENT


class FileSource(Described):
    """Bytes that a model's provider holds."""

    type: Literal["file"]
    value: StrictStr
    provider: StrictStr = ABSENT
    mime_type: StrictStr = ABSENT


class MediaPart(Described):
    """A part of a message that is no text."""

    type: Literal["image", "audio", "video", "document"]
    id: StrictStr = ABSENT
    source: Annotated[DataSource | UrlSource | FileSource, Field(discriminator="type")]
    metadata: Some = ABSENT


Part = Annotated[TextPart | MediaPart, Field(discriminator="type")]
Content = Annotated[
    Annotated[StrictStr, Tag("<text>")] | Annotated[list[Part], Tag("<parts>")],
    Discriminator(lambda value: "<parts>" if isinstance(value, list) else "<text>"),
]


class Function(Described):
    """What a tool call calls, and with what."""

    name: StrictStr
    arguments: StrictStr


class ToolCall(Described):
    """A call in an assistant's message."""

    id: StrictStr
    type: Literal["function"]
    function: Function
    encrypted_value: StrictStr = ABSENT
    encrypted_value_type: StrictStr = ABSENT
    metadata: Object = ABSENT


class Said(Described):
    """What every message may carry."""

    id: StrictStr
    subagent_run_id: StrictStr = ABSENT
    metadata: Object = ABSENT


class Sealed(Said):
    """A message that may carry what only its producer can read."""

    encrypted_value: StrictStr = ABSENT
    encrypted_value_type: StrictStr = ABSENT


class Instruction(Sealed):
    """A message of the application's makers."""

    role: Literal["developer", "system"]
    name: StrictStr = ABSENT
    content: StrictStr


class AssistantMessage(Sealed):
    """A message of the agent."""

    role: Literal["assistant"]
    name: StrictStr = ABSENT
    content: StrictStr = ABSENT
    tool_calls: list[ToolCall] = ABSENT


class UserMessage(Sealed):
    """A message of a person."""

    role: Literal["user"]
    name: StrictStr = ABSENT
    content: Content


class ToolMessage(Sealed):
    """What a tool returned."""

    role: Literal["tool"]
    content: Content
    tool_call_id: StrictStr
    error: StrictStr = ABSENT


class ActivityMessage(Said):
    """Progress, kept among the messages."""

    role: Literal["activity"]
    activity_type: StrictStr
    content: Object


class ReasoningMessage(Sealed):
    """What the model thought."""

    role: Literal["reasoning"]
    content: StrictStr


Message = Annotated[
    Instruction | AssistantMessage | UserMessage | ToolMessage | ActivityMessage | ReasoningMessage,
    Field(discriminator="role"),
]

Pointer = Annotated[StrictStr, Field(pattern=r"^(/([^/~]|~[01])*)*$")]


class Operation(Described):
    """One step of a JSON Patch; members that it does not define are let be (RFC 6902, section 4)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    path: Pointer


class ValueOperation(Operation):
    """A step that needs a value; null is one."""

    op: Literal["add", "replace", "test"]
    value: Any


class RemoveOperation(Operation):
    """A step that takes something away."""

    op: Literal["remove"]


class MoveOperation(Operation):
    """A step from one place to another."""

    op: Literal["move", "copy"]
    from_: Pointer = Field(alias="from")


Patch = list[Annotated[ValueOperation | RemoveOperation | MoveOperation, Field(discriminator="op")]]


class Interrupt(Described):
    """What a run needs from outside."""

    id: StrictStr
    reason: StrictStr
    message: StrictStr = ABSENT
    tool_call_id: StrictStr = ABSENT
    response_schema: Object = ABSENT
    expires_at: StrictStr = ABSENT
    metadata: Object = ABSENT
    subagent_run_id: StrictStr = ABSENT


class Succeeded(Described):
    """The outcome of a run that completed."""

    type: Literal["success"]
    pending_tool_call_ids: Texts = ABSENT


class Interrupted(Described):
    """The outcome of a run that waits."""

    type: Literal["interrupt"]
    interrupts: Annotated[list[Interrupt], Field(min_length=1)]


class Cancelled(Described):
    """The outcome of a run that was stopped."""

    type: Literal["cancelled"]


class SubagentSucceeded(Described):
    """The outcome of an invocation that completed."""

    type: Literal["success"]


class SubagentSuspended(Described):
    """The outcome of an invocation that waits."""

    type: Literal["suspended"]
    interrupt_ids: Texts = ABSENT


Outcome = Annotated[Succeeded | Interrupted | Cancelled, Field(discriminator="type")]
SubagentEnding = Annotated[SubagentSucceeded | SubagentSuspended, Field(discriminator="type")]


class Usage(Described):
    """What the calls of one model cost."""

    provider: StrictStr = ABSENT
    model: StrictStr = ABSENT
    input_tokens: Count = ABSENT
    output_tokens: Count = ABSENT
    total_tokens: Count = ABSENT
    reasoning_tokens: Count = ABSENT
    cached_input_tokens: Count = ABSENT
    cache_write_input_tokens: Count = ABSENT


class Tool(Described):
    """A tool of the application."""

    name: StrictStr
    description: StrictStr
    parameters: Some = ABSENT
    metadata: Object = ABSENT


class Context(Described):
    """Something an agent should know."""

    description: StrictStr
    value: StrictStr


class Resume(Described):
    """An answer to an interrupt."""

    interrupt_id: StrictStr
    ended: Annotated[StrictStr, one_of("resolved", "cancelled")] = Field(alias="status")
    payload: Some = ABSENT
    metadata: Object = ABSENT


class RunInput(Described):
    """What a run was asked."""

    thread_id: StrictStr
    run_id: StrictStr
    protocol_version: StrictStr = ABSENT
    parent_run_id: StrictStr = ABSENT
    state: Some = ABSENT
    messages: list[Message]
    tools: list[Tool] = ABSENT
    context: list[Context] = ABSENT
    forwarded_props: Some = ABSENT
    resume: list[Resume] = ABSENT
