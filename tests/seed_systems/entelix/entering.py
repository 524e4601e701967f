"""A handler of a run, entered as a worker enters it; and what its run asks."""

from collections.abc import Awaitable, Callable
from typing import Any

from broker import AsyncBroker, InterruptRecord, Run, Sweeper
from broker.interop import entelix
from broker.testing import await_until

Handler = Callable[[Run[Any]], Awaitable[Any]]
PAUSED = object()
"""What `enter` gives for a run that paused."""


async def enter(broker: AsyncBroker, run_id: str, handler: Handler, *, holder: str = "worker-1") -> Any:
    """What the handler returned, with which its run is finished; `PAUSED` where it paused."""
    result = PAUSED
    async with broker.take(run_id, holder=holder) as run:
        result = await handler(run)
        await run.finish(result)
    return result


async def comes_back(broker: AsyncBroker, run_id: str) -> None:
    """Returns when the back-off of a failed run is over."""
    sweeper = Sweeper(broker)

    async def ready() -> bool:
        await sweeper.sweep(broker._link.space.partition(0))
        return run_id in await broker.runs.ready("agents")

    await await_until(ready)


async def begin(broker: AsyncBroker, handler: Handler, *, thread: str = "th_2", state: Any = None) -> str:
    """A new run of the thread that has paused in its handler; its id."""
    started = await broker.start("support", state, session=thread)
    assert await enter(broker, started.run_id, handler) is PAUSED
    return started.run_id


async def asked(broker: AsyncBroker, thread: str = "th_2") -> InterruptRecord:
    """The one thing the thread waits for."""
    (found,) = await entelix.open_interrupts(broker, thread)
    return found
