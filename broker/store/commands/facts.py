"""What a diagnosis needs to know beside the records: places in lists, readers of doorbells, runs without their input.

Plain reads of known keys only, with the commands that every role may run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ...core.states import Mode, RunState
from ...errors import Corrupt
from ..keys import Partition, Pool
from .answers import moment
from .decode import Fields
from .sweep import pairs_of
from .values import Arg, Read, pairs, readable, record, text, usable

NO_POOL: Final = Pool("", "")
AUDIENCES: Final = ("approvals", "completions")
MOST_AHEAD: Final = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands: `ahead` are the ready runs before it (200 at most), None where it is not listed."""

    ahead: int | None
    is_timed: bool
    is_listed_dead: bool
    kept_until: datetime | None
    ready_at: datetime | None
    is_handed: bool = False
    """Whether it is on its way to a job of another system."""


def read_place(p: Partition, run: str, pool: Pool) -> Read[Place]:
    """Where a run stands in the lists that it may be in."""
    commands: tuple[tuple[Arg, ...], ...] = (
        ("ZRANGE", p.key("ready", pool), 0, MOST_AHEAD - 1),
        ("ZSCORE", p.key("ready", pool), run),
        ("ZSCORE", p.key("timers"), f"r {run}"),
        ("ZSCORE", p.key("dead"), run),
        ("ZSCORE", p.key("retention"), f"r {run}"),
        ("GET", p.key("run", run)),
    )

    def decode(replies: list[Any]) -> Place:
        best, listed, timed, dead, kept, packed = (None if isinstance(r, Exception) else r for r in replies)
        ahead = None
        if listed is not None:
            before = [text(one) for one in best or ()]
            ahead = before.index(run) if run in before else MOST_AHEAD
        until = None if kept is None else moment(str(int(float(kept))))
        fields = readable(packed, p.key("run", run)) or {}
        ready_at = moment(text(fields.get("ready_at", b"")))
        return Place(ahead, timed is not None, dead is not None, until, ready_at, "nonce" in fields)

    return Read(commands, decode, forgiving=True)


@dataclass(frozen=True, slots=True)
class Watchers:
    """Who looks after a partition: the groups that read the interrupts doorbell, and the process that sweeps."""

    groups: tuple[str, ...]
    sweeper: str | None

    def readers(self, audience: str) -> tuple[str, ...]:
        """The groups that are handed what is addressed to an audience: its own, and those that get everything."""
        return tuple(one for one in self.groups if one == audience or one not in AUDIENCES)


