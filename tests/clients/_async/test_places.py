"""What the journal makes of another entry at the place of one without an id, in this colour: a mismatch, always."""

from collections.abc import Callable
from typing import Any

import pytest

from broker import Approve, AsyncBroker, JournalMismatch, RunState, gated
from tests.clock import Clock

from ._runtime import Run
from .journaling import Agent


class Effects:
    """What was done, by tools of which some have to be asked about."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.refund = gated(self.gated_tool("refund"))
        self.pay = gated(self.gated_tool("pay"))

    def gated_tool(self, name: str) -> Callable[..., Any]:
        """A function of that name."""

        async def tool(amount: int) -> str:
            return await self.work(f"{name} {amount}")

        tool.__name__ = name
        return tool

    async def work(self, what: str) -> str:
        """Notes an effect; as a tool it is not asked about."""
        self.done.append(what)
        return what


@pytest.fixture
def effects() -> Effects:
    return Effects()


def check_mismatch(agent: Agent, said: str) -> None:
    """The attempt ended with both digests, which the run is dead with."""
    assert isinstance(agent.error, JournalMismatch)
    assert agent.error.code in said
    assert agent.error.recorded in said
    assert agent.error.found in said
    assert agent.error.recorded != agent.error.found


async def test_another_tool_at_the_place_of_an_approved_call_runs_nothing(
    timed: AsyncBroker, clock: Clock, effects: Effects
) -> None:
    """A28: the approval is of another tool, and is not dropped for a new question. Off: guard `place-tool`."""
    tools = [effects.pay, effects.refund, effects.pay]

    async def handler(run: Run[Any]) -> Any:
        return await run.call(tools.pop(0), {"amount": 5})

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.WAITING
    await agent.answer("0:pay", Approve())
    assert await agent.go() is RunState.DEAD
    check_mismatch(agent, (await agent.record()).errors[-1])
    assert effects.done == []
    await timed.dead.requeue(agent.run_id)
    assert await agent.go() is RunState.FINISHED
    assert effects.done == ["pay 5"]


async def test_another_tool_at_the_place_of_a_call_that_ran_runs_nothing(
    timed: AsyncBroker, clock: Clock, effects: Effects
) -> None:
    async def other(what: str) -> str:
        return await effects.work(f"other {what}")

    tools = [effects.work, other]

    async def handler(run: Run[Any]) -> None:
        await run.call(tools.pop(0), {"what": "a"})
        agent.die()

    agent = Agent(timed, clock, handler)
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.DEAD]
    check_mismatch(agent, (await agent.record()).errors[-1])
    assert effects.done == ["a"]


@pytest.mark.parametrize("names", [["gone", "work"], ["work", "gone"]])
async def test_a_tool_at_the_place_of_a_call_that_could_not_be_made_runs_nothing(
    timed: AsyncBroker, clock: Clock, effects: Effects, names: list[str]
) -> None:
    """And the other way round: that it could not be made is recorded in its place, not beside what is there."""
    left = list(names)

    async def handler(run: Run[Any]) -> None:
        await run.calls([{"name": left.pop(0), "arguments": {"what": "a"}}], [effects.work])
        agent.die()

    agent = Agent(timed, clock, handler)
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.DEAD]
    check_mismatch(agent, (await agent.record()).errors[-1])
    assert effects.done == (["a"] if names[0] == "work" else [])


@pytest.mark.parametrize("kinds", [["step", "call"], ["call", "step"]])
async def test_a_step_at_the_place_of_a_call_is_a_mismatch(
    timed: AsyncBroker, clock: Clock, effects: Effects, kinds: list[str]
) -> None:
    """And a call at the place of a step: the kind differs. Off: guards `place-tool` and `place-kind`."""
    left = list(kinds)

    async def handler(run: Run[Any]) -> None:
        kind = left.pop(0)
        if kind == "step":
            await run.step(effects.work, kind)
        else:
            await run.call(effects.work, {"what": kind})
        agent.die()

    agent = Agent(timed, clock, handler)
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.DEAD]
    check_mismatch(agent, (await agent.record()).errors[-1])
    assert effects.done == kinds[:1]


async def test_names_that_look_like_a_place_are_none(
    timed: AsyncBroker, clock: Clock, effects: Effects
) -> None:
    """A call with the id `1:work` does not stand at place 1, whatever came there first."""

    async def handler(run: Run[Any]) -> list[Any]:
        said = [await run.call(effects.work, {"what": "named"}, call_id="1:work")]
        said.append(await run.step(effects.work, "first"))
        if run.attempt == 1:
            agent.die()
        said.append(await run.step(effects.work, "second"))
        return said

    agent = Agent(timed, clock, handler)
    await agent.start()
    assert await agent.go() is RunState.FINISHED
    assert effects.done == ["named", "first", "second"]


async def test_places_are_counted_anew_behind_a_checkpoint(
    timed: AsyncBroker, clock: Clock, effects: Effects
) -> None:
    """Another tool may stand there."""

    async def handler(run: Run[Any]) -> Any:
        if run.checkpointed is None:
            await run.call(effects.work, {"what": "before"})
            await run.checkpoint("cut")
            agent.die()
        return await run.call(effects.pay, {"amount": 5})

    agent = Agent(timed, clock, handler)
    await agent.start()
    assert await agent.go() is RunState.WAITING
    await agent.answer("1/0:pay", Approve())
    assert await agent.go() is RunState.FINISHED
    assert effects.done == ["before", "pay 5"]
