"""A worker and an approver at work on a server, and what is to be seen of them there."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import redis

from broker import Approve, AsyncBroker, RunState, Settings, Worker
from tests.worker.fleet import run_when

from .world import ADA, QUICK, approval


async def asks(run: Any) -> str | None:
    if run.seq == 0:
        await run.suspend(approval(run.input))
        return None
    return str(run.resolutions[0].kind)


async def approve(broker: AsyncBroker) -> None:
    async with aclosing(broker.inbox.follow("approvals")) as deliveries:
        async for delivery in deliveries:
            await broker.inbox.answer(delivery.record.id, Approve())


@asynccontextmanager
async def working(url: str, *, settings: Settings = QUICK, **options: Any) -> AsyncGenerator[AsyncBroker]:
    """A broker, and a worker and an approver behind it, who must outlive the block."""
    worker = Worker(url, settings=settings, **options)
    worker.add("asks", asks)
    serving = asyncio.create_task(worker.serve())
    async with AsyncBroker(url, settings=settings, by=ADA) as broker:
        approving = asyncio.create_task(approve(broker))
        yield broker
        assert not approving.done()
        approving.cancel()
        await asyncio.gather(approving, return_exceptions=True)
    assert not serving.done()
    worker.stop()
    await serving


async def goes_through(broker: AsyncBroker, n: int, session: str = "") -> None:
    """One run is asked for, asks, is answered and ends."""
    started = await broker.start("asks", n, session=session or f"s{n}")
    run = await run_when(broker, started.run_id, RunState.FINISHED)
    assert (run.result, run.errors) == ("approve", ())


def both_readers(client: redis.Redis) -> list[int]:
    """The connections of the two that wait for bells, when both do."""
    everybody = client.client_list()
    follower = [int(one["id"]) for one in everybody if "b" in one["flags"]]
    worker = [
        int(one["id"]) for one in everybody if int(one["sub"]) > 1
    ]  # its own channel, and that of its queue
    return follower + worker if (len(follower), len(worker)) == (1, 1) else []


def calls(client: redis.Redis) -> dict[str, int]:
    """How often each command was called."""
    found = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): int(row["calls"]) for name, row in found.items()}
