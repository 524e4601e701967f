"""What a namespace holds at a moment, for operators."""

from datetime import timedelta
from typing import ClassVar, Self

from pydantic import Field, StrictBool, StrictInt

from .fields import Instant, JsonObject, Name, from_ms
from .shape import Model


class WorkerInfo(Model):
    """One worker process as it last described itself. `alive`: it did so within two leases.

    `builds`: by agent, those it takes besides `build`.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("name", "host", "pid", "queue", "agents", "build", "holding", "alive")
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"alive"})

    name: str
    host: str = ""
    pid: StrictInt = 0
    queue: str = ""
    agents: tuple[str, ...] = ()
    build: str | None = None
    builds: JsonObject = Field(default_factory=dict)
    concurrency: StrictInt = 0
    holding: StrictInt = 0
    sweeps: StrictBool = False
    seen_at: Instant | None = None
    alive: StrictBool = False

    @classmethod
    def read(cls, name: str, at: int, record: bytes, now: int, stale: timedelta) -> Self:
        """The worker behind its registration; times in microseconds of the server's clock."""
        told = cls.from_bytes(record, key=f"workers[{name}]")
        alive = now - at < stale.total_seconds() * 1_000_000
        return told.model_copy(update={"name": name, "seen_at": from_ms(at // 1000), "alive": alive})


class PoolCount(Model):
    """How many runs of one pool are ready, and since when the one that is next has been: how far workers are behind."""

    SHOWN: ClassVar[tuple[str, ...]] = ("queue", "agent", "build", "ready", "since")
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"ready"})

    queue: Name
    agent: Name
    build: Name | None = None
    ready: StrictInt = 0
    since: Instant | None = None

    def plus(self, other: Self) -> Self:
        """Those of another partition with these."""
        since = min((at for at in (self.since, other.since) if at is not None), default=None)
        return self.model_copy(update={"ready": self.ready + other.ready, "since": since})


class Fleet(Model):
    """What a namespace holds: open interrupts, ready and dead runs, workers.

    `oldest` is when the open interrupt that has waited longest was asked.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("namespace", "open", "oldest", "dead", "pools", "workers")
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"open", "dead", "pools", "workers"})

    namespace: Name
    open: StrictInt = 0
    oldest: Instant | None = None
    dead: StrictInt = 0
    pools: tuple[PoolCount, ...] = ()
    workers: tuple[WorkerInfo, ...] = ()
