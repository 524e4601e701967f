"""Every operation of a lifecycle alone, one call after the other, through the front door."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.variants.broker_calls import AGENT, GROUP, question, session, state
from broker import Approve, AsyncBroker, Run

Around = Callable[[str, int], AbstractContextManager[object]]
"""Called with the name of an operation and how many calls are made; they are made inside of what it gives."""


async def all_operations(broker: AsyncBroker, first: int, count: int, around: Around) -> None:
    """Takes so many runs through their lives, one operation for all of them after the other."""
    numbers = range(first, first + count)
    with around("start", count):
        for number in numbers:
            await broker.start(AGENT, {"order": number}, session=session(number))
    with around("lease", count):
        runs = await _lease(broker, count)
    asked = [(question(_number(run)), state(_number(run))) for run in runs]
    ids: list[str] = []
    with around("suspend", count):
        for run, (one, frozen) in zip(runs, asked, strict=True):
            ids += (await run.suspend(one, state=frozen)).interrupt_ids
    others = await _suspend_without_lease(broker, range(first + count, first + 2 * count), around)
    with around("follow", 2 * count):
        await _follow(broker.inbox.follow(GROUP), 2 * count)
    with around("answer", count):
        for interrupt_id in ids:
            await broker.inbox.answer(interrupt_id, Approve())
    with around("lease with answers", count):
        runs = await _lease(broker, count)
    with around("finish", count):
        for run in runs:
            await run.finish({"refunded": True})
    with around("withdraw", count):
        for run_id in others:
            await broker.runs.withdraw(run_id, reason="measured")


async def _suspend_without_lease(broker: AsyncBroker, numbers: Sequence[int], around: Around) -> list[str]:
    asked = [(number, question(number), state(number)) for number in numbers]
    found: list[str] = []
    with around("suspend (no lease)", len(numbers)):
        for number, one, frozen in asked:
            outcome = await broker.suspend(AGENT, one, session=session(number), state=frozen)
            found += [outcome.run_id] if outcome.run_id else []
    return found


async def _lease(broker: AsyncBroker, count: int) -> list[Run[Any]]:
    queue = broker.queue("agents")
    found: list[Run[Any]] = []
    for _ in range(count):
        found += await queue.lease((AGENT,))
    if len(found) != count:
        raise RuntimeError(f"{len(found)} of {count} runs were leased")
    return found


async def _follow(deliveries: AsyncIterator[Any], count: int) -> None:
    """Reads so many deliveries; the last is acknowledged by asking for one more, which is not waited for."""
    seen = 0
    async for _ in deliveries:
        seen += 1
        if seen == count:
            break
    close: Callable[[], Awaitable[None]] = deliveries.aclose  # type: ignore[attr-defined]
    await close()


def _number(run: Run[Any]) -> int:
    return int(run.session_id.removeprefix("session-"))
