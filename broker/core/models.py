"""What a pausing worker writes: the frozen state of the agent, and the questions it cannot go on without."""

from datetime import timedelta
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, InstanceOf, StrictBytes, StrictInt

from ..errors import InvalidInput
from .answers import Answer, AnswerKind, Principal
from .digest import DIGEST_VERSION, action_digest, canonical_json, content_digest
from .fields import Few, Id, Instant, Json, JsonArray, JsonObject, Name, OpenWord, Span, Text, Trust
from .kinds import ApprovalPending, Custom, InterruptionKind, ScheduledPause, UnknownKind
from .limits import JSON, LIMITS
from .shape import Model


class OnExpiry(OpenWord):
    """What happens at the deadline. None of them approves unless a default answer does."""

    DENY = "deny"
    """An approval is refused, a completion fails."""
    CANCEL = "cancel"
    """The interrupt ends as cancelled: nobody answered, which is not a rejection."""
    WAIT = "wait"
    """It stays open; the deadline was a reminder."""
    DEFAULT = "default"
    """The interrupt's `default_answer` is written as the verdict."""


class OnMissed(OpenWord):
    """What happens when a job misses a heartbeat."""

    FAIL = "fail"
    """The interrupt ends as expired, and the call with it."""
    RING = "ring"
    """The bell of those who complete jobs is rung again, at each span that passes; the interrupt stays open."""


class Audience(OpenWord):
    """The consumer group an interrupt is for: those who decide, or those who complete work done elsewhere."""

    APPROVALS = "approvals"
    COMPLETIONS = "completions"


class Action(Model):
    """What would be done: a tool and its arguments. Its digest binds an answer to exactly this (A12)."""

    SHOWN: ClassVar[tuple[str, ...]] = ("tool",)

    tool: Id
    arguments: Json

    @cached_property
    def digest(self) -> str:
        """`1:` and a SHA-256 over tool and canonical arguments: 1.0 and 1 agree, the order of keys is no matter."""
        return action_digest(self.tool, self.arguments)


class PendingToolCall(Model):
    """A tool call the agent wanted to make when it was frozen; `arguments` must be there and may be null."""

    SHOWN: ClassVar[tuple[str, ...]] = ("tool_call_id", "tool_name")

    tool_call_id: Id
    tool_name: Id
    arguments: Json


