"""Processes that are killed halfway: forked from one that has imported everything, since there is one for each call."""

import asyncio
import multiprocessing
from datetime import timedelta
from multiprocessing.process import BaseProcess
from typing import Any, Final

from broker import Approve, AsyncBroker, Principal
from broker.worker.sweeper import Sweeper
from tests.clock import MOVABLE
from tests.drills.crew import SETTINGS

CLAIM_AFTER: Final = timedelta(milliseconds=100)
ADA: Final = Principal.local("ada")


def forked(target: Any, *args: Any) -> BaseProcess:
    """A process that does this."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", __name__])
    process = context.Process(target=target, args=args, daemon=True)
    process.start()
    return process


def answers(url: str, namespace: str, count: int) -> None:
    """Answers so many of the group's interrupts; all but the last are acknowledged."""

    async def main() -> None:
        async with AsyncBroker(url, namespace=namespace, settings=SETTINGS, by=ADA) as broker:
            await approve(broker, count)

    asyncio.run(main())


async def approve(broker: AsyncBroker, count: int) -> None:
    left = count
    async for delivery in broker.inbox.follow("approvals", claim_after=CLAIM_AFTER, batch=1):
        await broker.inbox.answer(delivery.record.id, Approve(), seen=delivery.record.digest)
        left -= 1
        if not left:
            return


def sweeps(url: str, namespace: str) -> None:
    """Sweeps twice, by a clock that the test can move: what nobody took in between is rung for."""

    async def main() -> None:
        async with AsyncBroker(url, namespace=namespace, settings=SETTINGS, rendering=MOVABLE) as broker:
            sweeper, p = Sweeper(broker), broker._link.space.partition(0)
            assert await sweeper.sweep(p)
            assert await sweeper.sweep(p)

    asyncio.run(main())
