"""The run's journal as values: begin, end, handle, cut, and what is read of it."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from ...core.limits import JSON, Limits
from ...core.wire import decode, encode
from ...errors import Corrupt, JournalFull, JournalMismatch, StaleLease
from ..keys import Partition
from .runs import Leased
from .values import About, Command, Item, Read, Reply, Then, text

STEP: Final = "\x1f"
"""Before the name of a step: no call id can begin with it."""


class Told(StrEnum):
    """What the script says becomes of an entry."""

    STORED = "stored"
    SETTLED = "settled"
    ASKED = "asked"
    ASK = "ask"
    OPEN = "open"
    WAIT = "wait"
    CHANGED = "changed"
    DOUBT = "doubt"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Begun:
    """What becomes of one entry, with its detail (stored bytes, handle, interrupt id or digest), attempt, token.

    For one that is to run, the detail is the interrupt that it runs by; empty where nobody was asked.
    """

    told: Told
    detail: bytes = field(default=b"", repr=False)
    attempt: int = 0
    token: str = field(default="", repr=False)
    verdict: Any = field(default=None, repr=False)
    """The reply to the read of its verdict, after it was written ahead and confirmed."""

    @property
    def code(self) -> str:
        """The word, for those who watch."""
        return self.told.value

    @property
    def handle(self) -> JSON:
        """What the start of a job returned, where it is known."""
        return decode(self.detail)["handle"] if self.detail else None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry before it runs: its name in the journal, and the digests of what was asked for and what would run."""

    name: str
    digest: str
    running: str
    gated: bool = False
    long: bool = False
    interrupt: str = ""
    token: str = field(default="", repr=False)
    again: bool = False
    """Whether it may run although it was begun under an earlier lease."""
    approved: bool = False
    """Whether somebody was asked about that and said yes."""
    place: str = ""
    """Where it stands, if that is all it is known by; empty for one that has an id or a key."""


def _keys(leased: Leased, interrupt: str = "") -> tuple[str, ...]:
    p, run = leased.partition, leased.token.run
    names = (p.key("run", run), p.key("calls", run), p.key("journal", run))
    return (*names, p.key("interrupt", interrupt)) if interrupt else names


def _item(leased: Leased, rest: tuple[Any, ...], interrupt: str = "", entry: str = "") -> Item:
    token = leased.token
    asked = (interrupt,) if interrupt else ()
    about = About(leased.text("session"), token.run, asked, entry.removeprefix(STEP), token.fence)
    return Item(_keys(leased, interrupt), (token.run, token.fence, token.nonce, *rest), about)


def _stale(reply: Reply, leased: Leased) -> str:
    word = text(reply[0])
    if word == "stale_lease":
        raise StaleLease(leased.token.run)
    return word


