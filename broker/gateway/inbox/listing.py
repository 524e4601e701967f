"""The open list: what waits for an answer, filtered, page by page, and equal calls together."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import Request

from ..._async.client import AsyncBroker
from ...core.answers import Principal
from ...core.kinds import InterruptionKind
from ...core.records import InterruptRecord

ON_A_PAGE: Final = 50
GROUPED: Final = 200
LOOKED_AT: Final = 500
AGES: Final = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1), "1d": timedelta(days=1)}
AGE_WORDS: Final = {"5m": "5 minutes", "1h": "1 hour", "1d": "1 day"}
KINDS: Final = tuple(InterruptionKind.VARIANTS)
KIND_WORDS: Final = {
    "custom": "question",
    "approval_pending": "approval",
    "scheduled_pause": "scheduled pause",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader wants to see."""

    queue: str = ""
    tool: str = ""
    kind: str = ""
    label: str = ""
    age: str = ""
    mine: bool = False
    grouped: bool = False

    @classmethod
    def of(cls, request: Request) -> "Wanted":
        """The filters in a page's address."""
        given = {
            name: request.query_params.get(name, "").strip()
            for name in ("queue", "tool", "kind", "label", "age")
        }
        flags = {name: request.query_params.get(name) == "1" for name in ("mine", "grouped")}
        return cls(**given, **flags)  # type: ignore[arg-type]  # names are fields

    @property
    def is_filtered(self) -> bool:
        """Whether anything is left out."""
        return any((self.queue, self.tool, self.kind, self.label, self.age, self.mine))

    def query(self, **other: Any) -> str:
        """The address of the same list, with something else wanted."""
        values = {name: getattr(self, name) for name in self.__slots__} | other
        given = {name: "1" if value is True else value for name, value in values.items() if value}
        return f"?{urlencode(given)}" if given else ""


@dataclass(frozen=True, slots=True)
class Group:
    """Open calls that are equal: the same tool with the same arguments, or one that has no equal."""

    records: tuple[InterruptRecord, ...]

    @property
    def first(self) -> InterruptRecord:
        """The oldest."""
        return self.records[0]


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of the list."""

    records: tuple[InterruptRecord, ...]
    cursor: str | None
    looked_at: int

    @property
    def version(self) -> str:
        """What changes when the page would show something else."""
        ids = " ".join([one.id for one in self.records] + [str(self.cursor)])
        return hashlib.sha256(ids.encode()).hexdigest()[:16]

    def groups(self) -> list[Group]:
        """Equal calls together."""
        return grouped(self.records)


def grouped(records: Iterable[InterruptRecord]) -> list[Group]:
    """Equal calls together, in the order of their oldest."""
    found: dict[str, list[InterruptRecord]] = {}
    for one in records:
        found.setdefault(likeness(one), []).append(one)
    return [Group(tuple(some)) for some in found.values()]


def likeness(record: InterruptRecord) -> str:
    """What equal calls have in common; questions without an action are like nothing else."""
    action = record.interrupt.action
    offers = ",".join(record.interrupt.offered)
    return f"{action.tool} {action.digest} {offers}" if action is not None else record.id


def names(who: Principal) -> frozenset[str]:
    """What a person is called among reviewers: their id, and their groups."""
    return frozenset({who.id, *who.groups})


async def listed(broker: AsyncBroker, wanted: Wanted, who: Principal, cursor: str | None) -> Listed:
    """One page of what is wanted, oldest first. A page that is filtered may be shorter or a little longer."""
    limit = GROUPED if wanted.grouped else ON_A_PAGE
    called = names(who)
    found: list[InterruptRecord] = []
    looked = 0
    while True:
        page = await broker.inbox.list(
            queue=wanted.queue or None, tool=wanted.tool or None, kind=wanted.kind or None,
            label=wanted.label or None, older_than=AGES.get(wanted.age), cursor=cursor, limit=limit,
        )  # fmt: skip
        looked, cursor = looked + page.looked_at, page.cursor
        found += [one for one in page.items if not wanted.mine or called & {*one.interrupt.reviewers}]
        if cursor is None or len(found) >= limit // 2 or looked >= LOOKED_AT:
            return Listed(tuple(found), cursor, looked)
