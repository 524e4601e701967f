"""What the one who acted is told: a closed union of small frozen classes, each with its facts and a stable `code`."""

from collections.abc import Iterator
from typing import ClassVar, Final, TypeAlias

from pydantic import Field

from .answers import AnswerKind, Principal
from .durability import Durability
from .fields import Instant
from .limits import JSON
from .records import Resolution
from .shape import Model, slots

_MEMORY: Final = Durability()


def _memory() -> Durability:
    # A factory: pydantic would copy a default of its own, deeply, for every outcome.
    return _MEMORY


class Told(Model):
    """The common part of all outcomes: a `code` for JSON, and whether the caller got what it asked for.

    `durability` is the class that what it tells had reached before it was told (P1), refusals and repeats included.
    """

    code: ClassVar[str]
    says: ClassVar[str]
    ok: ClassVar[bool] = False

    durability: Durability = Field(default_factory=_memory)

    def __str__(self) -> str:
        return self.says.format_map(vars(self))

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        facts = ((slot, getattr(self, slot.name)) for slot in slots(type(self)))
        return (
            (slot.name, fact)
            for slot, fact in facts
            if fact not in (None, ()) and (slot.always or fact != slot.default)
        )

    def _head(self) -> dict[str, JSON]:
        return {"code": self.code}


class Accepted(Told):
    """It happened, now, by this call. `durability` is the class that was reached before the reply."""

    code: ClassVar[str] = "accepted"
    says: ClassVar[str] = "It happened"
    ok: ClassVar[bool] = True
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"durability"})

    run_id: str = ""
    session_id: str = ""
    interrupt_ids: tuple[str, ...] = ()
    resolution: Resolution | None = None


class Replayed(Told):
    """It had happened already, by the same operation: the first answer again, and nothing changed."""

    code: ClassVar[str] = "replayed"
    says: ClassVar[str] = "It had happened already, by the same operation"
    ok: ClassVar[bool] = True
    ALWAYS: ClassVar[frozenset[str]] = Accepted.ALWAYS

    run_id: str = ""
    session_id: str = ""
    interrupt_ids: tuple[str, ...] = ()
    resolution: Resolution | None = None


class Winner(Model):
    """Who was first, when, with which answer and under which operation."""

    SHOWN: ClassVar[tuple[str, ...]] = ("by", "at", "answer", "op")

    by: Principal | None = None
    at: Instant | None = None
    answer: AnswerKind | None = None
    op: str | None = None


class AlreadyDecided(Told):
    """Somebody else was first; `winner` says who, when and with what (F11)."""

    code: ClassVar[str] = "already_decided"
    says: ClassVar[str] = "somebody else was first"

    winner: Winner = Field(default_factory=Winner)


class Expired(Told):
    """The deadline had passed; the interrupt ended by its own policy, at that time."""

    code: ClassVar[str] = "expired"
    says: ClassVar[str] = "its time was over"

    at: Instant | None = None


class Withdrawn(Told):
    """The one who asked took the question back."""

    code: ClassVar[str] = "withdrawn"
    says: ClassVar[str] = "the question was taken back"

    by: Principal | None = None
    at: Instant | None = None


class Superseded(Told):
    """The question lost its point: another of its suspension decided, or new input replaced it."""

    code: ClassVar[str] = "superseded"
    says: ClassVar[str] = "the question has lost its point"

    at: Instant | None = None


class NotAllowed(Told):
    """This party may not do that."""

    code: ClassVar[str] = "not_allowed"
    says: ClassVar[str] = "{reason}"

    reason: str


class Invalid(Told):
    """The request breaks a rule; nothing changed and the interrupt is still open (P12)."""

    code: ClassVar[str] = "invalid"
    says: ClassVar[str] = "{field} {problem}; allowed: {allowed}"

    field: str
    problem: str
    allowed: str


class Unknown(Told):
    """There is no such record: it never was, or its retention has passed."""

    code: ClassVar[str] = "unknown"
    says: ClassVar[str] = "there is no {id!r}: it never was, or its retention has passed"

    id: str


class NotDurable(Told):
    """It happened, or had happened, but the class asked for was not reached in time. Repeat it until it is.

    A crash of the server may undo it until then, and nothing of it is true yet: not an answer, not who was first.
    """

    code: ClassVar[str] = "not_durable"
    says: ClassVar[str] = "it happened, but reached {reached}, not {wanted}; repeat it"
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"wanted", "reached"})

    wanted: Durability
    reached: Durability = Field(default_factory=_memory)


class Parked(Told):
    """The answer came before its question; it is kept until then and matched when the run suspends."""

    code: ClassVar[str] = "parked"
    says: ClassVar[str] = "it is kept until its question is asked"
    ok: ClassVar[bool] = True

    until: Instant | None = None


class Conflict(Told):
    """Another request holds that place: the same key with other content, or a version that has moved on."""

    code: ClassVar[str] = "conflict"
    says: ClassVar[str] = "{reason}"

    reason: str


class Full(Told):
    """The server is at its memory limit; new work is refused, answers still go through (P15)."""

    code: ClassVar[str] = "full"
    says: ClassVar[str] = "{reason}"

    reason: str


Outcome: TypeAlias = (
    Accepted
    | Replayed
    | AlreadyDecided
    | Expired
    | Withdrawn
    | Superseded
    | NotAllowed
    | Invalid
    | Unknown
    | NotDurable
    | Parked
    | Conflict
    | Full
)
"""Everything a caller can be told; closed, so a type checker can tell when a `match` has forgotten one."""
