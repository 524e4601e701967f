"""What the sweeper and the readers of doorbells do: due timers, rings, acknowledgements, retention, the worker list."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ..keys import Partition, Pool
from .address import Address, run_keys
from .values import Command, Item, Read, Reply, micros, pairs, text


@dataclass(frozen=True, slots=True)
class Due:
    """What the timers and the retention list of a partition ask for now (ids only: each step checks for itself)."""

    now: int
    interrupts: tuple[str, ...]
    runs: tuple[str, ...]
    stale: tuple[str, ...]
    unseen: dict[str, tuple[str, ...]]
    pools: tuple[Pool, ...]


def sweep_right(p: Partition, name: str, span: timedelta) -> Command[bool]:
    """Whether `name` may sweep the partition for a while; a zero span gives the right up."""
    item = Item((p.key("sweeper"),), (name, round(span.total_seconds() * 1000)))
    return Command("sweep", p, (item,), lambda _, reply: text(reply[0]) == "yes")


def read_due(p: Partition, now: int, period: timedelta, limit: int, audiences: Sequence[str]) -> Read[Due]:
    """What is due at `now` (server time, microseconds), at most `limit` of each kind."""
    ring_before = now - micros(period)
    commands: list[tuple[Any, ...]] = [
        ("ZRANGEBYSCORE", p.key("timers"), "-inf", now, "LIMIT", 0, limit),
        ("ZRANGEBYSCORE", p.key("retention"), "-inf", now, "LIMIT", 0, limit),
        ("SMEMBERS", p.key("pools")),
    ]
    commands += [("ZRANGEBYSCORE", p.key("unseen", a), "-inf", ring_before, "LIMIT", 0, limit) for a in audiences]

    def decode(replies: list[Any]) -> Due:
        timers = [text(member) for member in replies[0]]
        return Due(
            now,
            tuple(member[2:] for member in timers if member.startswith("i ")),
            tuple(member[2:] for member in timers if member.startswith("r ")),
            tuple(text(member) for member in replies[1]),
            {a: tuple(text(one) for one in found) for a, found in zip(audiences, replies[3:], strict=True)},
            tuple(Pool.parse(text(one)) for one in replies[2]),
        )

    return Read(tuple(commands), decode)


def reclaim(p: Partition, runs: Sequence[tuple[str, str, Pool]], pauses: Sequence[timedelta]) -> Command[str]:
    """Takes back lost leases and ends back-offs that are over: `reclaimed`, `offered` or `nothing` for each."""
    items = tuple(
        Item(tuple(run_keys(p, run, session, pool)), (run, micros(pause)))
        for (run, session, pool), pause in zip(runs, pauses, strict=True)
    )
    return Command("reclaim", p, items, lambda _, reply: text(reply[0]))


def ring(p: Partition, addresses: Sequence[Address], group: str, period: timedelta) -> Command[str]:
    """Rings again for open, unseen interrupts whose entry no longer reaches their readers."""
    items = tuple(
        Item(
            (p.key("interrupt", a.interrupt), p.key("interrupts"), p.key("unseen", a.audience)),
            (a.interrupt, group, micros(period)),
        )
        for a in addresses
    )
    return Command("ring", p, items, lambda _, reply: text(reply[0]))


def ring_ready(p: Partition, pools: Sequence[Pool], most: int) -> Command[int]:
    """Wakes workers of pools that have ready runs; how many bells each got."""
    items = tuple(Item((p.key("ready", pool), p.key("bell", pool)), (str(pool), most)) for pool in pools)
    return Command("ring_ready", p, items, lambda _, reply: int(reply[1]))


@dataclass(frozen=True, slots=True)
class Entry:
    """One doorbell entry as a reader got it: its id, whom it is for, and where the interrupt lies."""

    partition: Partition
    id: str
    audience: str
    address: Address

    @classmethod
    def parse(cls, p: Partition, entry_id: object, flat: Any) -> "Entry":
        """The entry behind a stream reply's id and fields."""
        fields = pairs(flat)
        fields["audience"] = fields.get("for", b"")
        return cls(p, text(entry_id), text(fields["audience"]), Address.parse(text(fields.get("interrupt", b"")), fields))


def seen(p: Partition, group: str, entries: Sequence[Entry]) -> Command[str]:
    """Acknowledges entries whose handler has returned, or that are for another group."""
    items = []
    for e in entries:
        mine = e.audience if e.audience == group else ""
        keys = (p.key("interrupts"), *((p.key("unseen", mine),) if mine else ()))
        items.append(Item(keys, (group, e.id, e.address.interrupt, mine)))
    return Command("seen", p, tuple(items), lambda _, reply: text(reply[0]))


@dataclass(frozen=True, slots=True)
class Stale:
    """One member of the retention list with what deleting it needs to know."""

    member: str
    keys: tuple[str, ...]
    args: tuple[str | int, ...]


def stale_history(p: Partition, member: str) -> Stale:
    """The old entries of a session's history."""
    session = member[2:]
    return Stale(member, (p.key("history", session),), ("h", session))


def stale_early(p: Partition, member: str) -> Stale:
    """An early answer whose question never came."""
    slot, rest = member[2:].split(" ", 1)
    session, name = rest.split("\x1f", 1)
    keys = (p.key("early", session), p.key("verdict", slot), p.key("history", session), p.key("dispositions"))
    return Stale(member, keys, ("e", slot, session, name))


def _interrupt_keys(p: Partition, a: Address) -> tuple[str, ...]:
    names = [p.key(kind, a.interrupt) for kind in ("interrupt", "question", "verdict", "default")]
    if a.verdict and a.verdict != a.interrupt:
        names.append(p.key("verdict", a.verdict))
    return (*names, p.key("aliases", a.session))


def stale_interrupt(p: Partition, member: str, a: Address) -> Stale:
    """A spent interrupt of a run that goes on."""
    return Stale(member, _interrupt_keys(p, a), ("i", a.interrupt, a.session, a.call, a.verdict))


def stale_run(p: Partition, member: str, session: str, addresses: Sequence[Address]) -> Stale:
    """A closed run with everything that belongs to it."""
    run = member[2:]
    keys = [p.key(kind, run) for kind in ("run", "input", "state", "calls", "result", "errors")]
    args: list[str | int] = ["r", run, session, len(addresses)]
    for a in addresses:
        keys += _interrupt_keys(p, a)
        args += [a.interrupt, a.call, a.verdict]
    return Stale(member, tuple(keys), tuple(args))


def collect(p: Partition, stale: Sequence[Stale]) -> Command[bool]:
    """Deletes what has been settled for long enough; whether each was deleted."""
    items = tuple(Item((p.key("retention"), *s.keys), (s.member, *s.args)) for s in stale)
    return Command("collect", p, items, lambda _, reply: text(reply[0]) == "collected")


def register(p: Partition, worker: str, record: bytes) -> Command[int]:
    """Says that a worker is there (an empty record: that it has left); the server's time in microseconds."""

    def decode(_: int, reply: Reply) -> int:
        return int(reply[1])

    return Command("register", p, (Item((p.key("workers"),), (worker, record)),), decode)
