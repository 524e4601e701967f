"""What happened in a namespace, as it is told to those who follow: ids and words, never an argument or a payload."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple, Self

from pydantic import StrictInt

from ..errors import InvalidInput
from .answers import Principal
from .fields import Few, Id, Instant, Name
from .shape import Model

BEGINNING: Final = "0"
"""The cursor before everything that is kept."""


class EventType(StrEnum):
    """What may have happened. Another version may tell more: pass over what you do not know."""

    OPENED = "interrupt.opened"
    REMINDED = "interrupt.reminded"
    """Nobody of its group has seen an open interrupt, and its doorbell was rung again."""
    SETTLED = "interrupt.settled"
    """It has ended; `state` says how."""
    FINISHED = "run.finished"
    WITHDRAWN = "run.withdrawn"
    DEAD = "run.dead"
    UNMATCHED = "answer.unmatched"
    """An answer came before its question, and the question never came."""
    GAP = "gap"
    """Some were lost before this follower read them: look at the lists. `missed` says how many, where that is known."""


class Event(Model):
    """One thing that happened. `cursor` goes on after it; `id` is the same for every follower and at each repeat.

    The facts beside the ids are of now: what was deleted since is told with its ids only.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("type", "id", "at", "interrupt_id", "run_id", "state")

    type: str
    id: str
    cursor: str
    at: Instant
    interrupt_id: Id | None = None
    run_id: Id | None = None
    session_id: Id | None = None
    queue: Name | None = None
    agent: Name | None = None
    audience: str | None = None
    kind: str | None = None
    tool: str | None = None
    labels: Few = ()
    state: str | None = None
    answer: str | None = None
    """What sort of answer settled it: approve, edit, reject, ...; None where nobody answered."""
    by: Principal | None = None
    missed: StrictInt | None = None


class Place(NamedTuple):
    """How far a stream was read: the id of the last entry, and how many entries it had had until there."""

    ms: int = 0
    seq: int = 0
    had: int = 0

    @property
    def id(self) -> str:
        """The id of the entry, as the server writes it."""
        return f"{self.ms}-{self.seq}"

    def is_before(self, other: "Place") -> bool:
        """Whether it lies before another place of the same stream."""
        return (self.ms, self.seq) < (other.ms, other.seq)

    def __str__(self) -> str:
        return f"{self.ms:x}.{self.seq:x}.{self.had:x}"


_PLACE: Final = re.compile(r"([0-9a-f]{1,12})\.([0-9a-f]{1,12})\.([0-9a-f]{1,12})")
_MARK: Final = "c"


def read_cursor(cursor: str, streams: int) -> tuple[Place, ...]:
    """The places that a cursor stands for, one for each stream. Raises `InvalidInput` for one that is none of ours."""
    parts = cursor.removeprefix(_MARK).split("_")
    found = [_PLACE.fullmatch(one) for one in parts]
    if cursor.startswith(_MARK) and len(parts) == streams and all(found):
        return tuple(Place(*(int(number, 16) for number in one.groups())) for one in found if one)
    raise InvalidInput("after", "is none that this namespace gave", "the cursor of an event, or none")


def write_cursor(places: Iterable[Place | str]) -> str:
    """The text of some places."""
    return _MARK + "_".join(map(str, places))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events are wanted; what is None is no matter. A gap is for everybody."""

    session: str | None = None
    run: str | None = None
    queue: str | None = None
    types: frozenset[str] | None = field(default=None)

    @classmethod
    def of(cls, session: str | None, run: str | None, queue: str | None, types: Iterable[str] | None) -> Self:
        """The same, checked. Raises `InvalidInput` for a type that there is not."""
        wanted = frozenset(types) if types is not None else None
        for one in wanted or ():
            if one not in set(EventType):
                raise InvalidInput("types", f"names {one!r}, which is none", ", ".join(EventType))
        return cls(session, run, queue, wanted)

    def match(self, event: Event) -> bool:
        """Whether an event is wanted."""
        return event.type == EventType.GAP or (
            (self.session is None or event.session_id == self.session)
            and (self.run is None or event.run_id == self.run)
            and (self.queue is None or event.queue == self.queue)
            and (self.types is None or event.type in self.types)
        )
