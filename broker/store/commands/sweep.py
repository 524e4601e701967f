"""What the sweeper and the readers of doorbells do: due timers, rings, acknowledgements, retention, the worker list."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, NamedTuple

from ...core.models import Audience
from ..keys import Partition, Pool
from .address import Address, interrupt_keys, run_keys, settle_keys
from .values import About, Arg, Command, Item, Read, Reply, micros, pairs, readable, text


@dataclass(frozen=True, slots=True)
class Due:
    """What the timers and the retention list of a partition ask for now (ids only: each step checks for itself).

    `strays` are members that no release of ours writes, with the list they are in: they would hold up the others.
    """

    now: int
    interrupts: tuple[str, ...]
    runs: tuple[str, ...]
    stale: tuple[str, ...]
    unseen: dict[str, tuple[str, ...]]
    pools: tuple[Pool, ...]
    strays: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)


_TIMER: Final = re.compile(r"[ir] .+", re.DOTALL)
_STALE: Final = re.compile(r"[hir] .+|e \S+ [^\x1f]+\x1f.+", re.DOTALL)
_UNSEEN: Final = re.compile(r".+", re.DOTALL)


# These commands by themselves are refused at the memory limit, even where they would change next to nothing.
_POSTPONE: Final = """#!lua flags=allow-oom
for n = 2, #ARGV do redis.call('ZADD', KEYS[1], 'XX', ARGV[1], ARGV[n]) end
"""
_MAKE_GROUP: Final = """#!lua flags=allow-oom
local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
if made.err and string.sub(made.err, 1, 9) ~= 'BUSYGROUP' then return made end
return redis.status_reply('OK')
"""


class There(NamedTuple):
    """What a worker is told that says that it is there: the server's time (microseconds), and how many were before."""

    now: int
    workers: int


class Right(NamedTuple):
    """What somebody who may sweep is told: the server's time, and what says whether there is anything to do.

    `counter` has changed when something was asked or became ready; `unseen` questions wait for a reader; `next` is when
    the first timer fires, or the first record may go (microseconds; None where nothing waits for its time). Where the
    right was not `held` until now, another one had it, or the server lost its data and counts anew.
    """

    held: bool
    now: int
    counter: int
    unseen: int
    next: int | None

    @property
    def until_next(self) -> float | None:
        """In how many seconds the first timer fires; None where there is none, or it is due now."""
        return (self.next - self.now) / 1e6 if self.next is not None and self.next > self.now else None


def sweep_right(p: Partition, name: str, span: timedelta) -> Command[Right | None]:
    """What is known of the partition where `name` may sweep it for a while, else None.

    A zero span gives the right up.
    """
    keys = [p.key(kind) for kind in ("sweeper", "counter", "timers", "retention")]
    keys += [p.key("unseen", audience) for audience in Audience]
    item = Item(tuple(keys), (name, round(span.total_seconds() * 1000), " ".join(Audience)))

    def decode(_: int, reply: Reply) -> Right | None:
        if text(reply[0]) != "yes":
            return None
        held, now, counter, unseen, *firsts = map(text, reply[1:])
        due = [int(float(first)) for first in firsts if first]
        number = int(counter) if counter.isdecimal() else -1
        return Right(held == "1", int(now), number, int(unseen), min(due, default=None))

    return Command("sweep", p, (item,), decode)


def read_due(p: Partition, now: int, period: timedelta, limit: int, audiences: Sequence[str]) -> Read[Due]:
    """What is due at `now` (server time, microseconds), at most `limit` of each kind."""
    ring_before = now - micros(period)
    commands: list[tuple[Any, ...]] = [
        ("ZRANGEBYSCORE", p.key("timers"), "-inf", now, "LIMIT", 0, limit),
        ("ZRANGEBYSCORE", p.key("retention"), "-inf", now, "LIMIT", 0, limit),
        ("SMEMBERS", p.key("pools")),
    ]
    commands += [
        ("ZRANGEBYSCORE", p.key("unseen", a), "-inf", ring_before, "LIMIT", 0, limit) for a in audiences
    ]

    def decode(replies: list[Any]) -> Due:
        strays: list[tuple[str, bytes]] = []

        def ours(key: str, found: Iterable[bytes], form: re.Pattern[str]) -> tuple[str, ...]:
            members = {raw: text(raw) for raw in found}
            strays.extend(
                (key, r) for r, one in members.items() if one.encode() != r or not form.fullmatch(one)
            )
            return tuple(one for raw, one in members.items() if (key, raw) not in strays)

        timers = ours(p.key("timers"), replies[0], _TIMER)
        stale = ours(p.key("retention"), replies[1], _STALE)
        lists = zip(audiences, replies[3:], strict=True)
        unseen = {a: ours(p.key("unseen", a), found, _UNSEEN) for a, found in lists}
        interrupts, runs = (tuple(one[2:] for one in timers if one[0] == kind) for kind in "ir")
        pools = Pool.known(text(one) for one in replies[2])
        return Due(now, interrupts, runs, stale, unseen, pools, tuple(strays))

    return Read(tuple(commands), decode)