class InterruptState(Model):
    """The agent, frozen at the pause. `interrupted_at` (Unix seconds) is set by the server and kept on import.

    A framework that serializes itself leaves its bytes in `opaque`, with its name in `framework`; nobody else reads
    them. They are stored as they are.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("interrupted_at", "framework", "size")
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"pending_tool_calls", "context_snapshot", "system_prompt"})
    MOST: ClassVar[int] = LIMITS.state_bytes

    interrupted_at: StrictInt | None = None
    pending_tool_calls: tuple[PendingToolCall, ...] = ()
    context_snapshot: JsonArray = Field(default_factory=list)
    system_prompt: Text = ""
    model: Json = None
    framework: Text | None = None
    opaque: StrictBytes | None = None

    @property
    def size(self) -> str:
        """How much is in it, for logs: calls, context items and opaque bytes."""
        opaque = len(self.opaque or b"")
        return f"{len(self.pending_tool_calls)} calls, {len(self.context_snapshot)} context items, {opaque} bytes"


_K = AnswerKind
_COMPLETION_OFFERS = (_K.COMPLETE, _K.FAIL, _K.CANCEL)


class Interrupt(Model):
    """One question a run cannot go on without, as the pausing worker writes it.

    A response or completion satisfies `response_schema`, the arguments of an edit `arguments_schema` (both need the
    extra `schema`). Unset `offers`, `on_expiry` and `audience` follow from the kind: see `offered`, `at_expiry` and
    `addressed_to`.
    `expires_in` is a timedelta, None for never, or the namespace's default (24 h); `expires_at` excludes it. Time is
    the server's. With a `heartbeat` the job of a completion has to tell that often that it runs, from the pause on;
    `on_missed` says what happens when it does not (default: it fails). `agent`, `build`, `priority`, `epoch` and
    `protocol_ids` are the run's; the broker fills them in.
    """

    SHOWN: ClassVar[tuple[str, ...]] = (
        "kind",
        "reason",
        "action",
        "call_id",
        "offers",
        "on_expiry",
        "audience",
    )
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"kind", "payload", "reason"})
    NULLABLE: ClassVar[frozenset[str]] = frozenset({"expires_in"})
    MAY_HAVE_RUN: ClassVar[str] = "may_have_run"

    kind: InstanceOf[InterruptionKind] = Field(default_factory=Custom)
    payload: Json = None
    reason: Id = "custom"
    message: Text | None = None
    action: Action | None = None
    call_id: Id | None = None
    response_schema: JsonObject | None = None
    arguments_schema: JsonObject | None = None
    expires_in: Span | Literal["default"] | None = "default"
    expires_at: Instant | None = None
    heartbeat: Span | None = None
    on_missed: OnMissed | None = None
    offers: tuple[AnswerKind, ...] | None = None
    on_expiry: OnExpiry | None = None
    default_answer: InstanceOf[Answer] | None = None
    audience: Audience | None = None
    labels: Few = ()
    reviewers: Few = ()
    metadata: JsonObject = Field(default_factory=dict)
    subagent_run_id: Id | None = None
    agent_path: Few = ()
    pending_handle: Json = None
    requested_by: Principal | None = None
    policy: Text | None = None
    policy_version: Text | None = None
    traceparent: Text | None = None
    key_id: Id | None = None
    agent: Name | None = None
    build: Name | None = None
    priority: StrictInt | None = None
    epoch: StrictInt | None = None
    protocol_ids: Few = ()
    digest_version: StrictInt = DIGEST_VERSION

    def model_post_init(self, context: object) -> None:
        """Hold what the fields say together: the call, the deadline, the default answer."""
        if context is Trust.OURS:
            return
        if isinstance(self.kind, ApprovalPending) and self.call_id != self.kind.tool_use_id:
            if self.call_id is not None:
                raise InvalidInput("call_id", "differs from the kind's tool_use_id", "one id for one call")
            object.__setattr__(self, "call_id", self.kind.tool_use_id)
        if self.expires_at is not None and self.expires_in != "default":
            raise InvalidInput("expires_at", "is given beside expires_in", "one of the two")
        if isinstance(self.expires_in, timedelta) and self.expires_in <= timedelta():
            raise InvalidInput("expires_in", "is not positive", "a timedelta above zero, or None for never")
        self._check_heartbeat()
        if self.offers == ():
            raise InvalidInput("offers", "is empty", "at least one answer, or None for those of the kind")
        if (self.on_expiry is OnExpiry.DEFAULT) != (self.default_answer is not None):
            raise InvalidInput(
                "default_answer", "and on_expiry='default' need one another", "both or neither"
            )
        if self.default_answer is not None and self.default_answer.kind not in self.offered:
            raise InvalidInput("default_answer", "is not among the offers", ", ".join(self.offered))

    def _check_heartbeat(self) -> None:
        if self.on_missed is not None and self.heartbeat is None:
            raise InvalidInput("on_missed", "is given without heartbeat", "both, or no on_missed")
        if self.heartbeat is None:
            return
        if self.heartbeat <= timedelta():
            raise InvalidInput(
                "heartbeat", "is not positive", "a timedelta above zero, or None for no heartbeats"
            )
        if self.audience is not Audience.COMPLETIONS or self.on_expiry is OnExpiry.DEFAULT:
            raise InvalidInput(
                "heartbeat", "is for jobs done elsewhere", "a completion, without a default answer"
            )

    @classmethod
    def approval(cls, action: Action, call_id: str, **rest: JSON) -> Self:
        """The question whether a tool call may run."""
        return cls(kind=ApprovalPending(tool_use_id=call_id), reason="tool_call", action=action, **rest)

    @classmethod
    def completion(cls, action: Action, call_id: str, handle: JSON = None, **rest: JSON) -> Self:
        """The wait for a job that runs elsewhere; `handle` is what its start returned."""
        return cls(
            reason="awaiting_completion",
            action=action,
            call_id=call_id,
            pending_handle=handle,
            audience=Audience.COMPLETIONS,
            **rest,
        )

    @classmethod
    def doubt(cls, action: Action, call_id: str, attempt: int, **rest: JSON) -> Self:
        """The question what became of a call whose worker died in its middle: it may have run."""
        return cls(
            reason=cls.MAY_HAVE_RUN,
            message=f"Call {call_id} was begun (attempt {attempt}) and its worker died: it may have run. Approve to "
            "run it again, respond with its result if it did run, or reject.",
            payload={"call_id": call_id, "attempt": attempt},
            action=action,
            call_id=cls.doubt_id(call_id, attempt),
            offers=(_K.APPROVE, _K.RESPOND, _K.REJECT, _K.CANCEL),
            on_expiry=OnExpiry.DENY,
            **rest,
        )

    @staticmethod
    def doubt_id(call_id: str, attempt: int) -> str:
        """The call id under which `doubt` asks."""
        return f"{call_id}~{attempt}"

    @classmethod
    def question(cls, payload: JSON = None, schema: dict[str, JSON] | None = None, **rest: JSON) -> Self:
        """A question to a person, whose answer satisfies `schema` (which needs the extra `schema`)."""
        return cls(reason="input_required", payload=payload, response_schema=schema, **rest)

    @property
    def addressed_to(self) -> Audience:
        """The group that answers it: `audience`, or approvals."""
        return self.audience or Audience.APPROVALS

    @property
    def offered(self) -> tuple[AnswerKind, ...]:
        """The answers it takes: `offers`, or those of its kind. Editing is possible only where offered."""
        if self.offers is not None:
            return self.offers
        if self.addressed_to is Audience.COMPLETIONS:
            return _COMPLETION_OFFERS
        match self.kind:
            case ApprovalPending():
                return (_K.APPROVE, _K.REJECT, _K.CANCEL)
            case ScheduledPause():
                return (_K.APPROVE, _K.RESPOND, _K.CANCEL)
            case Custom():
                return (_K.RESPOND, _K.APPROVE, _K.REJECT, _K.CANCEL)
            case _:  # never settled by anything but an explicit act (E4)
                return (_K.CANCEL,)

    @property
    def at_expiry(self) -> OnExpiry:
        """What its deadline does: `on_expiry`, or by kind: approvals and completions deny, others cancel."""
        if self.on_expiry is not None:
            return self.on_expiry
        if self.addressed_to is Audience.COMPLETIONS or isinstance(self.kind, ApprovalPending):
            return OnExpiry.DENY
        return OnExpiry.CANCEL if isinstance(self.kind, Custom | ScheduledPause) else OnExpiry.WAIT

    @cached_property
    def content_digest(self) -> str:
        """`1:` and a SHA-256 over everything a decider is shown; part of the interrupt's id and what `seen=` names."""
        return self.digest_of(self.to_wire())

    @staticmethod
    def digest_of(wire: dict[str, JSON]) -> str:
        """The content digest of an interrupt by its map."""
        content = {name: wire[name] for name in _CONTENT if name in wire}
        return f"{DIGEST_VERSION}:{content_digest(canonical_json(content))}"


_CONTENT = (
    "kind",
    "payload",
    "reason",
    "message",
    "action",
    "call_id",
    "response_schema",
    "arguments_schema",
    "offers",
    "on_expiry",
    "default_answer",
    "audience",
    "policy",
    "policy_version",
)

UNREADABLE = Interrupt(kind=UnknownKind(raw={"type": "unreadable"}), reason="unreadable")
"""Stands where the stored bytes cannot be read: open, active, and only an explicit cancel ends it (P7)."""


class InputRecord(Model):
    """What a run was started with."""

    ALWAYS: ClassVar[frozenset[str]] = frozenset({"input"})

    input: Json = None
    metadata: JsonObject = Field(default_factory=dict)
    protocol_ids: Few = ()


class ResultRecord(Model):
    """What a run finished with; null is a result."""

    result: Json
