"""What followers of events read: the two doorbells of each partition from a place on, and the facts behind an entry.

In the first partition: named cursors, a hash, and for each name a hash of what its follower notes beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...core.events import Event, EventType, Place
from ...core.fields import from_ms
from ...core.states import RunState
from ..keys import Keyspace, Partition
from .answers import principal
from .decode import interrupt_record
from .sweep import stream_id
from .values import Arg, Read, pairs, readable, text

BELLS: Final = ("interrupts", "dispositions")
"""The streams of a partition, in the order in which cursors name them."""
_OF_RUNS: Final = {
    RunState.FINISHED: EventType.FINISHED,
    RunState.WITHDRAWN: EventType.WITHDRAWN,
    RunState.DEAD: EventType.DEAD,
}
"""What an entry without an interrupt says."""


@dataclass(frozen=True, slots=True)
class Bell:
    """One stream that is followed, and its number in the cursor."""

    number: int
    partition: Partition
    kind: str

    @property
    def key(self) -> str:
        """Its name."""
        return self.partition.key(self.kind)


def bells(space: Keyspace) -> tuple[Bell, ...]:
    """Every stream that is followed, in the order in which cursors name them."""
    named = [(p, kind) for p in space.all() for kind in BELLS]
    return tuple(Bell(number, p, kind) for number, (p, kind) in enumerate(named))


@dataclass(frozen=True, slots=True)
class Extent:
    """What a stream holds: where it ends, and how many of its entries are gone."""

    end: Place
    gone: int


def read_extents(streams: Sequence[Bell]) -> Read[tuple[Extent, ...]]:
    """What each stream holds; one that is not there holds nothing."""
    commands = tuple(("XINFO", "STREAM", one.key) for one in streams)
    return Read(commands, lambda replies: tuple(map(_extent, replies)), forgiving=True)


def _extent(reply: Any) -> Extent:
    if isinstance(reply, Exception):
        return Extent(Place(), 0)
    facts = pairs(reply)
    added = int(facts["entries-added"])
    return Extent(Place(*stream_id(facts["last-generated-id"]), added), added - int(facts["length"]))


def read_after(
    streams: Sequence[Bell], places: Sequence[Place], most: int, block: int | None = None
) -> tuple[Arg, ...]:
    """The command that gives what each stream has after a place, up to `most` of each; `block` in milliseconds."""
    waits: tuple[Arg, ...] = ("BLOCK", block) if block is not None else ()
    keys = [one.key for one in streams]
    return ("XREAD", "COUNT", most, *waits, "STREAMS", *keys, *(place.id for place in places))


@dataclass(frozen=True, slots=True)
class Rung:
    """One entry of a doorbell."""

    bell: Bell
    ms: int
    seq: int
    fields: dict[str, Any] = field(repr=False)

    def text(self, name: str) -> str | None:
        """A field, None where it is empty."""
        return text(self.fields.get(name, b"")) or None

    @property
    def id(self) -> str:
        """What the event is called, everywhere and for good."""
        return f"evt_{self.bell.number}_{self.ms}_{self.seq}"


def entries(streams: Sequence[Bell], reply: Any) -> list[Rung]:
    """The entries in a reply of `read_after`, by their time."""
    named = {one.key: one for one in streams}
    found: list[Rung] = []
    for key, rows in reply.items() if isinstance(reply, dict) else reply or ():
        for id, flat in rows:
            found.append(Rung(named[text(key)], *stream_id(id), pairs(flat or {})))
    return sorted(found, key=lambda one: (one.ms, one.seq, one.bell.number))


def read_events(rung: Sequence[Rung]) -> Read[tuple[Event, ...]]:
    """The event behind each of some entries, without its cursor, with what the records say now."""
    commands: list[tuple[Arg, ...]] = []
    for one in rung:
        p, interrupt, run = one.bell.partition, one.text("interrupt"), one.text("run")
        if interrupt:
            commands += [("GET", p.key("interrupt", interrupt)), ("GET", p.key("question", interrupt))]
        else:
            commands += [("GET", p.key("run", run or "")), ("TYPE", p.key("run", run or ""))]

    def decode(replies: list[Any]) -> tuple[Event, ...]:
        return tuple(_event(one, replies[2 * n : 2 * n + 2]) for n, one in enumerate(rung))

    return Read(tuple(commands), decode, forgiving=True)


def _event(one: Rung, replies: Sequence[Any]) -> Event:
    values: dict[str, Any] = {
        "id": one.id, "cursor": "", "at": from_ms(one.ms),
        "interrupt_id": one.text("interrupt"), "run_id": one.text("run"), "session_id": one.text("session"),
    }  # fmt: skip
    facts = _of_interrupt(one, replies) if one.text("interrupt") else _of_run(one, replies[0])
    return Event.made({**values, **facts})


def _of_run(one: Rung, reply: Any) -> dict[str, Any]:
    said = one.text("event") or ""
    facts: dict[str, Any] = {
        "type": _OF_RUNS.get(RunState(said), said) if said in set(RunState) else f"answer.{said}"
    }
    row = readable(reply, one.bell.partition.key("run", one.text("run") or "")) or {}
    for name in ("queue", "agent"):
        facts[name] = text(row.get(name, b"")) or None
    facts["state"] = said if said in set(RunState) else None
    return facts


def _of_interrupt(one: Rung, replies: Sequence[Any]) -> dict[str, Any]:
    p, name, said = one.bell.partition, one.text("interrupt") or "", one.text("event")
    row = readable(replies[0], p.key("interrupt", name))
    record = interrupt_record(p, name, replies, row)
    if one.bell.kind == "interrupts":
        told = EventType.REMINDED if one.text("again") else EventType.OPENED
        facts: dict[str, Any] = {key: one.text(key) for key in ("queue", "agent", "kind", "tool")}
        facts |= {"type": told, "audience": one.text("for"), "state": "open"}
    else:
        facts = {"type": EventType.UNMATCHED if said == "unmatched" else EventType.SETTLED, "state": said}
    if record is None or row is None:
        return facts
    asked = record.interrupt
    facts |= {
        "queue": record.queue, "agent": record.agent, "kind": asked.kind.type, "labels": asked.labels,
        "audience": str(asked.addressed_to), "tool": asked.action.tool if asked.action else None,
    }  # fmt: skip
    if one.bell.kind == "dispositions":
        facts |= {"answer": text(row.get("answer", b"")) or None, "by": principal(row.get("by", b""))}
    return facts


def read_position(p: Partition, name: str) -> Read[str | None]:
    """A named cursor; None where there is none."""
    return Read((("HGET", p.key("cursors"), name),), lambda replies: text(replies[0]) if replies[0] else None)


def keep_position(p: Partition, name: str, cursor: str) -> Read[None]:
    """Stores a named cursor. Safe to repeat."""
    return Read((("HSET", p.key("cursors"), name, cursor),), lambda _: None)


def drop_position(p: Partition, name: str) -> Read[None]:
    """Forgets a named cursor. Safe to repeat."""
    return Read((("HDEL", p.key("cursors"), name),), lambda _: None)


def read_note(p: Partition, name: str, about: str) -> Read[str | None]:
    """What a follower has noted about something; None where it has not."""
    return Read(
        (("HGET", p.key("notes", name), about),), lambda replies: text(replies[0]) if replies[0] else None
    )


def read_notes(p: Partition, name: str) -> Read[dict[str, str]]:
    """Everything that a follower has noted."""
    key = p.key("notes", name)
    return Read((("HGETALL", key),), lambda r: {about: text(said) for about, said in pairs(r[0]).items()})


def keep_note(p: Partition, name: str, about: str, said: str) -> Read[None]:
    """Stores what a follower notes. Safe to repeat."""
    return Read((("HSET", p.key("notes", name), about, said),), lambda _: None)


def drop_note(p: Partition, name: str, about: str) -> Read[None]:
    """Forgets what a follower has noted. Safe to repeat."""
    return Read((("HDEL", p.key("notes", name), about),), lambda _: None)


def hold(p: Partition, role: str, holder: str, ms: int) -> Read[bool]:
    """Whether `holder` has a role that one has at a time, for so many milliseconds from now; 0 gives it up."""
    command = ("EVAL", _HOLD, 1, p.key("holders", role), holder, ms)
    return Read((command,), lambda replies: int(replies[0]) == 1)


_HOLD: Final = """#!lua flags=allow-oom
local has = redis.call('GET', KEYS[1])
if has and has ~= ARGV[1] then return 0 end
if tonumber(ARGV[2]) == 0 then redis.call('DEL', KEYS[1]) return 1 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""


def read_more(streams: Sequence[Bell], places: Sequence[Place], most: int) -> Read[list[Rung]]:
    """What each stream has after a place, up to `most` of each, by their time; without waiting."""
    return Read((read_after(streams, places, most),), lambda replies: entries(streams, replies[0]))