def forget(strays: Sequence[tuple[str, bytes]]) -> Read[None]:
    """Takes what another program wrote off the lists of what is due."""
    return Read(tuple(("ZREM", key, member) for key, member in strays), lambda _: None)


def postpone(p: Partition, index: str, members: Sequence[str], now: int, span: timedelta) -> Read[None]:
    """Looks at due members of `timers` or `retention` again after a while: those lists are hints, records decide."""
    later = now + micros(span)
    command: tuple[Arg, ...] = ("EVAL", _POSTPONE, 1, p.key(index), later, *members)
    return Read((command,) if members else (), lambda _: None)


def expire(p: Partition, addresses: Sequence[Address], *, decider: bool) -> Command[bool]:
    """Ends those whose deadline has passed or whose job is silent; whether each was ended.

    Default answers need a decider's credential.
    """
    items = tuple(
        Item(
            (
                *settle_keys(p, a, decider=False),
                p.key("interrupts"),
                *(interrupt_keys(p, a, decider=decider and a.expiry == "default")),
            ),
            (a.interrupt,),
            About(a.session, a.run, (a.interrupt,)),
        )
        for a in addresses
    )
    return Command("expire", p, items, lambda _, reply: text(reply[0]) == "expired")


def reclaim(p: Partition, runs: Sequence[tuple[str, str, Pool]], pauses: Sequence[timedelta]) -> Command[str]:
    """Takes back lost leases and ends back-offs that are over: `reclaimed`, `offered` or `nothing` for each."""
    items = tuple(
        Item(tuple(run_keys(p, run, session, pool)), (run, micros(pause)), About(session, run))
        for (run, session, pool), pause in zip(runs, pauses, strict=True)
    )
    return Command("reclaim", p, items, lambda _, reply: text(reply[0]))


def ring(p: Partition, addresses: Sequence[Address], group: str, period: timedelta) -> Command[str]:
    """Rings again for open, unseen interrupts whose entry no longer reaches their readers."""
    items = tuple(
        Item(
            (
                p.key("interrupt", a.interrupt),
                p.key("interrupts"),
                *(p.key("unseen", name) for name in dict.fromkeys((a.audience, group))),
            ),
            (a.interrupt, group, micros(period)),
            About(a.session, a.run, (a.interrupt,)),
        )
        for a in addresses
    )
    return Command("ring", p, items, lambda _, reply: text(reply[0]))


@dataclass(frozen=True, slots=True)
class Group:
    """How far the readers of the doorbell have come: the oldest entry, the last one handed out, the backlog."""

    first: tuple[int, int]
    last: tuple[int, int]
    behind: int

    def will_reach(self, bell: str) -> bool:
        """Whether an entry is still on its way: in the stream, and not handed out yet."""
        at = stream_id(bell)
        return at >= self.first and at > self.last


def stream_id(value: object) -> tuple[int, int]:
    """A stream id as two numbers that compare as the server does."""
    ms, _, seq = text(value or "0-0").partition("-")
    return int(ms or 0), int(seq or 0)


def read_group(p: Partition, group: str) -> Read[Group | None]:
    """How far a group of the interrupts doorbell has come; None where there is no such group."""
    stream = p.key("interrupts")
    commands = (("XRANGE", stream, "-", "+", "COUNT", 1), ("EXISTS", stream), ("XINFO", "GROUPS", stream))

    def decode(replies: list[Any]) -> Group | None:
        if isinstance(replies[2], Exception):
            return None
        rows = [{text(k): v for k, v in pairs_of(row).items()} for row in replies[2]]
        for row in rows:
            if text(row["name"]) == group:
                first = stream_id(replies[0][0][0]) if replies[0] else (1 << 62, 0)
                behind = int(row.get("pending") or 0) + int(row.get("lag") or 0)
                return Group(first, stream_id(row["last-delivered-id"]), behind)
        return None

    return Read(commands, decode, forgiving=True)


def pairs_of(row: Any) -> dict[Any, Any]:
    """A map that may come as a flat list."""
    return row if isinstance(row, dict) else dict(zip(row[::2], row[1::2], strict=True))


def make_group(stream: str, group: str) -> tuple[Arg, ...]:
    """The command that makes a group of a doorbell where it is not there, also on a server at its memory limit.

    It reads from the beginning: whatever was asked before this group existed is for it too.
    """
    return ("EVAL", _MAKE_GROUP, 1, stream, group)


def read_bells(p: Partition, interrupts: Sequence[str]) -> Read[tuple[str, ...]]:
    """The last doorbell entry of each interrupt."""
    commands = tuple(("GET", p.key("interrupt", one)) for one in interrupts)

    def decode(replies: list[Any]) -> tuple[str, ...]:
        rows = (
            readable(r, p.key("interrupt", one)) or {} for one, r in zip(interrupts, replies, strict=True)
        )
        return tuple(text(row.get("bell", b"0-0")) for row in rows)

    return Read(commands, decode, forgiving=True)


def read_tops(p: Partition, pools: Sequence[Pool]) -> Read[dict[Pool, str]]:
    """The best ready run of each pool, empty where there is none."""
    commands = tuple(("ZRANGE", p.key("ready", pool), 0, 0) for pool in pools)

    def decode(replies: list[Any]) -> dict[Pool, str]:
        return {pool: text(found[0]) if found else "" for pool, found in zip(pools, replies, strict=True)}

    return Read(commands, decode)


