"""How long the first of each list has waited: a few rounds of reads, bounded by the lists and pools."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..keys import Partition, Pool
from .answers import moment
from .values import Arg, Read, readable, text


@dataclass(frozen=True, slots=True)
class Heads:
    """The open interrupt that was asked first, and the run of each pool that is taken next; empty for none."""

    interrupt: str
    runs: tuple[str, ...]


def read_heads(p: Partition, lists: Sequence[str], pools: Sequence[Pool]) -> Read[Heads]:
    """What stands first in the lists of open interrupts together, and in each list of ready runs."""
    commands: list[tuple[Arg, ...]] = [("ZRANGE", p.key("open", one), 0, 0, "WITHSCORES") for one in lists]
    commands += [("ZRANGE", p.key("ready", pool), 0, 0) for pool in pools]

    def decode(replies: list[Any]) -> Heads:
        rows = [() if isinstance(one, Exception) else one for one in replies]
        first = min((_row(one) for one in rows[: len(lists)] if one), default=(0.0, ""))[1]
        return Heads(first, tuple(text(one[0]) if one else "" for one in rows[len(lists) :]))

    return Read(tuple(commands), decode, forgiving=True)


def _row(found: Any) -> tuple[float, str]:
    member, score = found[0] if isinstance(found[0], list | tuple) else found
    return float(score), text(member)


def read_opened(p: Partition, interrupt: str) -> Read[datetime | None]:
    """When an interrupt was asked; None where that cannot be read."""
    key = p.key("interrupt", interrupt)
    return Read((("GET", key),), lambda r: _time(r[0], key, "opened"), forgiving=True)


@dataclass(frozen=True, slots=True)
class Since:
    """Since when a run may go on, as far as its record says, and the interrupts whose end it has waited for."""

    at: datetime | None
    interrupts: tuple[str, ...]


def read_since(p: Partition, runs: Sequence[str]) -> Read[tuple[Since, ...]]:
    """Of each run when it paused or was started, and what it was asking."""

    def decode(replies: list[Any]) -> tuple[Since, ...]:
        found = []
        for run, reply in zip(runs, replies, strict=True):
            key = p.key("run", run)
            fields = readable(reply, key) or {}
            at = _time(reply, key, "suspended") or _time(reply, key, "created")
            found.append(Since(at, tuple(text(fields.get("ids", b"")).split())))
        return tuple(found)

    return Read(tuple(("GET", p.key("run", run)) for run in runs), decode, forgiving=True)


def read_last_settled(p: Partition, interrupts: Sequence[str]) -> Read[datetime | None]:
    """When the last of some interrupts was settled; None where none is."""

    def decode(replies: list[Any]) -> datetime | None:
        keys = (p.key("interrupt", one) for one in interrupts)
        times = [_time(reply, key, "at") for reply, key in zip(replies, keys, strict=True)]
        return max((one for one in times if one is not None), default=None)

    return Read(tuple(("GET", p.key("interrupt", one)) for one in interrupts), decode, forgiving=True)


def _time(reply: Any, key: str, field: str) -> datetime | None:
    micro = text((readable(reply, key) or {}).get(field, b""))
    return moment(micro) if micro.isdecimal() else None
