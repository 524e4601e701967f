"""Where the records of an interrupt or a run lie: what a script must be told so that it touches declared keys only.

Doorbell entries, list rows and leased runs carry their address; a bare id costs one read first. The script compares
address and record before its first write, so an address that is out of date is noticed and read again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from ...core.digest import content_digest
from ...core.ids import SEPARATOR, session_hash
from ...errors import Corrupt, UnknownId
from ..keys import Partition, Pool, open_list
from .values import Read, readable, record, text, unpacked

INTERRUPT_FIELDS = ("run", "session", "queue", "agent", "build", "kind", "tool", "audience", "expiry", "mode", "call",
                    "verdict")  # fmt: skip
RUN_FIELDS = ("session", "queue", "agent", "build", "ids", "mode", "fence", "seq", "state", "tries")


class Address(NamedTuple):
    """Where one interrupt lies. `siblings` are the others of its run, known where one answer may end them all."""

    interrupt: str
    run: str
    session: str
    pool: Pool
    kind: str
    tool: str
    audience: str
    expiry: str
    mode: str = "all"
    call: str = ""
    verdict: str = ""
    siblings: tuple["Address", ...] = ()

    @classmethod
    def gone(cls, interrupt: str) -> "Address":
        """The address of an interrupt whose record is gone already."""
        return cls.parse(interrupt, {})

    @classmethod
    def parse(cls, interrupt: str, fields: dict[str, Any]) -> "Address":
        """The address in a record's or a doorbell entry's fields."""
        run, session, queue, agent, build, kind, tool, audience, expiry, mode, call, verdict = [
            text(fields[name]) if name in fields else "" for name in INTERRUPT_FIELDS
        ]
        pool = Pool(queue, agent, build)
        return cls(interrupt, run, session, pool, kind, tool, audience, expiry, mode, call, verdict)


@dataclass(frozen=True, slots=True)
class RunAddress:
    """Where a run and the interrupts of its present suspension lie."""

    run: str
    session: str
    pool: Pool
    interrupts: tuple[Address, ...] = ()
    mode: str = "all"
    fence: int = 0
    seq: int = 0
    state: str = ""
    tries: int = 0


def at_seq(a: RunAddress, seq: int) -> RunAddress:
    """The address, about another pause of the run."""
    return replace(a, seq=seq)


def at_fence(a: RunAddress, fence: int) -> RunAddress:
    """The address, about another lease of the run."""
    return replace(a, fence=fence)


def with_interrupts(a: RunAddress, interrupts: Iterable[Address]) -> RunAddress:
    """The address with its interrupts known in full."""
    return replace(a, interrupts=tuple(interrupts))


def interrupt_keys(p: Partition, a: Address, *, decider: bool) -> list[str]:
    """The keys that ending this interrupt touches. Only a decider's call declares those of verdicts."""
    names = [
        p.key("interrupt", a.interrupt),
        p.key("open", open_list(a.pool.queue, a.kind, a.tool)),
        p.key("unseen", a.audience),
    ]
    if decider:
        names += [p.key("verdict", a.interrupt), p.key("default", a.interrupt)]
    return names


def run_keys(p: Partition, run: str, session: str, pool: Pool) -> list[str]:
    """The keys that any change of a run may touch, besides those of its interrupts."""
    return [
        p.key("run", run),
        p.key("calls", run),
        p.key("errors", run),
        p.key("active", session),
        p.key("history", session),
        *_shared_keys(p.tag, pool.queue, pool.agent, pool.build),
    ]


@lru_cache(maxsize=1024)
def _shared_keys(tag: str, queue: str, agent: str, build: str) -> tuple[str, ...]:
    """Those that all runs of a pool have in common."""
    p, pool = Partition(tag), Pool(queue, agent, build)
    lists = ("pools", "timers", "retention", "counter", "dispositions", "dead", "lists")
    return (p.key("ready", pool), p.key("idle", pool), *(p.key(kind) for kind in lists))


def settle_keys(p: Partition, a: Address, *, decider: bool) -> list[str]:
    """The keys that ending this interrupt touches, its run and its siblings included."""
    names = interrupt_keys(p, a, decider=decider)
    for other in a.siblings:
        names += interrupt_keys(p, other, decider=False)
    return names + run_keys(p, a.run, a.session, a.pool)