def trim(p: Partition, due: Due, age: timedelta, count: int) -> Read[list[tuple[str, str]]]:
    """Cuts the doorbells to their age and length; which entries that are gone are still owed to a group."""
    oldest = f"{due.now // 1000 - round(age.total_seconds() * 1000)}-0"
    stream = p.key("interrupts")
    commands: list[tuple[Any, ...]] = [
        ("XTRIM", stream, "MINID", "~", oldest), ("XTRIM", stream, "MAXLEN", "~", count),
        ("XTRIM", p.key("dispositions"), "MINID", "~", oldest), ("XTRIM", p.key("dispositions"), "MAXLEN", "~", count),
    ]  # fmt: skip
    commands += [("XRANGE", stream, "-", "+", "COUNT", 1)]
    groups = ("approvals", "completions")
    commands += [("XPENDING", stream, group, "-", "+", 100) for group in groups]

    def decode(replies: list[Any]) -> list[tuple[str, str]]:
        *_, first, one, two = replies
        begin = stream_id(first[0][0]) if first and not isinstance(first, Exception) else (due.now // 1000, 0)
        owed = []
        for group, rows in zip(groups, (one, two), strict=True):
            for row in () if isinstance(rows, Exception) else rows:
                entry = row["message_id"] if isinstance(row, dict) else row[0]
                if stream_id(entry) < begin:
                    owed.append((group, text(entry)))
        return owed

    return Read(tuple(commands), decode, forgiving=True)


def acknowledge(p: Partition, owed: Sequence[tuple[str, str]]) -> Read[None]:
    """Acknowledges entries that no longer exist, which trimming leaves in the lists of their groups."""
    return Read(tuple(("XACK", p.key("interrupts"), group, entry) for group, entry in owed), lambda _: None)


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
        return cls(
            p,
            text(entry_id),
            text(fields["audience"]),
            Address.parse(text(fields.get("interrupt", b"")), fields),
        )


def seen(p: Partition, group: str, entries: Sequence[Entry]) -> Command[str]:
    """Acknowledges entries whose handler has returned, or that are for another group."""
    items = []
    for e in entries:
        mine = e.audience if e.audience == group else ""
        keys = (p.key("interrupts"), *((p.key("unseen", mine),) if mine else ()))
        about = About(e.address.session, e.address.run, (e.address.interrupt,))
        items.append(Item(keys, (group, e.id, e.address.interrupt, mine), about))
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
    keys = [p.key("early", session), p.key("verdict", slot), p.key("history", session), p.key("dispositions")]
    if name[:2] in ("r ", "j "):
        keys += _journal_keys(p, name.split(" ")[1])
    return Stale(member, tuple(keys), ("e", slot, session, name))


def _journal_keys(p: Partition, run: str) -> tuple[str, ...]:
    """Where it is seen whether a run's journal still needs something."""
    return tuple(p.key(kind, run) for kind in ("run", "calls", "journal"))


def _interrupt_keys(p: Partition, a: Address) -> tuple[str, ...]:
    names = [p.key(kind, a.interrupt) for kind in ("interrupt", "question", "verdict", "default")]
    if a.verdict and a.verdict != a.interrupt:
        names.append(p.key("verdict", a.verdict))
    return (*names, p.key("aliases", a.session))


def stale_interrupt(p: Partition, member: str, a: Address) -> Stale:
    """A spent interrupt of a run that goes on."""
    keys = (*_interrupt_keys(p, a), *(_journal_keys(p, a.run) if a.run else ()))
    return Stale(member, keys, ("i", a.interrupt, a.session, a.call, a.verdict, a.run))


_LEFT: Final = ("run", "input", "state", "result", "errors", "said")
"""What is kept of a closed run, beside its journal."""


def stale_run(p: Partition, member: str, session: str, addresses: Sequence[Address]) -> Stale:
    """A closed run with everything that belongs to it."""
    run = member[2:]
    keys = [p.key(kind, run) for kind in (*_LEFT, "calls", "journal")]
    keys.append(p.key("aliases", session))
    args: list[str | int] = ["r", run, session, len(addresses)]
    for a in addresses:
        keys += _interrupt_keys(p, a)
        args += [a.interrupt, a.call, a.verdict]
    return Stale(member, tuple(keys), tuple(args))


def collect(p: Partition, stale: Sequence[Stale]) -> Command[bool]:
    """Deletes what has been settled for long enough; whether each was deleted."""
    items = tuple(Item((p.key("retention"), *s.keys), (s.member, *s.args)) for s in stale)
    return Command("collect", p, items, lambda _, reply: text(reply[0]) == "collected")


def register(p: Partition, worker: str, record: bytes) -> Command[There]:
    """Says that a worker is there; an empty record: that it has left."""

    def decode(_: int, reply: Reply) -> There:
        return There(int(reply[1]), int(reply[2]))

    return Command("register", p, (Item((p.key("workers"),), (worker, record)),), decode)
