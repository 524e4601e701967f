"""What workers, sweepers and readers of bells write, driven through them."""

import asyncio
from contextlib import aclosing
from typing import Any, Final

from broker import Action, AsyncBroker, Interrupt, OnExpiry, OnMissed, Respond, Worker
from broker._async.ready import Hands
from broker.store.keys import Pool, meta_key
from broker.testing import await_until
from tests.clock import MOVABLE
from tests.records import fields

from .world import HOUR, QUICK, Call, World, approval, asked, dead, finished, leased, nothing, ready

YEAR: Final = 365 * 24 * HOUR


async def sweep(w: World) -> str:
    assert await w.sweeper.sweep(w.p)
    return "swept"


async def due(w: World) -> None:
    await asked(w, approval(expires_in=HOUR))
    w.clock.advance(2 * HOUR)


async def silent(w: World) -> None:
    """Its job has missed a heartbeat, which rings."""
    await asked(w, Interrupt.completion(Action(tool="render", arguments={}), "call_1", heartbeat=HOUR,
                                        on_missed=OnMissed.RING))  # fmt: skip
    w.clock.advance(2 * HOUR)


async def due_for_others(w: World) -> None:
    """Its default answer is given by who may write verdicts, and the sweeper may not."""
    given = Respond(payload="go")
    await asked(w, Interrupt(expires_in=HOUR, on_expiry=OnExpiry.DEFAULT, default_answer=given))
    w.clock.advance(2 * HOUR)
    w.faulty._link.can_decide = False


async def lease_lost(w: World) -> None:
    await leased(w)
    w.clock.advance(HOUR)


async def bell_lost(w: World) -> None:
    await asked(w)
    w.redis.xgroup_create(w.p.key("interrupts"), "approvals", "0")
    w.redis.xtrim(w.p.key("interrupts"), maxlen=0)
    w.clock.advance(2 * QUICK.sweep_every)


async def ready_bell_lost(w: World) -> None:
    """Ready, without its bell, and seen so once."""
    await ready(w)
    await sweep(w)


async def kept_long_enough(w: World) -> None:
    await finished(w)
    w.clock.advance(2 * HOUR)


async def history_kept_long_enough(w: World) -> None:
    await asked(w)
    w.clock.advance(YEAR)
    await w.sound.runs.withdraw(w.run_id)


async def register(w: World) -> str:
    """A worker comes, says that it is there, and goes."""
    worker = Worker(w.faulty._link.source, namespace=w.faulty.namespace, settings=QUICK, sweeps=False)
    worker.broker._link.rendering = MOVABLE

    @worker.agent("nobody")
    async def nobody(_: Any) -> None:
        """Nobody starts it."""

    serving = asyncio.create_task(worker.serve())
    try:
        await await_until(lambda: is_there(w.sound, worker.name))
    finally:
        worker.stop()
        await serving
    return "came"


async def is_there(broker: AsyncBroker, name: str) -> bool:
    return name in {one.name for one in (await broker.fleet()).workers}


async def renew(w: World) -> str:
    async with w.faulty.take(w.run_id) as run:
        before = until(w)
        await await_until(lambda: until(w) > before)
        await run.finish()
    return "renewed"


def until(w: World) -> int:
    return int(fields(w.redis.get(w.p.key("run", w.run_id))).get("lease_until", 0))


async def hand(w: World) -> str:
    """A dispatcher hands a run to a job."""
    handed = await Hands(w.faulty._link, HOUR).take([Pool("agents", "a")], 1, "d")
    return " ".join(f"{one.offer.run == w.run_id} {one.times}" for one in handed)


async def two_asked(w: World) -> None:
    """For readers of a group that is there."""
    await asked(w, approval(1, "a"), approval(2, "b"))
    w.redis.xgroup_create(w.p.key("interrupts"), "approvals", "0")


async def follow(w: World) -> str:
    """The first is acknowledged when the second is asked for."""
    async with aclosing(w.faulty.inbox.follow("approvals", consumer="me")) as deliveries:
        found = [(await anext(deliveries)).record.interrupt.call_id for _ in range(2)]
    return " ".join(sorted(map(str, found)))


async def unmade(w: World) -> None:
    """The namespace has lost its settings."""
    w.redis.delete(meta_key(w.sound.namespace))


async def open_another(w: World) -> str:
    async with AsyncBroker(
        w.faulty._link.source, namespace=w.faulty.namespace, settings=QUICK, rendering=MOVABLE
    ) as other:
        return f"of {other._link.space.count}"


FLEETS: Final[dict[str, Call]] = {
    "sweep": Call("sweep", nothing, sweep, ("swept",)),
    "expire": Call("expire", due, sweep, ("swept",)),
    "remind": Call("expire", silent, sweep, ("swept",)),
    "leave to others": Call("sweep", due_for_others, sweep, ("swept",)),
    "reclaim": Call("reclaim", lease_lost, sweep, ("swept",)),
    "ring": Call("ring", bell_lost, sweep, ("swept",)),
    "ring ready": Call("ring_ready", ready_bell_lost, sweep, ("swept",)),
    "collect": Call("collect", kept_long_enough, sweep, ("swept",)),
    "collect history": Call("collect", history_kept_long_enough, sweep, ("swept",)),
    "keep the dead": Call("sweep", dead, sweep, ("swept",)),
    "register": Call("register", nothing, register, ("came",)),
    "hand": Call("hand", ready, hand, ("True 1",)),
    "renew": Call("renew", ready, renew, ("renewed",)),
    "seen": Call("seen", two_asked, follow, ("a b",)),
    "open": Call("check", nothing, open_another, ("of 1",)),
    "open what is new": Call("namespace", unmade, open_another, ("of 1",)),
}
