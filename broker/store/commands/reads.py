"""What readers get: one interrupt, one run, pages of open interrupts, history, the fleet. Plain reads, no scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from ...core.answers import Principal, Verdict
from ...core.digest import content_digest
from ...core.models import UNREADABLE, InputRecord, Interrupt, InterruptState, ResultRecord
from ...core.records import HistoryEntry, InterruptRecord, Resolution, RunRecord
from ...core.states import Mode, RunState, Settlement
from ...errors import Corrupt
from ..keys import Partition, Pool
from .address import Address
from .answers import instant, moment, principal
from .values import Arg, Read, pairs, text


def _commands(p: Partition, interrupt: str, slot: str = "") -> tuple[tuple[Arg, ...], ...]:
    return (
        ("HGETALL", p.key("interrupt", interrupt)),
        ("GET", p.key("question", interrupt)),
        ("GET", p.key("verdict", slot or interrupt)),
    )


def _record(p: Partition, interrupt: str, replies: Sequence[Any]) -> InterruptRecord | None:
    """One interrupt from its three keys; what cannot be read is reported in `problem` and counts as open."""
    f = pairs(replies[0])
    if not f:
        return None
    get = {name: text(value) for name, value in f.items()}.get
    problem, question, resolution = None, UNREADABLE, None
    opened = instant(get("opened", "0"))
    word = get("state", "")
    state = Settlement(word) if word in set(Settlement) else Settlement.OPEN
    try:
        question = Interrupt.from_bytes(replies[1] or b"", key=p.key("question", interrupt))
        if word not in set(Settlement):
            raise Corrupt(p.key("interrupt", interrupt), f"its state {word!r} is not known")  # noqa: TRY301
        if state is not Settlement.OPEN:
            resolution = _resolution(p, interrupt, f, state, replies[2])
    except Corrupt as broken:
        problem = str(broken)
    return InterruptRecord(
        id=interrupt, run_id=get("run", ""), session_id=get("session", ""), seq=int(get("seq", "0")),
        queue=get("queue", ""), agent=get("agent", ""), build=get("build"), state=state, opened_at=opened,
        deadline=moment(get("deadline", "")), interrupt=question, digest=get("digest", ""), resolution=resolution,
        problem=problem,
    )  # fmt: skip


def _resolution(
    p: Partition, interrupt: str, f: dict[str, bytes], state: Settlement, verdict: bytes | None
) -> Resolution:
    answer = None
    if f.get("answer"):
        key = p.key("verdict", text(f.get("verdict", interrupt)))
        if verdict is None:
            raise Corrupt(key, "the interrupt is marked as answered, and there is no verdict")
        if content_digest(verdict) != text(f.get("mark", b"")):
            raise Corrupt(key, "it is not the verdict that the interrupt's mark is about")
        answer = Verdict.from_bytes(verdict, key=key).answer
    return Resolution(
        interrupt_id=interrupt, state=state, answer=answer, by=principal(f.get("by", b"")),
        at=instant(f.get("at", b"0")),
        op=text(f["op"]) if "op" in f else None, reason=text(f["why"]) if "why" in f else None,
    )  # fmt: skip


def read_asked(p: Partition, interrupt: str) -> Read[tuple[Address, InterruptRecord] | None]:
    """One open interrupt with its question, and where it lies; None where there is none.

    Of a settled one the answer may be missing: an early verdict lies elsewhere (see `read_slots`).
    """

    def decode(replies: list[Any]) -> tuple[Address, InterruptRecord] | None:
        record = _record(p, interrupt, replies)
        return (Address.parse(interrupt, pairs(replies[0])), record) if record else None

    return Read(_commands(p, interrupt), decode)


def read_interrupts(p: Partition, ids: Sequence[tuple[str, str]]) -> Read[tuple[InterruptRecord, ...]]:
    """Several interrupts (id, and where the verdict lies), those that exist, in the order asked for."""
    commands = tuple(command for one, slot in ids for command in _commands(p, one, slot))

    def decode(replies: list[Any]) -> tuple[InterruptRecord, ...]:
        found = (_record(p, one, replies[3 * n : 3 * n + 3]) for n, (one, _) in enumerate(ids))
        return tuple(record for record in found if record is not None)

    return Read(commands, decode)


def read_slots(p: Partition, ids: Sequence[str]) -> Read[tuple[tuple[str, str], ...]]:
    """Where the verdict of each interrupt lies, where that is not under its own id (an early answer)."""

    def decode(replies: list[Any]) -> tuple[tuple[str, str], ...]:
        return tuple((one, text(slot or "")) for one, slot in zip(ids, replies, strict=True))

    return Read(tuple(("HGET", p.key("interrupt", one), "verdict") for one in ids), decode)


def _error(packed: bytes) -> str:
    at, fence, holder, kind, said = (text(part) for part in msgpack.unpackb(packed, raw=True))
    when = moment(at)
    return f"{when:%Y-%m-%d %H:%M:%S} attempt {fence} on {holder or '?'}: {kind}{': ' + said if said else ''}"


def read_run(p: Partition, run: str) -> Read[RunRecord | None]:
    """One run with its input, result and errors; None where there is none. Raises `Corrupt`."""
    commands: tuple[tuple[Arg, ...], ...] = (
        ("HGETALL", p.key("run", run)),
        ("GET", p.key("input", run)),
        ("GET", p.key("result", run)),
        ("LRANGE", p.key("errors", run), 0, -1),
    )

    def decode(replies: list[Any]) -> RunRecord | None:
        f = {name: text(value) for name, value in pairs(replies[0]).items()}
        if not f:
            return None
        if f.get("state") not in set(RunState):
            raise Corrupt(p.key("run", run), f"its state {f.get('state')!r} is not known")
        given = InputRecord.from_bytes(replies[1], key=p.key("input", run)) if replies[1] else InputRecord()
        result = ResultRecord.from_bytes(replies[2], key=p.key("result", run)).result if replies[2] else None
        return RunRecord(
            id=run, session_id=f.get("session", ""), agent=f.get("agent", ""), build=f.get("build"),
            queue=f.get("queue", ""), priority=int(f.get("priority", "0")), state=RunState(f["state"]),
            seq=int(f.get("seq", "0")), fence=int(f.get("fence", "0")), tries=int(f.get("tries", "0")),
            holder=f.get("holder"), lease_until=moment(f.get("lease_until", "")), mode=Mode(f.get("mode", "all")),
            interrupt_ids=tuple(f.get("ids", "").split()), created_at=instant(f.get("created", "0")),
            updated_at=instant(f.get("suspended", f.get("created", "0"))), errors=tuple(_error(e) for e in replies[3]),
            metadata=given.metadata, input=given.input, result=result, protocol_ids=given.protocol_ids,
        )  # fmt: skip

    return Read(commands, decode)


def read_input(p: Partition, run: str) -> Read[tuple[bytes | None, bytes | None]]:
    """The input of a run and the state of its last pause, as stored."""
    return Read((("GET", p.key("input", run)), ("GET", p.key("state", run))), lambda r: (r[0], r[1]))


def read_state(p: Partition, run: str) -> Read[InterruptState | None]:
    """The frozen state of a run's last pause; None where it never paused. Raises `Corrupt`."""
    key = p.key("state", run)
    return Read((("GET", key),), lambda r: InterruptState.from_bytes(r[0], key=key) if r[0] else None)


