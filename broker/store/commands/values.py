"""The two kinds of value a driver runs: a script call on a list of items, and a few plain reads in one write."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgpack

from ...core.settings import Settings
from ...errors import BrokerError, Corrupt, Unavailable, UnsuitableServer
from ..connect import meaning
from ..fields import FIELDS, named
from ..keys import Partition
from ..scripts import Script

T_co = TypeVar("T_co", covariant=True)
Arg = bytes | str | int
Reply = list[Any]

MOST_ITEMS: Final = 16
MOST_WORDS: Final = 2900
MOST_BYTES: Final = 256 * 1024
"""What one script call carries at most, so that nobody waits long behind it; some servers refuse more words."""


class StaleAddress(Exception):
    """The record has moved since its address was read: read it again and repeat. Nothing was written."""


class Recheck(Exception):
    """An early answer arrived that was not held against the schema yet: look at it and repeat. Nothing was written."""


def brief(one: tuple[Any, ...]) -> str:
    """How a tuple with stored bytes in it is shown: by its kind alone."""
    return f"<{type(one).__name__}>"


class About(NamedTuple):
    """What one item is about, for those who watch: ids only, and the fence of the lease it shows.

    Of an answer also when its question was asked (Unix seconds), and the trace that it belongs to.
    """

    session: str = ""
    run: str = ""
    interrupts: tuple[str, ...] = ()
    operation: str = ""
    fence: int | None = None
    asked_at: float | None = None
    traceparent: str | None = None


NOTHING: Final = About()


class Item(NamedTuple):
    """What one item of a script call needs: the keys it may touch and its arguments."""

    def __repr__(self) -> str:
        return brief(self)

    keys: tuple[str, ...]
    args: tuple[Arg, ...]
    about: About = NOTHING

    @property
    def size(self) -> int:
        """About how many bytes it is: those of the values that may be long."""
        return sum([len(part) for part in self.args if isinstance(part, bytes)])


class Read(NamedTuple, Generic[T_co]):
    """A few plain commands sent in one write, and what their replies mean together."""

    def __repr__(self) -> str:
        return brief(self)

    commands: tuple[tuple[Arg, ...], ...]
    decode: Callable[[list[Any]], T_co]
    forgiving: bool = False
    """Whether an error of one command is handed to `decode` in the place of its reply."""


def read_all(reads: Sequence[Read[T_co]]) -> Read[list[T_co | BaseException]]:
    """Several forgiving reads in one write: what each says, a fault of its own in its place."""
    commands = tuple(command for one in reads for command in one.commands)

    def decode(replies: list[Any]) -> list[T_co | BaseException]:
        found: list[T_co | BaseException] = []
        start = 0
        for one in reads:
            mine = replies[start : start + len(one.commands)]
            start += len(one.commands)
            try:
                found.append(one.decode(mine))
            except BrokerError as fault:
                found.append(fault)
        return found

    return Read(commands, decode, forgiving=True)


@dataclass(frozen=True, slots=True)
class Then:
    """Plain reads behind a script of one item, on the same connection, and its result with what they say.

    An error of one is handed to `join` in the place of its reply.
    """

    commands: tuple[tuple[Arg, ...], ...] = field(repr=False)
    join: Callable[[Any, list[Any]], Any]


class Command(NamedTuple, Generic[T_co]):
    """One script call on items of one partition. `decode` turns the reply of item n into what the caller is told.

    `oom` lets a script that creates records run at the server's memory limit (a leased run may always pause).
    `confirm`: its outcome waits for the durability class of the namespace, whatever the outcome is (rule 34).
    """

    def __repr__(self) -> str:
        return brief(self)

    script: str
    partition: Partition
    items: tuple[Item, ...]
    decode: Callable[[int, Reply], T_co]
    oom: bool = False
    confirm: bool = False
    then: Then | None = None

    def keys(self) -> list[str]:
        """Every key the call declares, once each."""
        return list(dict.fromkeys(chain.from_iterable([item.keys for item in self.items])))

    def args(self, settings: Settings) -> list[Arg]:
        """The arguments: the header every script reads, then each item behind its size."""
        return [len(self.items), *header(settings), *self._flat()]

    def _flat(self) -> list[Arg]:
        flat: list[Arg] = []
        for item in self.items:
            flat.append(len(item.args))
            flat.extend(item.args)
        return flat

    def call(self, script: Script, head: tuple[Arg, ...]) -> "Call":
        """The command in words for the server; `head` is the `header` of the namespace."""
        after = self.then.commands if self.then else ()
        return Call(self.partition, script, head, self.keys(), len(self.items), self._flat(), after)

    def read(self, reply: Sequence[Reply], after: Sequence[Any] = ()) -> list[T_co | BaseException]:
        """What each item came to; a fault of one item is its own and is returned in its place.

        `after` are the replies to the reads that followed.
        """
        results: list[T_co | BaseException] = []
        for n, row in enumerate(reply):
            try:
                check_faults(row)
                result = self.decode(n, row)
                results.append(self.then.join(result, list(after)) if self.then else result)
            except (BrokerError, StaleAddress, Recheck) as error:
                results.append(error)
        return results


def header(settings: Settings) -> tuple[int, ...]:
    """What every script reads behind the number of its items."""
    spans = (settings.keep_settled, settings.keep_history, settings.keep_parked)
    return (*map(micros, spans), settings.tries)


def joined(commands: Sequence[Command[T_co]]) -> Iterator[tuple[Command[T_co], list[int]]]:
    """Several commands as few: those of one script and partition together, each with the places of what it carries.

    A place is that of a command in `commands`, which have one item each and no reads behind it.
    """
    groups: dict[Any, list[int]] = {}
    for place, one in enumerate(commands):
        groups.setdefault((one.script, one.partition.tag, one.oom, one.confirm), []).append(place)
    for places in groups.values():
        for some in _chunks(commands, places):
            yield _join([commands[place] for place in some]), some


def _chunks(commands: Sequence[Command[Any]], places: Sequence[int]) -> Iterator[list[int]]:
    some: list[int] = []
    load = Load()
    for place in places:
        (item,) = commands[place].items
        weight = (1, len(item.keys) + len(item.args) + 1, item.size)
        if not load.takes(*weight):
            yield some
            some, load = [], Load()
            load.takes(*weight)
        some.append(place)
    if some:
        yield some


@dataclass(slots=True)
class Load:
    """How much one script call carries."""

    items: int = 0
    words: int = 0
    size: int = 0

    def takes(self, items: int, words: int, size: int) -> bool:
        """Whether there is room for so much more; then it counts. The first has room, whatever it weighs."""
        more = (self.items + items, self.words + words, self.size + size)
        if self.items and (more[0] > MOST_ITEMS or more[1] > MOST_WORDS or more[2] > MOST_BYTES):
            return False
        self.items, self.words, self.size = more
        return True


def _join(commands: Sequence[Command[T_co]]) -> Command[T_co]:
    items = tuple(item for one in commands for item in one.items)
    return commands[0]._replace(items=items, decode=lambda n, row: commands[n].decode(0, row))


@dataclass(frozen=True, slots=True)
class Call:
    """One script call in words for the server, and the reads behind it.

    `head` is the same for all calls of a namespace, so that calls of one script can be made one (`packed`).
    """

    partition: Partition
    script: Script
    head: tuple[Arg, ...] = field(repr=False)
    keys: Sequence[str]
    count: int
    flat: Sequence[Arg] = field(repr=False)
    after: tuple[tuple[Arg, ...], ...] = field(default=(), repr=False)

    def words(self, *, whole: bool) -> tuple[Arg, ...]:
        """The command: by the script's hash, or with its whole text where the server does not know it."""
        return packed((self,), whole=whole)

    @property
    def size(self) -> int:
        """About how many bytes it is: those of the values that may be long."""
        return sum([len(part) for part in self.flat if isinstance(part, bytes)])


