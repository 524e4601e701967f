"""What readers get: one interrupt, one run, pages of open interrupts, history, the fleet. Plain reads, no scripts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.answers import Verdict
from ...core.models import InterruptState
from ...core.records import HistoryEntry, InterruptRecord, RunRecord
from ..keys import Partition, Pool
from .address import Address, address_of
from .decode import history_entry, interrupt_record, run_record
from .values import Arg, Read, pairs, readable, record, text, usable


def _commands(p: Partition, interrupt: str, slot: str = "") -> tuple[tuple[Arg, ...], ...]:
    return (
        ("GET", p.key("interrupt", interrupt)),
        ("GET", p.key("question", interrupt)),
        ("GET", p.key("verdict", slot or interrupt)),
    )


Asked = tuple[Address, InterruptRecord]
"""Where an interrupt lies, and what it is."""


def read_asked(p: Partition, interrupt: str) -> Read[Asked | None]:
    """One open interrupt with its question, and where it lies; None where there is none.

    Of a settled one it says that it is settled, and not how: see `read_interrupts`.
    """
    return Read(_commands(p, interrupt)[:2], lambda replies: _asked(p, interrupt, replies), forgiving=True)


def _asked(p: Partition, interrupt: str, replies: Sequence[Any]) -> Asked | None:
    row = readable(replies[0], p.key("interrupt", interrupt))
    found = interrupt_record(p, interrupt, replies, row)
    if found is None:
        return None
    return (Address.gone(interrupt) if row is None else Address.parse(interrupt, row)), found


def read_all_asked(p: Partition, ids: Sequence[str]) -> Read[tuple[Asked | None, ...]]:
    """As `read_asked`, of several."""
    commands = tuple(command for one in ids for command in _commands(p, one)[:2])

    def decode(replies: list[Any]) -> tuple[Asked | None, ...]:
        return tuple(_asked(p, one, replies[2 * n : 2 * n + 2]) for n, one in enumerate(ids))

    return Read(commands, decode, forgiving=True)


def read_interrupts(p: Partition, ids: Sequence[tuple[str, str]]) -> Read[tuple[InterruptRecord, ...]]:
    """Several interrupts (id, and where the verdict lies), those that exist, in the order asked for."""
    commands = tuple(command for one, slot in ids for command in _commands(p, one, slot))

    def decode(replies: list[Any]) -> tuple[InterruptRecord, ...]:
        found = (interrupt_record(p, one, replies[3 * n : 3 * n + 3]) for n, (one, _) in enumerate(ids))
        return tuple(record for record in found if record is not None)

    return Read(commands, decode, forgiving=True)


def read_slots(p: Partition, ids: Sequence[str]) -> Read[tuple[tuple[str, str], ...]]:
    """Where the verdict of each interrupt lies, where that is not under its own id (an early answer)."""

    def decode(replies: list[Any]) -> tuple[tuple[str, str], ...]:
        found = (address_of(p, one, reply) for one, reply in zip(ids, replies, strict=True))
        return tuple((one, at.verdict if at else "") for one, at in zip(ids, found, strict=True))

    return Read(tuple(("GET", p.key("interrupt", one)) for one in ids), decode, forgiving=True)


def read_run(p: Partition, run: str, *, lenient: bool = False) -> Read[RunRecord | None]:
    """One run with its input, result and errors; None where there is none. Raises `Corrupt`; see `run_record`."""
    commands: tuple[tuple[Arg, ...], ...] = (
        ("GET", p.key("run", run)),
        ("GET", p.key("input", run)),
        ("GET", p.key("result", run)),
        ("LRANGE", p.key("errors", run), 0, -1),
    )

    return Read(commands, lambda replies: run_record(p, run, replies, lenient=lenient), forgiving=True)


@dataclass(frozen=True, slots=True)
class Resume:
    """What a run goes on from, as stored: its input, its frozen state, and its interrupts in the order they were asked.

    Of each interrupt where it lies, and its record where its answer was handed out.
    """

    input: bytes | None = field(repr=False)
    state: bytes | None = field(repr=False)
    asked: tuple[tuple[Address, InterruptRecord | None], ...]

    def fits(self, ids: Sequence[str], shown: Collection[str]) -> bool:
        """Whether these are the interrupts of a run, with the answers that were handed out."""
        records = {one.id for _, one in self.asked if one is not None}
        return [at.interrupt for at, _ in self.asked] == list(ids) and records == set(shown)


def read_resume(p: Partition, run: str, ids: Sequence[str], shown: Collection[str]) -> Read[Resume]:
    """Everything a leased run goes on from. The answers in `shown` that came early lie elsewhere: see `read_slots`."""
    commands: list[tuple[Arg, ...]] = [("GET", p.key("input", run)), ("GET", p.key("state", run))]
    for one in ids:
        commands += _commands(p, one) if one in shown else _commands(p, one)[:1]

    def decode(replies: list[Any]) -> Resume:
        given, state, *rest = replies
        asked: list[tuple[Address, InterruptRecord | None]] = []
        for one in ids:
            size = 3 if one in shown else 1
            mine, rest = rest[:size], rest[size:]
            if size > 1:
                whole = _asked(p, one, mine)
                asked += [whole] if whole is not None else []
            elif (at := address_of(p, one, mine[0])) is not None:
                asked.append((at, None))
        return Resume(usable(given, p.key("input", run)), usable(state, p.key("state", run)), tuple(asked))

    return Read(tuple(commands), decode, forgiving=True)


def read_state(p: Partition, run: str) -> Read[InterruptState | None]:
    """The frozen state of a run's last pause; None where it never paused. Raises `Corrupt`."""
    key = p.key("state", run)

    def decode(replies: list[Any]) -> InterruptState | None:
        suspended = record(replies[1], p.key("run", run)).get("suspended", b"")
        return frozen(replies[0], key, text(suspended)) if replies[0] else None

    return Read((("GET", key), ("GET", p.key("run", run))), decode)


