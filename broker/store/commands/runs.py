"""A run from its start to its end: start, adopt, lease, renew, release, fail, finish, withdraw, requeue, move."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from ...core.outcomes import Accepted, AlreadyDecided, Conflict, Invalid, Outcome, Replayed, Unknown
from ...core.states import RunState, Settlement
from ...errors import StaleLease
from ..keys import Partition, Pool, open_list
from .address import RunAddress, interrupt_keys, run_keys
from .values import About, Command, Item, Read, Reply, micros, readable, record, text, unpacked, usable


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new run belongs: its id, session, pool, priority, and its input as bytes."""

    run: str
    session: str
    pool: Pool
    priority: int
    input: bytes = field(repr=False)
    by: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Token:
    """What a lease holder shows with each write. The number only grows; the nonce makes the token one lease's own."""

    run: str
    fence: int
    nonce: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Leased:
    """One run, leased to the caller: its token, until when (server time, microseconds), its record's fields."""

    partition: Partition
    token: Token
    until: int
    fields: dict[str, bytes] = field(repr=False)
    ahead: Any = field(default=None, compare=False, repr=False)
    """What it goes on from (`reads.Resume`), where that was read in the same turn as the lease was taken."""

    def text(self, name: str) -> str:
        """One field as text, empty where it is not set."""
        return text(self.fields.get(name, b""))

    @property
    def pool(self) -> Pool:
        """The pool the run belongs to."""
        return Pool(self.text("queue"), self.text("agent"), self.text("build"))


def _creation(place: Place, *rest: Any) -> tuple[Any, ...]:
    pool = place.pool
    return (
        place.run,
        place.session,
        pool.queue,
        pool.agent,
        pool.build,
        place.priority,
        *rest,
        place.by,
        place.input,
    )


def _creation_keys(p: Partition, place: Place) -> tuple[str, ...]:
    return (*run_keys(p, place.run, place.session, place.pool), p.key("input", place.run))


def start(p: Partition, place: Place, *, op: str, not_after: int, longest: timedelta) -> Command[Outcome]:
    """A new run, ready for its pool."""

    def decode(_: int, reply: Reply) -> Outcome:
        word = text(reply[0])
        if word in ("accepted", "replayed"):
            return (Accepted if word == "accepted" else Replayed)(run_id=place.run, session_id=place.session)
        return refusal(reply, place.run)

    args = _creation(place, op, not_after, micros(longest))
    return Command(
        "start",
        p,
        (Item(_creation_keys(p, place), args, About(place.session, place.run, (), op)),),
        decode,
        confirm=True,
    )


def adopt(
    p: Partition,
    place: Place,
    *,
    nonce: str,
    holder: str,
    lease: timedelta,
    not_after: int,
    longest: timedelta,
) -> Command[Leased | Outcome]:
    """The record of a run that is executing already, leased to the caller."""

    def decode(_: int, reply: Reply) -> Leased | Outcome:
        if text(reply[0]) != "accepted":
            return refusal(reply, place.run)
        pool = place.pool
        fields = {
            "session": place.session.encode(), "queue": pool.queue.encode(), "agent": pool.agent.encode(),
            "build": pool.build.encode(), "seq": b"0", "state": RunState.LEASED.encode(), "tries": b"1",
            "priority": str(place.priority).encode(),
        }  # fmt: skip
        return Leased(p, Token(place.run, int(reply[1]), nonce), int(reply[2]), fields)

    args = _creation(place, nonce, holder, micros(lease), not_after, micros(longest))
    return Command(
        "adopt",
        p,
        (Item(_creation_keys(p, place), args, About(place.session, place.run)),),
        decode,
        confirm=True,
    )


def refusal(reply: Reply, run: str) -> Outcome:
    """What a script's refusal of a creating or closing operation means to the caller."""
    word = text(reply[0])
    detail = text(reply[1]) if len(reply) > 1 else ""
    if word == "unknown":
        return Unknown(id=run)
    if word == "invalid":
        return Invalid(field=detail, problem="is in the past or further ahead than the server accepts",
                       allowed="a time after now, within the window of the namespace")  # fmt: skip
    if word == "settled":
        return AlreadyDecided()
    found = text(reply[2]) if len(reply) > 2 else ""  # noqa: PLR2004
    return Conflict(reason=f"{detail} is taken or in another state" + (f" ({found})" if found else ""))