def read_addresses(p: Partition, interrupts: Iterable[str]) -> Read[tuple[Address, ...]]:
    """Where several interrupts lie, those that exist, in the order asked for."""
    ids = tuple(interrupts)

    def decode(replies: list[Any]) -> tuple[Address, ...]:
        found = (address_of(p, one, reply) for one, reply in zip(ids, replies, strict=True))
        return tuple(a for a in found if a is not None)

    commands = tuple(("GET", p.key("interrupt", one)) for one in ids)
    return Read(commands, decode, forgiving=True)


def address_of(p: Partition, interrupt: str, reply: Any) -> Address | None:
    """None where there is no such record. A key of another type has the address of nothing: the script names it."""
    row = readable(reply, p.key("interrupt", interrupt))
    if row is None:
        return Address.gone(interrupt)
    return Address.parse(interrupt, row) if row else None


def read_run_address(p: Partition, run: str) -> Read[RunAddress]:
    """Where a run lies, its interrupts by id only; raises `UnknownId`."""

    def decode(replies: list[Any]) -> RunAddress:
        fields = record(replies[0], p.key("run", run))
        if not fields:
            raise UnknownId("run", run)
        return _run_address(run, fields)

    return Read((("GET", p.key("run", run)),), decode)


def read_run_addresses(p: Partition, runs: Iterable[str]) -> Read[tuple[RunAddress, ...]]:
    """Where several runs lie, those that exist, in the order asked for."""
    ids = tuple(runs)

    def decode(replies: list[Any]) -> tuple[RunAddress, ...]:
        found = (_run_row(p, run, reply) for run, reply in zip(ids, replies, strict=True))
        return tuple(a for a in found if a is not None)

    return Read(tuple(("GET", p.key("run", one)) for one in ids), decode, forgiving=True)


def _run_row(p: Partition, run: str, reply: Any) -> RunAddress | None:
    """As `_address`, of a run."""
    row = readable(reply, p.key("run", run))
    if row is None:
        return RunAddress(run, "", Pool("", ""))
    return _run_address(run, row) if row else None


def _run_address(run: str, fields: dict[str, Any]) -> RunAddress:
    f = {name: text(fields.get(name, b"")) for name in RUN_FIELDS}
    ids = tuple(Address.parse(one, {"run": run, "session": f["session"]}) for one in f["ids"].split())
    fence, seq, tries = (int(f[name]) if f[name].isdecimal() else 0 for name in ("fence", "seq", "tries"))
    pool = Pool(f["queue"], f["agent"], f["build"])
    return RunAddress(run, f["session"], pool, ids, f["mode"], fence, seq, f["state"], tries)


def read_aliases(p: Partition, session: str, call: str) -> Read[tuple[str, ...]]:
    """The interrupts a call id of a session has stood for, without those that were collected already."""

    def decode(replies: list[Any]) -> tuple[str, ...]:
        return tuple(one for one in text(replies[0] or "").split() if not one.startswith("~"))

    return Read((("HGET", p.key("aliases", session), f"call:{call}"),), decode)


def early_slot(session: str, run: str, seq: int, call: str) -> str:
    """Where the verdict of an answer that comes before its question lies; one for each (run, sequence, call).

    A run with sequence 0 means a call of that run's journal, whichever pause asks about it.
    """
    body = SEPARATOR.join(("early", session, run, str(seq), call))
    return f"early_{session_hash(session):04x}{content_digest(body.encode())[:32]}"


def early_identity(session: str, call: str) -> str:
    """What the verdict of an answer that comes before its question is about."""
    return f"{session}/{call}"[:256]


def read_early(
    p: Partition, session: str, run: str, seq: int, calls: Iterable[str]
) -> Read[tuple[tuple[str, str, str], ...]]:
    """The answers that came before these calls asked: (call id, digest, where its verdict lies), each.

    Raises `Corrupt` where another program wrote there.
    """
    fields = [
        (call, name) for call in calls for name in (f"r {run} {seq} {call}", f"j {run} {call}", f"c {call}")
    ]

    def decode(replies: list[Any]) -> tuple[tuple[str, str, str], ...]:
        found = []
        for (call, _), packed in zip(fields, replies[0], strict=True):
            if packed is not None:
                row = unpacked(packed, 7)
                if row is None:
                    raise Corrupt(p.key("early", session), "it holds an answer that cannot be read")
                found.append((call, text(row[2]), text(row[3])))
        return tuple(found)

    return Read((("HMGET", p.key("early", session), *(name for _, name in fields)),), decode)
