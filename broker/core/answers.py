"""What one party says about one interrupt, and who: an open union tagged by `kind`, and the accepted one, a Verdict."""

from typing import ClassVar

from pydantic import Field, InstanceOf, StrictBool

from .fields import Few, Id, Json, JsonObject, OpenWord, Text
from .limits import JSON
from .shape import Model, Tagged


class PrincipalKind(OpenWord):
    """What sort of party it is; an agent is never counted as a person."""

    PERSON = "person"
    AGENT = "agent"
    SERVICE = "service"


class Principal(Model):
    """Who did it. `verified` is set only by what authenticated the party; a bare name stays unverified."""

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "kind", "verified")

    id: Id
    kind: PrincipalKind = PrincipalKind.PERSON
    groups: Few = ()
    claims: JsonObject = Field(default_factory=dict)
    verified: StrictBool = False

    @classmethod
    def local(cls, name: str) -> "Principal":
        """The operator at this machine, by name; unverified, since nobody checked."""
        return cls(id=name)


class AnswerKind(OpenWord):
    """The word of an answer, as offered by an interrupt and written on the wire."""

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    RESPOND = "respond"
    COMPLETE = "complete"
    FAIL = "fail"
    CANCEL = "cancel"


class Answer(Tagged):
    """One party's answer. Open: match on the classes below and keep a `case _`.

    `metadata` is what came with it and decides nothing (a signature, say), `protocol_id` the run of a protocol in which
    it came; both are kept with the answer and held against nothing.
    """

    TAG_KEY: ClassVar[str] = "kind"

    metadata: JsonObject = Field(default_factory=dict)
    protocol_id: Id | None = None

    @property
    def kind(self) -> AnswerKind:
        """Which answer this is."""
        return AnswerKind.read(self.TAG)


class Approve(Answer):
    """Go on with exactly what was shown."""

    TAG: ClassVar[str] = "approve"

    note: Text | None = None


class Edit(Answer):
    """Go on, with these arguments in place of the ones shown (a full replacement, never merged)."""

    TAG: ClassVar[str] = "edit"

    arguments: Json
    note: Text | None = None


class Reject(Answer):
    """Do not do it. The reason reaches the agent; this is neither a failure nor an abandonment (F15)."""

    TAG: ClassVar[str] = "reject"

    reason: Text


class Respond(Answer):
    """The answer to a question; any JSON, `false` and `0` included. Held to the interrupt's response schema (F16)."""

    TAG: ClassVar[str] = "respond"

    payload: Json
    note: Text | None = None


class Complete(Answer):
    """The result of a job that ran elsewhere; null is a result."""

    TAG: ClassVar[str] = "complete"

    value: Json


class Fail(Answer):
    """A job that ran elsewhere went wrong; the text reaches the agent as the call's error."""

    TAG: ClassVar[str] = "fail"

    error: Text


class Cancel(Answer):
    """Nobody is going to answer: abandoned, which is not a rejection. What came with it is kept (G17)."""

    TAG: ClassVar[str] = "cancel"
    NULLABLE: ClassVar[frozenset[str]] = frozenset({"payload"})

    reason: Text | None = None
    payload: Json = None


class UnknownAnswer(Answer):
    """An answer of another version, kept whole in `raw`; it is never accepted as one of ours."""

    SHOWN: ClassVar[tuple[str, ...]] = ("kind",)

    raw: dict[str, JSON]

    @property
    def kind(self) -> AnswerKind:
        """The word on the wire, as an unknown member."""
        return AnswerKind.read(str(self.raw.get("kind", "")))

    def to_wire(self) -> dict[str, JSON]:
        """The map as it came."""
        return dict(self.raw)


Answer.VARIANTS = {kind.TAG: kind for kind in (Approve, Edit, Reject, Respond, Complete, Fail, Cancel)}
Answer.OTHER = UnknownAnswer


def parse_answer(data: JSON) -> Answer:
    """The answer behind its JSON, from anybody; raises `InvalidInput` when it has no kind or a field is wrong."""
    return Answer.from_json(data)


class Verdict(Model):
    """The accepted answer, in a key of its own. A run goes on only from verdicts; workers may read, not write them.

    `seen` is the digest the decider was shown; `action_digest` is what may run (the edited action after an edit), and
    `changed` the paths an edit changed (F17).
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("interrupt_id", "kind", "by", "op", "action_digest")

    interrupt_id: Id
    answer: InstanceOf[Answer]
    by: Principal
    op: Id
    seen: str | None = None
    action_digest: str | None = None
    changed: tuple[str, ...] = ()

    @property
    def kind(self) -> AnswerKind:
        """Which answer was accepted."""
        return self.answer.kind