def lease(p: Partition, wanted: Sequence[tuple[str, Pool, str]], *, nonces: Sequence[str], holder: str,
          span: timedelta, seq: str = "") -> Command[Leased | None]:  # fmt: skip
    """One lease for each run of `wanted` (id, pool, session) that is free; None for one that is not.

    With a `seq` only where the run is at that pause still.
    """

    def decode(n: int, reply: Reply) -> Leased | None:
        if text(reply[0]) != "leased":
            return None
        fields = record(reply[1], p.key("run", wanted[n][0]))
        token = Token(wanted[n][0], int(fields["fence"]), nonces[n])
        return Leased(p, token, int(fields["lease_until"]), fields)

    items = tuple(
        Item(
            tuple(run_keys(p, run, session, pool)),
            (run, nonce, seq, holder, micros(span)),
            About(session, run),
        )
        for (run, pool, session), nonce in zip(wanted, nonces, strict=True)
    )
    return Command("lease", p, items, decode)


@dataclass(frozen=True, slots=True)
class Offer:
    """A ready run, as it was a moment ago: what it takes to lease it, and to read ahead what it goes on from."""

    run: str
    pool: Pool
    fields: dict[str, bytes] = field(repr=False)

    @classmethod
    def parse(cls, said: bytes) -> "Offer | None":
        """What a worker was told when it was woken; None where that names no run."""
        parts = unpacked(said, len(_OFFERED) + 2) if said else None
        if parts is None or not all(isinstance(one, bytes) for one in parts):
            return None
        run, pool, *rest = parts
        known = Pool.known([text(pool)])
        return cls(text(run), known[0], dict(zip(_OFFERED, rest, strict=False))) if known else None

    def is_still(self, leased: Leased) -> bool:
        """Whether it was leased at the pause that it was looked at, with the answers it had then."""
        before, now = self.fields, leased.fields
        return all(before.get(name, b"") == now.get(name, b"") for name in ("seq", "ids")) and (
            before.get("fresh", b"") == now.get("shown", b"")
        )


_OFFERED: Final = ("session", "seq", "fresh", "ids")


def ready_runs(p: Partition, pools: Sequence[Pool], limit: int) -> Read[tuple[tuple[str, Pool], ...]]:
    """The ids of ready runs of several pools, best first over all of them, at most `limit` of each pool."""

    def decode(replies: list[Any]) -> tuple[tuple[str, Pool], ...]:
        found: list[tuple[float, str, Pool]] = []
        for pool, reply in zip(pools, replies, strict=True):
            rows = usable(reply, p.key("ready", pool))
            if rows and not isinstance(rows[0], list | tuple):
                rows = zip(rows[::2], rows[1::2], strict=True)
            found += [(float(score), text(run), pool) for run, score in rows]
        return tuple((run, pool) for _, run, pool in sorted(found, key=lambda row: row[0]))

    commands = tuple(("ZRANGE", p.key("ready", pool), 0, limit - 1, "WITHSCORES") for pool in pools)
    return Read(commands, decode, forgiving=True)


def records_of(p: Partition, runs: Sequence[str]) -> Read[dict[str, dict[str, bytes]]]:
    """The fields of each run; one that does not exist or cannot be read is left out."""

    def decode(replies: list[Any]) -> dict[str, dict[str, bytes]]:
        rows = ((run, readable(r, p.key("run", run))) for run, r in zip(runs, replies, strict=True))
        return {run: row for run, row in rows if row}

    return Read(tuple(("GET", p.key("run", run)) for run in runs), decode, forgiving=True)


def renew(p: Partition, tokens: Sequence[Token], span: timedelta) -> Command[int | None]:
    """Until when each lease holds now (server time, microseconds); None for one that is lost."""

    def decode(_: int, reply: Reply) -> int | None:
        return int(reply[1]) if text(reply[0]) == "ok" else None

    items = tuple(
        Item(
            (p.key("run", t.run), p.key("timers")),
            (t.run, t.fence, t.nonce, micros(span)),
            About(run=t.run, fence=t.fence),
        )
        for t in tokens
    )
    return Command("renew", p, items, decode)


