"""Input that comes after a run was started, in this colour."""

from typing import Any

import pytest

from broker import (
    Accepted,
    Approve,
    AsyncBroker,
    Conflict,
    InvalidInput,
    Replayed,
    RunState,
    UnknownId,
    gated,
)
from tests.clock import Clock
from tests.journal.asked import call

from ._runtime import Run
from .journaling import Agent


@gated
async def pay() -> str:
    return "paid"


async def hears(run: Run[Any]) -> Any:
    """Looks at what was said before its call and after it; each look is on record."""
    before = await run.step(run.said)
    await run.calls([call("c1", "pay")], [pay])
    return [before, await run.step(run.said)]


async def test_what_is_said_while_a_run_waits_is_there_when_it_goes_on(
    timed: AsyncBroker, clock: Clock
) -> None:
    """What it has heard before stays what it has heard, however often it is entered."""
    agent = Agent(timed, clock, hears)
    await agent.start()
    assert isinstance(await timed.runs.say(agent.run_id, {"text": "wait"}), Accepted)
    assert isinstance(await timed.runs.say(agent.run_id, None, op="m-1"), Accepted)
    assert isinstance(await timed.runs.say(agent.run_id, None, op="m-1"), Replayed)
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == [[], [{"text": "wait"}, None]]
    assert isinstance(await timed.runs.say(agent.run_id, "late"), Conflict)
    assert await timed.runs.said(agent.run_id) == ({"text": "wait"}, None)


async def test_what_cannot_be_said_is_refused(timed: AsyncBroker, clock: Clock) -> None:
    agent = Agent(timed, clock, hears)
    await agent.start()
    for message in (float("nan"), object(), "x" * 2_000_000):
        with pytest.raises(InvalidInput, match="message"):
            await timed.runs.say(agent.run_id, message)
    with pytest.raises(InvalidInput, match="op"):
        await timed.runs.say(agent.run_id, "x", op="a b")
    assert await timed.runs.said(agent.run_id) == ()


async def test_nothing_is_said_to_a_run_that_is_not_there(timed: AsyncBroker) -> None:
    started = await timed.start("airline", session="s")
    other = started.run_id[:-4] + "0000"
    with pytest.raises(UnknownId):
        await timed.runs.say(other, "x")
