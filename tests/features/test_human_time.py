"""F26: the time that people take is charged to nobody. One test for each thing that has a limit."""

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from broker import Approve, AsyncBroker, Run, RunState, gated
from broker.testing import await_until
from tests.clients._async.journaling import Agent, talking
from tests.clock import Clock
from tests.journal.asked import call
from tests.worker.fleet import QUICK

Sweep = Callable[[], Awaitable[object]]
WEEK = timedelta(days=7)


@pytest.mark.report("RA31")
async def test_F26_a_run_of_many_long_waits_uses_up_nothing(
    broker: AsyncBroker, clock: Clock, sweep: Sweep
) -> None:
    """No lease is lost, no try is used, no window of a repeat or of retention ends while somebody thinks.

    Off: `unlease` of suspend.lua, `tries` that a pause does not set back, or the guard `suspend-in-time` for a run
    that is there.
    """
    paid: list[int] = []

    @gated(expires_in=None)
    async def pay(amount: int) -> int:
        paid.append(amount)
        return amount

    async def handler(run: Run[Any]) -> list[int]:
        return [await run.call(pay, {"amount": n}, call_id=f"c{n}") for n in range(2 * QUICK.tries)]

    agent = Agent(broker, clock, handler)
    state = await agent.start()
    for n in range(2 * QUICK.tries):
        assert state is RunState.WAITING
        assert (await agent.record()).lease_until is None
        clock.advance(WEEK)
        await sweep()
        assert await agent.answer(f"c{n}", Approve()) == "accepted"
        state = await agent.go()
    run = await agent.record()
    assert (run.state, run.errors, run.fence) == (RunState.FINISHED, (), 2 * QUICK.tries + 1)
    assert paid == run.result == list(range(2 * QUICK.tries))
    assert "lease_lost" not in {one.event for one in await broker.history("s")}


@pytest.mark.report("RA31")
async def test_F26_the_time_of_a_tool_begins_when_it_runs(broker: AsyncBroker, clock: Clock) -> None:
    """Off: a time-out that counts from the question on (as its `expires_in` in questions.py)."""
    limit = timedelta(seconds=1)

    @gated(timeout=limit, expires_in=None)
    async def pay() -> str:
        return "paid"

    agent = Agent(broker, clock, talking([call("c1", "pay")], tools=[pay]))
    assert await agent.start() is RunState.WAITING
    asked = time.monotonic()
    await await_until(lambda: time.monotonic() > asked + limit.total_seconds())
    assert await agent.answer("c1", Approve()) == "accepted"
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["paid"]