def begin(leased: Leased, entry: Entry, limits: Limits, slot: str = "") -> Command[Begun]:
    """Writes ahead that an entry is about to run, unless it ran, waits, or must be asked for first.

    `slot` is where the verdict about it lies: it is read again afterwards, on the connection that confirmed (P1).
    """

    def decode_begun(_: int, reply: Reply) -> Begun:
        word, run = _stale(reply, leased), leased.token.run
        if word == "mismatch":
            raise JournalMismatch(run, entry.name, text(reply[1]), entry.digest)
        if word == "full":
            raise JournalFull(run, int(reply[1]), int(reply[2]))
        told = Told(word)
        if told in (Told.RUN, Told.DOUBT):
            return Begun(told, b"".join(reply[3:]), int(reply[1]), text(reply[2]))
        return Begun(told, detail=reply[1] if len(reply) > 1 else b"")

    args = (entry.name, entry.digest, entry.running, int(entry.gated), int(entry.long), entry.interrupt, entry.token,
            int(entry.again), limits.journal_entries, limits.journal_bytes, entry.place)  # fmt: skip
    item = _item(leased, args, entry.interrupt, entry.name)
    then = None
    if slot:
        read = ("GET", leased.partition.key("verdict", slot))
        then = Then((read,), lambda begun, replies: replace(begun, verdict=replies[0]))
    waits = entry.gated or entry.long or entry.approved
    return Command("begin", leased.partition, (item,), decode_begun, confirm=waits, then=then)


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a result: it was recorded (and how full the journal is now), or another one was there before."""

    code: str
    entries: int = 0
    size: int = 0
    stored: bytes = field(default=b"", repr=False)


def end(leased: Leased, name: str, result: bytes, refused: str = "", place: str = "") -> Command[Ended]:
    """Records the result of an entry, unless there is one.

    `refused` is the digest of a call that is not begun, `place` where it stands if that is all it is known by.
    """

    def decode_end(_: int, reply: Reply) -> Ended:
        match _stale(reply, leased), reply:
            case "replayed", [_, stored]:
                return Ended("replayed", stored=stored)
            case "accepted", [_, count, size]:
                return Ended("accepted", int(count), int(size))
            case "completed", _:
                return Ended("completed")
            case "mismatch", [_, recorded]:
                raise JournalMismatch(leased.token.run, name, text(recorded), refused)
            case _:
                key = leased.partition.key("calls", leased.token.run)
                raise Corrupt(key, f"entry {name!r} is {text(reply[-1])}, and its result came")

    item = _item(leased, (name, result, refused, place), entry=name)
    return Command("end", leased.partition, (item,), decode_end, confirm=True)


def handle(leased: Leased, name: str, value: JSON) -> Command[str]:
    """Keeps what the start of a long-running call returned; the call's state (it may be completed already)."""

    def decode_handle(_: int, reply: Reply) -> str:
        _stale(reply, leased)
        return text(reply[1])

    item = _item(leased, (name, encode({"handle": value})), entry=name)
    return Command("handle", leased.partition, (item,), decode_handle, confirm=True)


def cut(leased: Leased, number: int, state: JSON) -> Command[str]:
    """Puts a checkpoint in the place of the entries so far."""

    def decode_cut(_: int, reply: Reply) -> str:
        word = _stale(reply, leased)
        if word != "ok":
            key = leased.partition.key("journal", leased.token.run)
            raise Corrupt(key, f"checkpoint {number} is out of order")
        return word

    item = _item(leased, (number, encode({"checkpoint": state})), entry=str(number))
    return Command("cut", leased.partition, (item,), decode_cut)


def read_checkpoint(p: Partition, run: str) -> Read[JSON]:
    """The last checkpoint; None where there is none."""
    key = p.key("journal", run)
    return Read(
        (("HGET", key, "checkpoint"),), lambda r: decode(r[0], key=key)["checkpoint"] if r[0] else None
    )


def read_token(p: Partition, run: str, entry: str) -> Read[str]:
    """The token of a long-running call, empty where there is none."""
    return Read((("HGET", p.key("journal", run), f"t {entry}"),), lambda r: text(r[0] or b""))


@dataclass(frozen=True, slots=True)
class Known:
    """What the journal has of one call: the state of its record, who was asked about it, its result and handle."""

    state: str = ""
    interrupt: str = ""
    result: bytes | None = field(default=None, repr=False)
    handle: JSON = field(default=None, repr=False)


def read_entry(p: Partition, run: str, entry: str) -> Read[Known]:
    """What the journal has of one call; no state where it has nothing."""
    calls, journal = p.key("calls", run), p.key("journal", run)

    def decode_entry(replies: list[Any]) -> Known:
        if replies[0] is None:
            return Known(result=replies[1])
        handle = decode(replies[2], key=journal)["handle"] if replies[2] else None
        match text(replies[0]).split():
            case [state, interrupt] | [state, interrupt, _, _, _]:
                return Known(state, "" if interrupt == "-" else interrupt, replies[1], handle)
            case _:
                raise Corrupt(calls, "it holds a call record of another form")

    asked = (("HGET", calls, entry), *(("HGET", journal, f"{part} {entry}") for part in "rh"))
    return Read(asked, decode_entry)