def frozen(data: bytes, key: str, suspended: str) -> InterruptState:
    """A state as stored, with the time that the script set where its writer left it open (Unix seconds)."""
    state = InterruptState.from_bytes(data, key=key)
    if state.interrupted_at is not None or not suspended.isdecimal():
        return state
    return state.model_copy(update={"interrupted_at": int(suspended) // 1_000_000})


def read_verdict(p: Partition, slot: str) -> Read[Verdict | None]:
    """The accepted answer; None where nobody has answered. Raises `Corrupt`."""
    key = p.key("verdict", slot)
    return Read((("GET", key),), lambda r: Verdict.from_bytes(r[0], key=key) if r[0] else None)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an index: the id and its place, which the next page goes on from."""

    id: str
    place: int


def page(p: Partition, index: str, after: int | None, limit: int) -> Read[tuple[Row, ...]]:
    """At most `limit` ids of an index in the order of their numbers, after a place."""
    return Read((_range(p.key(index), after, limit),), lambda replies: _rows(replies[0]))


def _range(key: str, after: int | None, limit: int) -> tuple[Arg, ...]:
    low = "-inf" if after is None else f"({after}"
    return ("ZRANGE", key, low, "+inf", "BYSCORE", "LIMIT", 0, limit, "WITHSCORES")


def _rows(found: Any) -> tuple[Row, ...]:
    if found and not isinstance(found[0], list | tuple):
        found = zip(found[::2], found[1::2], strict=True)
    return tuple(Row(text(member), int(float(score))) for member, score in found)


@dataclass(frozen=True, slots=True)
class OpenPage:
    """Rows of some lists of open interrupts together, and the names of all such lists, as they were read after them."""

    rows: tuple[Row, ...]
    lists: tuple[str, ...]


def page_of_open(p: Partition, lists: Sequence[str], after: int | None, limit: int) -> Read[OpenPage]:
    """At most `limit` open interrupts of these lists, in the order they were asked, after a place."""
    commands = [_range(p.key("open", name), after, limit) for name in lists]

    def decode(replies: list[Any]) -> OpenPage:
        *found, names = replies
        rows = sorted((row for one in found for row in _rows(one)), key=lambda row: row.place)
        return OpenPage(tuple(rows[:limit]), tuple(text(name) for name in names))

    return Read((*commands, ("SMEMBERS", p.key("lists"))), decode)


def read_active(p: Partition, session: str) -> Read[dict[str, int]]:
    """The runs of a session that wait, each with the number of its pause; whatever cannot be read counts as active."""

    def decode(replies: list[Any]) -> dict[str, int]:
        return {run: int(seq) if seq.isdigit() else 0 for run, seq in pairs(replies[0]).items()}

    return Read((("HGETALL", p.key("active", session)),), decode)


def read_history(p: Partition, session: str, start: int, stop: int) -> Read[tuple[HistoryEntry, ...]]:
    """Entries of a session's history, oldest first, by their place (negative: from the end)."""
    return Read(
        (("LRANGE", p.key("history", session), start, stop),), lambda r: tuple(history_entry(e) for e in r[0])
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """What lies in one partition now: lists of open interrupts, dead runs, pools."""

    lists: tuple[str, ...]
    dead: int
    pools: tuple[Pool, ...]


def read_counts(p: Partition) -> Read[Counts]:
    """How many runs are dead, and which pools and lists of open interrupts there are."""
    commands = (("SMEMBERS", p.key("lists")), ("ZCARD", p.key("dead")), ("SMEMBERS", p.key("pools")))

    def decode(replies: list[Any]) -> Counts:
        lists, dead, pools = replies
        return Counts(tuple(text(one) for one in lists), int(dead), Pool.known(text(one) for one in pools))

    return Read(commands, decode)


def read_open(p: Partition, lists: Sequence[str]) -> Read[int]:
    """How many interrupts these lists hold."""
    return Read(tuple(("ZCARD", p.key("open", name)) for name in lists), lambda r: sum(map(int, r)))


def read_ready(p: Partition, pools: Sequence[Pool]) -> Read[tuple[int, ...]]:
    """How many runs of each pool are ready."""
    return Read(tuple(("ZCARD", p.key("ready", pool)) for pool in pools), lambda r: tuple(int(n) for n in r))


def read_workers(p: Partition) -> Read[dict[str, tuple[int, bytes]]]:
    """The workers that registered: name -> when they last did (server time, microseconds), and their record."""

    def decode(replies: list[Any]) -> dict[str, tuple[int, bytes]]:
        found = {}
        for name, value in pairs(replies[0]).items():
            at, _, record = value.partition(b" ")
            found[name] = (int(at) if at.isdigit() else 0, record)
        return found

    return Read((("HGETALL", p.key("workers")),), decode)