def packed(calls: Sequence[Call], *, whole: bool) -> tuple[Arg, ...]:
    """Several calls of one script, partition and header as one: a row of the reply for each of their items."""
    first = calls[0]
    keys = first.keys if len(calls) == 1 else dict.fromkeys(chain.from_iterable([one.keys for one in calls]))
    called = ("EVAL", first.script.text) if whole else ("EVALSHA", first.script.sha)
    flat = chain.from_iterable(one.flat for one in calls)
    return (*called, len(keys), *keys, sum(one.count for one in calls), *first.head, *flat)


class Came(NamedTuple):
    """What a call came to: the script's reply, those of the reads behind it, whether its class was reached.

    `again`: it was made before, together with others, and may have happened then.
    """

    def __repr__(self) -> str:
        return brief(self)

    reply: Any
    after: Sequence[Any] = ()
    reached: bool = True
    again: bool = False


def check_faults(reply: Reply) -> None:
    """Raises for the replies any script can give: a moved record, a key of another type, a fault of the script."""
    word = text(reply[0])
    if word == "address":
        raise StaleAddress(text(reply[1]))
    if word == "recheck":
        raise Recheck
    if word == "corrupt":
        raise Corrupt(text(reply[1]), f"holds a {text(reply[2])}, which no key of that name should")
    if word == "fault":
        raise UnsuitableServer(
            f"a script failed on it: {text(reply[1])}", "Nothing was written; please report this"
        )


