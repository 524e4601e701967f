"""How long the first of the open interrupts has waited: two reads, bounded by the number of lists."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ..keys import Partition
from .answers import moment
from .values import Read, readable, text


def read_first(p: Partition, lists: Sequence[str]) -> Read[str]:
    """The open interrupt that was asked first, of all lists together; empty for none."""
    commands = tuple(("ZRANGE", p.key("open", one), 0, 0, "WITHSCORES") for one in lists)

    def decode(replies: list[Any]) -> str:
        rows = (_row(one) for one in replies if one and not isinstance(one, Exception))
        return min(rows, default=(0.0, ""))[1]

    return Read(commands, decode, forgiving=True)


def _row(found: Any) -> tuple[float, str]:
    member, score = found[0] if isinstance(found[0], list | tuple) else found
    return float(score), text(member)


def read_opened(p: Partition, interrupt: str) -> Read[datetime | None]:
    """When an interrupt was asked; None where that cannot be read."""
    key = p.key("interrupt", interrupt)

    def decode(replies: list[Any]) -> datetime | None:
        micro = text((readable(replies[0], key) or {}).get("opened", b""))
        return moment(micro) if micro.isdecimal() else None

    return Read((("GET", key),), decode, forgiving=True)