def read_verdict(p: Partition, slot: str) -> Read[Verdict | None]:
    """The accepted answer; None where nobody has answered. Raises `Corrupt`."""
    key = p.key("verdict", slot)
    return Read((("GET", key),), lambda r: Verdict.from_bytes(r[0], key=key) if r[0] else None)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an index: the id and its place, which the next page goes on from."""

    id: str
    place: int


def page(p: Partition, index: str, name: str, after: int | None, limit: int) -> Read[tuple[Row, ...]]:
    """At most `limit` ids of an index in the order they were opened, after a place."""
    low = "-inf" if after is None else f"({after}"
    command: tuple[Arg, ...] = (
        "ZRANGE",
        p.key(index, name),
        low,
        "+inf",
        "BYSCORE",
        "LIMIT",
        0,
        limit,
        "WITHSCORES",
    )

    def decode(replies: list[Any]) -> tuple[Row, ...]:
        rows = replies[0]
        if rows and not isinstance(rows[0], list | tuple):
            rows = list(zip(rows[::2], rows[1::2], strict=True))
        return tuple(Row(text(member), int(float(score))) for member, score in rows)

    return Read((command,), decode)


def read_active(p: Partition, session: str) -> Read[dict[str, int]]:
    """The runs of a session that wait, each with the number of its pause; whatever cannot be read counts as active."""

    def decode(replies: list[Any]) -> dict[str, int]:
        return {run: int(seq) if seq.isdigit() else 0 for run, seq in pairs(replies[0]).items()}

    return Read((("HGETALL", p.key("active", session)),), decode)


def read_history(p: Partition, session: str, start: int, stop: int) -> Read[tuple[HistoryEntry, ...]]:
    """Entries of a session's history, oldest first, by their place (negative: from the end)."""
    return Read(
        (("LRANGE", p.key("history", session), start, stop),), lambda r: tuple(_entry(e) for e in r[0])
    )


def _entry(packed: bytes) -> HistoryEntry:
    _, event, run, seq, interrupt, state, by, op, digest, detail, *_ = msgpack.unpackb(packed[16:], raw=True)
    who: Principal | None = principal(by)
    return HistoryEntry(
        at=instant(packed[:16].lstrip(b"0")), event=text(event), run_id=text(run), seq=int(seq or 0),
        interrupt_id=text(interrupt) or None, state=text(state) or None, by=who, op=text(op) or None,
        digest=text(digest) or None, detail=text(detail) or None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Counts:
    """What lies in one partition now."""

    open: int
    dead: int
    pools: tuple[Pool, ...]


def read_counts(p: Partition) -> Read[Counts]:
    """How many interrupts are open and how many runs dead, and which pools there are."""
    commands = (("ZCARD", p.key("open")), ("ZCARD", p.key("dead")), ("SMEMBERS", p.key("pools")))
    return Read(
        commands, lambda r: Counts(int(r[0]), int(r[1]), tuple(Pool.parse(text(one)) for one in r[2]))
    )


def read_ready(p: Partition, pools: Sequence[Pool]) -> Read[tuple[int, ...]]:
    """How many runs of each pool are ready."""
    return Read(tuple(("ZCARD", p.key("ready", pool)) for pool in pools), lambda r: tuple(int(n) for n in r))


def read_workers(p: Partition) -> Read[dict[str, tuple[int, bytes]]]:
    """The workers that registered: name -> when they last did (server time, microseconds), and their record."""

    def decode(replies: list[Any]) -> dict[str, tuple[int, bytes]]:
        found = {}
        for name, value in pairs(replies[0]).items():
            at, _, record = value.partition(b" ")
            found[name] = (int(at), record)
        return found

    return Read((("HGETALL", p.key("workers")),), decode)
