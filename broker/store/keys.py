"""Every key name there is. Nothing else in the package spells one; the scripts are rendered with `SEGMENTS`.

A key is `{namespace:i.k}` (the partition's hash tag), a typed segment, and at most one id, as the last part. All
records of a session lie in one partition, so every script works inside one cluster slot.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ..core.ids import bits_of, session_hash

SEGMENTS: Final[dict[str, str]] = {
    # records, by run
    "run": ":run:",
    "input": ":input:",
    "state": ":state:",
    "calls": ":calls:",
    "journal": ":journal:",
    "result": ":result:",
    "errors": ":errors:",
    "said": ":said:",
    # records, by interrupt
    "interrupt": ":interrupt:",
    "question": ":question:",
    "verdict": ":verdict:",
    "default": ":default:",
    # records, by session
    "active": ":active:",
    "history": ":history:",
    "early": ":early:",
    "aliases": ":aliases:",
    # doorbells
    "interrupts": ":interrupts",
    "dispositions": ":dispositions",
    # indexes of a partition
    "ready": ":ready:",
    "idle": ":idle:",
    "pools": ":pools",
    "open": ":open:",
    "lists": ":lists",
    "unseen": ":unseen:",
    "timers": ":timers",
    "retention": ":retention",
    "dead": ":dead",
    "unknown": ":unknown",
    "counter": ":counter",
    # who follows what happened
    "cursors": ":cursors",
    "notes": ":notes:",
    "holders": ":holders:",
    # who may use the namespace from outside, in its first partition (patterns for workers leave out what begins with v)
    "credentials": ":vault-credentials",
    "signing": ":vault-signing",
    "revoked": ":vault-revoked",
    "rates": ":vault-rates:",
    # who is told of what happened, and signed requests from outside
    "hooks": ":vault-hooks",
    "posts": ":vault-posts:",
    "due": ":vault-due:",
    "lost": ":vault-lost:",
    "intakes": ":vault-intakes",
    "seen": ":vault-seen:",
    # what a confirmed call writes before it waits for the disk
    "touch": ":touch",
    # settings of the namespace, under a tag of its own
    "meta": ":meta",
    # what the check at connect writes and deletes
    "scratch": ":scratch:",
    # the fleet
    "workers": ":workers",
    "sweeper": ":sweeper",
    # channel (not a key) on which a settled interrupt or a closed run is announced to those who wait for it
    "settled": ":settled:",
    # channel of the sweeper that sleeps: something may have to be done by it
    "stir": ":stir",
    # channel of one worker that waits: it is told that a run has become ready
    "wake": ":wake:",
    # the offset of the clock that only the test rendering of the scripts reads
    "clock": ":clock",
}

SLOTS: Final = 16384


def crc16(data: bytes) -> int:
    """The checksum that Redis Cluster maps keys to slots with (CRC-16/XMODEM)."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
        crc &= 0xFFFF
    return crc


@lru_cache(maxsize=4096)
def partition_tag(namespace: str, index: int, count: int) -> str:
    """The hash tag of partition `index` of `count`: `{ns:i.k}` with the smallest k whose slot lies in stripe i.

    Plain numbering would put several of a few partitions on one primary and leave others empty.
    """
    low, high = index * SLOTS // count, (index + 1) * SLOTS // count
    k = 0
    while not low <= crc16(f"{namespace}:{index}.{k}".encode()) % SLOTS < high:
        k += 1
    return f"{{{namespace}:{index}.{k}}}"


def meta_key(namespace: str) -> str:
    """The key of the namespace's own settings: partition count, versions, epoch, retention."""
    return f"{{{namespace}}}{SEGMENTS['meta']}"


@dataclass(frozen=True, slots=True)
class Pool:
    """Who may run a run: a queue, an agent, and the build where it is pinned (else empty)."""

    queue: str
    agent: str
    build: str = ""

    def __str__(self) -> str:
        return f"{self.queue}:{self.agent}:{self.build}"

    @classmethod
    def parse(cls, text: str) -> "Pool":
        """The pool a name from Redis stands for. Names hold no colon, so this is unambiguous."""
        queue, agent, build = text.split(":", 2)
        return cls(queue, agent, build)

    @classmethod
    def known(cls, names: Iterable[str]) -> tuple["Pool", ...]:
        """The pools among some names from Redis; what another program wrote there is passed over."""
        return tuple(cls.parse(name) for name in names if name.count(":") == 2)  # noqa: PLR2004 - its two colons


def open_list(queue: str, kind: str, tool: str) -> str:
    """The list an interrupt stands in while it is open; `Filters.may_hold` says which lists hold what is wanted."""
    return f"{queue}:{kind}:{tool}"


@dataclass(frozen=True, slots=True)
class Partition:
    """One hash tag of a namespace, and the names of the keys in it."""

    tag: str

    def key(self, kind: str, name: object = "") -> str:
        """The name of one key: `kind` is a key of `SEGMENTS`, `name` the id it ends in."""
        return f"{self.tag}{SEGMENTS[kind]}{name}"


@lru_cache(maxsize=4096)
def _partition(namespace: str, index: int, count: int) -> Partition:
    return Partition(partition_tag(namespace, index, count))


@dataclass(frozen=True, slots=True)
class Keyspace:
    """The keys of one namespace with its number of partitions."""

    namespace: str
    count: int

    def partition(self, index: int) -> Partition:
        """Partition `index`, 0 up to `count`."""
        return _partition(self.namespace, index, self.count)

    def all(self) -> tuple[Partition, ...]:
        """Every partition, in order."""
        return tuple(self.partition(i) for i in range(self.count))

    def of_session(self, session_id: str) -> Partition:
        """The partition a session and everything in it lies in."""
        return self.partition(session_hash(session_id) % self.count)

    def of_id(self, broker_id: str) -> Partition | None:
        """The partition of a run or interrupt by its id alone; None where the id is not one of the broker's."""
        bits = bits_of(broker_id)
        return None if bits is None else self.partition(bits % self.count)