def read_watchers(p: Partition) -> Read[Watchers]:
    """Who looks after a partition now."""

    def decode(replies: list[Any]) -> Watchers:
        rows, holder = (None if isinstance(one, Exception) else one for one in replies)
        names = ({text(k): v for k, v in pairs_of(row).items()}["name"] for row in rows or ())
        return Watchers(tuple(sorted(text(one) for one in names)), text(holder)[2:] if holder else None)

    return Read((("XINFO", "GROUPS", p.key("interrupts")), ("GET", p.key("sweeper"))), decode, forgiving=True)


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run without its input: what a check compares. `problem`: why its record cannot be read."""

    id: str
    session: str = ""
    pool: Pool = NO_POOL
    state: RunState | None = None
    seq: int = 0
    mode: Mode = Mode.ALL
    ids: tuple[str, ...] = ()
    lease_until: datetime | None = None
    ready_at: datetime | None = None
    since: datetime | None = None
    """When it was put into the list of those that are ready, the last time."""
    is_timed: bool = False
    problem: str | None = None

    @property
    def due(self) -> datetime | None:
        """When its timer fires."""
        return self.lease_until if self.state is RunState.LEASED else self.ready_at


def read_run_rows(p: Partition, runs: Sequence[str]) -> Read[tuple[RunRow, ...]]:
    """Several runs; one whose state is None and that has no problem does not exist."""
    commands = tuple(
        command
        for run in runs
        for command in (("GET", p.key("run", run)), ("ZSCORE", p.key("timers"), f"r {run}"))
    )

    def decode(replies: list[Any]) -> tuple[RunRow, ...]:
        return tuple(_row(p, run, replies[2 * n], replies[2 * n + 1]) for n, run in enumerate(runs))

    return Read(commands, decode, forgiving=True)


def _row(p: Partition, run: str, values: Any, timed: Any) -> RunRow:
    key = p.key("run", run)
    try:
        f = Fields(key, record(usable(values, key), key))
        if not f.raw:
            return RunRow(run)
        return RunRow(
            run, f.text("session"), Pool(f.text("queue"), f.text("agent"), f.text("build")), f.word("state", RunState),
            f.number("seq"), f.word("mode", Mode) if f.text("mode") else Mode.ALL, tuple(f.text("ids").split()),
            f.moment("lease_until"), f.moment("ready_at"), f.moment("offered") or f.moment("created"),
            timed is not None and not isinstance(timed, Exception),
        )  # fmt: skip
    except Corrupt as broken:
        return RunRow(run, problem=str(broken))


@dataclass(frozen=True, slots=True)
class Top:
    """The best ready run of a pool and how many there are."""

    pool: Pool
    count: int
    run: str


def read_pools(p: Partition, pools: Sequence[Pool]) -> Read[tuple[Top, ...]]:
    """The pools that have ready runs."""
    commands = tuple(
        command
        for pool in pools
        for command in (("ZCARD", p.key("ready", pool)), ("ZRANGE", p.key("ready", pool), 0, 0))
    )

    def decode(replies: list[Any]) -> tuple[Top, ...]:
        rows = [None if isinstance(one, Exception) else one for one in replies]
        found = (
            Top(pool, int(rows[2 * n] or 0), text((rows[2 * n + 1] or [""])[0]))
            for n, pool in enumerate(pools)
        )
        return tuple(top for top in found if top.count)

    return Read(commands, decode, forgiving=True)


def read_late(p: Partition, before: int, limit: int) -> Read[tuple[str, ...]]:
    """Runs whose timer (a lease, a back-off) passed before that time, the longest ago first."""

    def decode(replies: list[Any]) -> tuple[str, ...]:
        members = () if isinstance(replies[0], Exception) else replies[0]
        return tuple(text(one)[2:] for one in members if bytes(one)[:2] == b"r ")

    return Read(
        (("ZRANGEBYSCORE", p.key("timers"), "-inf", before, "LIMIT", 0, limit),), decode, forgiving=True
    )


def read_sessions(p: Partition, offset: int, limit: int) -> Read[tuple[int, tuple[str, ...]]]:
    """How many members of the retention list were looked at from a place on, and the sessions among them."""

    def decode(replies: list[Any]) -> tuple[int, tuple[str, ...]]:
        members = [] if isinstance(replies[0], Exception) else [text(one) for one in replies[0]]
        return len(members), tuple(one[2:] for one in members if one.startswith("h "))

    return Read((("ZRANGE", p.key("retention"), offset, offset + limit - 1),), decode, forgiving=True)


def read_marks(p: Partition, sessions: Sequence[str]) -> Read[dict[str, dict[str, str]]]:
    """The active mark of each session: run -> number of its pause. What cannot be read has the run that is named so."""

    def decode(replies: list[Any]) -> dict[str, dict[str, str]]:
        marks = {}
        for session, found in zip(sessions, replies, strict=True):
            rows = {} if isinstance(found, Exception) else pairs(found)
            marks[session] = {run: text(seq) for run, seq in rows.items()}
        return marks

    return Read(tuple(("HGETALL", p.key("active", session)) for session in sessions), decode, forgiving=True)


def read_states(p: Partition, interrupts: Sequence[str]) -> Read[dict[str, str]]:
    """The state of each interrupt as stored, empty where there is none; what cannot be read counts as open."""

    def decode(replies: list[Any]) -> dict[str, str]:
        rows = (readable(r, p.key("interrupt", one)) for one, r in zip(interrupts, replies, strict=True))
        states = ("open" if row is None else text(row.get("state", b"")) for row in rows)
        return dict(zip(interrupts, states, strict=True))

    return Read(tuple(("GET", p.key("interrupt", one)) for one in interrupts), decode, forgiving=True)


def read_has_timers(p: Partition) -> Read[bool]:
    """Whether something is to happen by itself."""
    return Read(
        (("ZCARD", p.key("timers")),),
        lambda replies: not isinstance(replies[0], Exception) and replies[0] > 0,
        forgiving=True,
    )
