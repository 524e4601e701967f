"""Lists: what may be asked of them, and one page of what was found."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from pydantic import StrictInt

from ..errors import InvalidInput
from .fields import to_ms
from .records import InterruptRecord
from .shape import Model

PLACE_DIGITS = 16
"""The places of an index are counters, exact as a double."""


class Page(Model):
    """One page of open interrupts, oldest first. `cursor` goes on from here, None at the end.

    `looked_at` says how many were looked at to find these: filters without an index look at a bounded number, so a
    page may hold fewer than asked for and still have a cursor.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("items", "cursor", "looked_at")
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"items", "looked_at"})

    items: tuple[InterruptRecord, ...] = ()
    cursor: str | None = None
    looked_at: StrictInt = 0

    @staticmethod
    def parse(cursor: str | None, partitions: int) -> tuple[int, int | None]:
        """The partition and place a cursor names. Raises `InvalidInput` for one that is none of ours."""
        if cursor is None:
            return 0, None
        partition, _, place = cursor.partition(".")
        if not (
            partition.isdecimal()
            and place.isdecimal()
            and int(partition) < partitions
            and len(place) <= PLACE_DIGITS
        ):
            raise InvalidInput(
                "cursor", "is none that this list gave", "the cursor of an earlier page, or none"
            )
        return int(partition), int(place)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which open interrupts are wanted; what is None is no matter."""

    queue: str | None = None
    tool: str | None = None
    kind: str | None = None
    label: str | None = None
    reviewer: str | None = None
    older_than: timedelta | None = None

    def may_hold(self, name: str) -> bool:
        """Whether the list of that name (`queue:kind:tool`) may hold what is wanted. Only a queue holds no colon."""
        queue, _, rest = name.partition(":")
        return (
            (self.queue is None or queue == self.queue)
            and (self.kind is None or rest.startswith(f"{self.kind}:"))
            and (self.tool is None or rest.endswith(f":{self.tool}"))
        )

    def match(self, record: InterruptRecord, now: int) -> bool:
        """Whether a record is wanted; `now` is the server's time in microseconds. Unreadable ones match by place."""
        one = record.interrupt
        age_ms = now // 1000 - to_ms(record.opened_at)
        return (
            (self.queue is None or record.queue == self.queue)
            and (self.kind is None or record.problem is not None or one.kind.type == self.kind)
            and (
                self.tool is None
                or record.problem is not None
                or (one.action is not None and one.action.tool == self.tool)
            )
            and (self.label is None or self.label in one.labels)
            and (self.reviewer is None or self.reviewer in one.reviewers)
            and (self.older_than is None or age_ms >= self.older_than.total_seconds() * 1000)
        )
