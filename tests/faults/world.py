"""Where the listed calls are made: a broker that is faulty, one that is not, and the states a call works from."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import redis

from broker import (
    Action,
    Approve,
    AsyncBroker,
    Interrupt,
    Mode,
    Principal,
    Run,
    Settings,
    StaleLease,
    Sweeper,
    UnknownId,
)
from broker.store.keys import Partition
from tests.clock import MOVABLE, Clock

ADA: Final = Principal.local("ada")
SESSION: Final = "s"
HOUR: Final = timedelta(hours=1)
QUICK: Final = Settings(lease=timedelta(seconds=1), sweep_every=timedelta(milliseconds=100))
FIELDS: Final = ("state", "seq", "fence", "tries", "queue", "result")


@dataclass
class World:
    """The broker that is faulty, one that is not, and what was prepared."""

    faulty: AsyncBroker
    sound: AsyncBroker
    sweeper: Sweeper
    clock: Clock
    redis: redis.Redis
    run_id: str = ""
    interrupt_id: str = ""
    token: str = ""
    run: Run[Any] | None = None
    effects: list[str] = field(default_factory=list[str])
    """What tools and steps did."""

    @property
    def held(self) -> Run[Any]:
        assert self.run is not None
        return self.run

    @property
    def p(self) -> Partition:
        return self.sound._link.space.partition(0)


@asynccontextmanager
async def new_world(url: str, namespace: str, *, faulty: str = "") -> AsyncGenerator[World]:
    """A world in a new namespace; the calls that may go wrong reach the server by the URL `faulty`."""
    given: dict[str, Any] = {"namespace": namespace, "settings": QUICK, "rendering": MOVABLE}
    clock = Clock(url, namespace)
    with redis.Redis.from_url(url) as client:
        try:
            async with AsyncBroker(faulty or url, **given) as one, AsyncBroker(url, **given) as other:
                yield World(one, other, Sweeper(one, name="one"), clock, client)
        finally:
            clock.close()


Step = Callable[[World], Awaitable[Any]]


@dataclass(frozen=True)
class Call:
    """One call: the script it sends (none: it only reads), how its world is prepared, the call itself."""

    script: str
    prepare: Step
    act: Step
    answers: tuple[str, ...] = ("accepted", "replayed")
    """What it is told without a fault, and what it may be told when its first reply was lost."""


def told(result: Any) -> str:
    """What a call came to, as one word."""
    return str(getattr(result, "code", None) or getattr(result, "value", None) or result)


async def traces(w: World) -> list[Any]:
    """What is to be seen afterwards, without times and names."""
    lines = await w.sound.history(SESSION)
    events = [(one.event, one.seq, one.state) for one in lines]
    open_ones = [(one.seq, one.queue, one.interrupt.call_id) for one in (await w.sound.inbox.list()).items]
    records = [await _record(w, run) for run in sorted({one.run_id for one in lines if one.run_id})]
    ready = [len(await w.sound.runs.ready(queue)) for queue in ("agents", "slow")]
    rang = int(w.redis.xlen(w.p.key("interrupts"))) > 0  # how often is no matter
    return [events, open_ones, records, ready, rang, list((await w.sound.active(SESSION)).values())]


async def _record(w: World, run_id: str) -> list[Any]:
    try:
        run = await w.sound.runs.get(run_id)
    except UnknownId:
        return []
    return [getattr(run, name) for name in FIELDS]


async def undisturbed(call: Call, url: str, namespace: str) -> tuple[str, list[Any]]:
    """What the call comes to, and what is to be seen, when nothing goes wrong."""
    async with new_world(url, namespace) as w:
        await call.prepare(w)
        return told(await call.act(w)), [*await traces(w), w.effects]


async def repeated(call: Call, w: World) -> str:
    try:
        return told(await call.act(w))
    except StaleLease as refused:  # that lease has ended, whatever ended it
        return refused.code


# The states that calls work from -------------------------------------------------------------------------------------


def approval(n: int = 1, call: str = "call_1", **more: Any) -> Interrupt:
    return Interrupt.approval(Action(tool="refund", arguments={"n": n}), call, **more)


async def nothing(_: World) -> None:
    """An empty namespace."""


async def ready(w: World) -> None:
    w.run_id = (await w.sound.start("a", {"n": 1}, session=SESSION, key="k")).run_id


async def lease_again(w: World) -> None:
    (w.run,) = await w.faulty.queue("agents").lease(("a",))


async def leased(w: World) -> None:
    await ready(w)
    await lease_again(w)


async def asked(w: World, *interrupts: Interrupt, mode: Mode = Mode.ALL) -> None:
    paused = await w.sound.suspend("a", *(interrupts or (approval(),)), session=SESSION, key="k", mode=mode)
    w.run_id, w.interrupt_id = paused.run_id, paused.interrupt_ids[0]


async def answered(w: World) -> None:
    await asked(w)
    await w.sound.inbox.answer(w.interrupt_id, Approve(), by=ADA)


async def finished(w: World) -> None:
    await ready(w)
    (run,) = await w.sound.queue("agents").lease(("a",))
    await run.finish()


async def dead(w: World) -> None:
    await ready(w)
    (run,) = await w.sound.queue("agents").lease(("a",))
    await run.fail("Hopeless", final=True)


async def woken(w: World) -> None:
    """Leased with one answer of two, mode each."""
    await asked(w, approval(1, "a"), approval(2, "b"), mode=Mode.EACH)
    await w.sound.inbox.answer(w.interrupt_id, Approve(), by=ADA)
    await lease_again(w)