def usable(reply: Any, key: str) -> Any:
    """A reply of a forgiving read; raises `Corrupt` where the key holds another type, else what the error means."""
    if not isinstance(reply, Exception):
        return reply
    if str(reply).startswith("WRONGTYPE"):
        raise Corrupt(key, "it holds another type, so it was written by another program")
    fault = meaning(reply)
    raise fault if isinstance(fault, BrokerError) else Unavailable(str(fault))


def unpacked(packed: bytes, least: int) -> list[Any] | None:
    """The parts of a list that a script packed, None where these bytes are none of ours."""
    try:
        parts = msgpack.unpackb(packed, raw=True)
    except (ValueError, TypeError, RecursionError, msgpack.exceptions.UnpackException):
        return None
    return parts if isinstance(parts, list) and len(parts) >= least else None


def record(packed: Any, key: str) -> dict[str, bytes]:
    """The fields of a record as the scripts pack it, none where there is no record. Raises `Corrupt`."""
    if packed is None:
        return {}
    fields: dict[str, Any]
    try:
        fields = named(msgpack.unpackb(packed, raw=True))
    except (ValueError, TypeError, AttributeError, RecursionError, msgpack.exceptions.UnpackException):
        fields = {"": None}
    if not set(map(type, fields.values())) <= {bytes}:
        raise Corrupt(key, "it holds a record of another program")
    return fields


def readable(reply: Any, key: str) -> dict[str, bytes] | None:
    """The fields of a record from a forgiving read, None where it cannot be read."""
    try:
        return record(usable(reply, key), key)
    except Corrupt:
        return None


def packed_record(fields: Mapping[str, Arg]) -> bytes:
    """Fields of a record as it begins: texts under their short names, those that are empty left out."""
    return packed_texts({FIELDS[name]: value for name, value in fields.items()})


def packed_texts(fields: Mapping[str, Arg]) -> bytes:
    """A map for a script: texts, those that are empty left out."""
    texts = {
        name: value if isinstance(value, bytes) else str(value)
        for name, value in fields.items()
        if value != ""
    }
    packed: bytes = msgpack.packb(texts, use_bin_type=False, unicode_errors="surrogatepass")
    return packed


def text(value: object) -> str:
    """A reply's part as text; broken bytes are shown, not raised."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def micros(span: timedelta) -> int:
    """A timedelta in whole microseconds."""
    return round(span.total_seconds() * 1_000_000)


def pairs(flat: Iterable[Any]) -> dict[str, bytes]:
    """The fields of a record, from the flat list of names and values a script or HGETALL gives."""
    if isinstance(flat, dict):
        return {text(k): v for k, v in flat.items()}
    parts = list(flat)
    return {text(parts[i]): parts[i + 1] for i in range(0, len(parts) - 1, 2)}