def _held(
    p: Partition, script: str, leased: Leased, args: tuple[Any, ...], keys: Iterable[str] = ()
) -> Command[str]:
    token = leased.token

    def decode(_: int, reply: Reply) -> str:
        if text(reply[0]) == "stale_lease":
            raise StaleLease(token.run)
        return text(reply[1]) if len(reply) > 1 else ""

    session = leased.text("session")
    names = (*run_keys(p, token.run, session, leased.pool), *keys)
    about = About(session, token.run, (), f"{script}-{token.fence}", token.fence)
    item = Item(names, (token.run, token.fence, token.nonce, *args), about)
    return Command(script, p, (item,), decode, confirm=script == "finish")


def release(leased: Leased) -> Command[str]:
    """Gives a run back unharmed."""
    return _held(leased.partition, "release", leased, ())


def fail(leased: Leased, *, pause: timedelta, final: bool, kind: str, text: str) -> Command[str]:
    """Ends an attempt that raised; the run's new state."""
    return _held(leased.partition, "fail", leased, (micros(pause), int(final), kind, text))


def finish(leased: Leased, *, by: bytes, result: bytes) -> Command[str]:
    """Closes a run; the run's new state (mode each may hand it on instead)."""
    p = leased.partition
    return _held(p, "finish", leased, (by, result), (p.key("result", leased.token.run),))


def withdraw(
    p: Partition, a: RunAddress, *, op: str, by: bytes, reason: str, superseded: bool = False
) -> Command[Outcome]:
    """Takes back the suspension of a run, and with it the run. What is open is withdrawn, or `superseded`."""

    def decode(_: int, reply: Reply) -> Outcome:
        word = text(reply[0])
        if word in ("accepted", "replayed"):
            return (Accepted if word == "accepted" else Replayed)(run_id=a.run, session_id=a.session)
        if word == "conflict" and text(reply[1]) == "leased":
            return Conflict(
                reason="a worker holds the run and nothing is open; this withdrawal stays refused"
            )
        return refusal(reply, a.run)

    ends = Settlement.SUPERSEDED if superseded else Settlement.WITHDRAWN
    keys = run_keys(p, a.run, a.session, a.pool)
    for one in a.interrupts:
        # A default answer that is due is settled first, and that writes a verdict.
        keys += interrupt_keys(p, one, decider=one.expiry == "default")
    return Command(
        "withdraw",
        p,
        (Item(tuple(keys), (a.run, op, a.seq, by, reason, ends), About(a.session, a.run, (), op)),),
        decode,
        confirm=True,
    )


def requeue(p: Partition, a: RunAddress, *, op: str, by: bytes) -> Command[Outcome]:
    """Sends a dead run back."""

    def decode(_: int, reply: Reply) -> Outcome:
        word = text(reply[0])
        if word in ("accepted", "replayed"):
            return (Accepted if word == "accepted" else Replayed)(run_id=a.run, session_id=a.session)
        return refusal(reply, a.run)

    keys = tuple(run_keys(p, a.run, a.session, a.pool))
    return Command(
        "requeue",
        p,
        (Item(keys, (a.run, op, a.fence, by), About(a.session, a.run, (), op)),),
        decode,
        confirm=True,
    )


def move(p: Partition, a: RunAddress, *, queue: str, by: bytes) -> Command[Outcome]:
    """Takes a run to another queue."""

    def decode(_: int, reply: Reply) -> Outcome:
        if text(reply[0]) == "accepted":
            return Accepted(run_id=a.run, session_id=a.session)
        return refusal(reply, a.run)

    keys = run_keys(p, a.run, a.session, a.pool)
    keys += run_keys(p, a.run, a.session, Pool(queue, a.pool.agent, a.pool.build))
    for one in a.interrupts:
        lists = (open_list(name, one.kind, one.tool) for name in (a.pool.queue, queue))
        keys += [p.key("interrupt", one.interrupt), *(p.key("open", name) for name in lists)]
    item = Item(tuple(keys), (a.run, queue, by), About(a.session, a.run))
    return Command("move", p, (item,), decode, confirm=True)
