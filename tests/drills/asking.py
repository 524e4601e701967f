"""Many runs that ask, and many answers at a pace."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from broker import Accepted, Approve, AsyncBroker, Replayed, RunState, Unavailable
from broker.testing import await_until

from .ledger import takes

T = TypeVar("T")
AT_ONCE = 32


async def each(items: Iterable[T], do: Callable[[T], Awaitable[Any]], at_once: int = AT_ONCE) -> None:
    """Does it to each item, so many at a time."""
    left = iter(items)

    async def some() -> None:
        for item in left:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(some())


async def start_all(broker: AsyncBroker, agent: str, count: int) -> dict[str, int]:
    """So many runs, each in a session of its own, with its number as its input."""
    runs: dict[str, int] = {}

    async def start(n: int) -> None:
        runs[(await broker.start(agent, n, session=f"s{n}")).run_id] = n

    await each(range(count), start)
    return runs


async def open_questions(broker: AsyncBroker, count: int) -> list[str]:
    """The ids of what is open, as soon as so many are."""

    async def there() -> bool:
        return (await broker.fleet()).open >= count

    await await_until(there, 60, what=f"{count} questions are open")
    return [one async for one in _open(broker)]


async def _open(broker: AsyncBroker) -> AsyncIterator[str]:
    cursor: str | None = None
    while True:
        page = await broker.inbox.list(cursor=cursor, limit=500)
        for record in page.items:
            yield record.id
        cursor = page.cursor
        if cursor is None:
            return


async def approve(
    broker: AsyncBroker, ids: Sequence[str], per_second: float, *, backlog: int | None = None
) -> list[str]:
    """Says yes to each, so many a second and no more than so many ahead of the workers; what nobody knows of."""
    unsure: list[str] = []

    async def answer(one: str) -> None:
        try:
            outcome = await broker.inbox.answer(one, Approve())
            assert isinstance(outcome, Accepted | Replayed), outcome
        except Unavailable:
            unsure.append(one)

    async def few_wait() -> bool:
        return sum(pool.ready for pool in (await broker.fleet()).pools) <= (backlog or 0)

    async with asyncio.TaskGroup() as group:
        for one in ids:
            group.create_task(answer(one))
            await takes(1 / per_second)
            if backlog is not None:
                await await_until(few_wait, 60, what="workers keep up")
    return unsure


async def all_over(broker: AsyncBroker, runs: Iterable[str]) -> None:
    """Returns when every run has ended, or after a minute: what has not by then is lost, and counted."""
    waiting = list(runs)

    async def over() -> bool:
        while waiting:
            if (await broker.runs.get(waiting[-1])).state not in (RunState.FINISHED, RunState.DEAD):
                return False
            waiting.pop()
        return True

    with suppress(TimeoutError):
        await await_until(over, 60)


async def at(instant: float) -> None:
    """Returns at an instant of the monotonic clock, which the processes of a machine share; at once when it is over."""
    loop = asyncio.get_running_loop()
    there = loop.create_future()
    loop.call_later(max(instant - monotonic(), 0), there.set_result, None)
    await there
