"""What only Pydantic AI has: agents that tools run, jobs that fail, kinds of results, runs without a worker."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext, UnexpectedModelBehavior, UserError

from broker import (
    Accepted,
    Approve,
    AsyncBroker,
    BuildMismatch,
    Corrupt,
    Fail,
    InvalidInput,
    Reject,
    RunState,
)
from broker.adapters import Finished
from broker.adapters.pydantic_ai import InlineWait, effect_key, resumable
from broker.adapters.pydantic_ai.results import results

from .stage import ME, Stage
from .subjects.pydantic_ai import OUTPUT, PAY, agent_of, model_of
from .world import World

TEN = {"amount": 10}
PROMPT = '{"amount": 1}'


@pytest.mark.cannot("nested")
async def test_deferred_calls_of_an_agent_in_a_tool_do_not_reach_the_outer_run(stage: Stage) -> None:
    """The run in a tool ends with its requests, or fails where it may not have any; the outer one is not asked."""
    inner = agent_of("pay", stage.world)
    with pytest.raises(UserError, match="DeferredToolRequests"):
        await inner.run(PROMPT)
    told = await inner.run(PROMPT, output_type=[str, DeferredToolRequests])
    assert isinstance(told.output, DeferredToolRequests)
    assert stage.world.effects == []


async def test_a_job_that_failed_is_told_to_the_model(stage: Stage) -> None:
    run = await stage.paused("external", TEN)
    await stage.answer_all(run, [Fail(error="out of paper")])
    done = await stage.finished(run, "external")
    assert done.state is RunState.FINISHED, done.errors
    assert "out of paper" in done.result[0]


async def test_a_run_without_a_worker_stays_for_its_answer(broker: AsyncBroker, world: World) -> None:
    support = resumable(agent_of("pay", world))
    told = await support.run(broker, TEN, session="s1", key="k")
    assert isinstance(told, Accepted)
    staying = asyncio.create_task(support.run(broker, TEN, session="s1", key="k", wait=30))
    assert (await broker.inbox.answer(told.interrupt_ids[0], Approve(), by=ME)).ok
    assert await staying == Finished(["paid 10"])
    assert [one.given for one in world.effects] == [10]


async def test_answers_that_are_not_for_what_it_waits_for_are_refused() -> None:
    """Kinds and ids are checked before the framework sees them."""
    agent: Agent[Any, Any] = Agent(model_of([PAY]), name="payer")
    agent.tool_plain(lambda amount: amount, name="pay", requires_approval=True)
    told = await agent.run(PROMPT, output_type=[str, DeferredToolRequests])
    with pytest.raises(Corrupt, match="not those that were asked about"):
        results(told.output, ())


@pytest.mark.report("RB33")
async def test_calls_of_one_id_are_not_published(broker: AsyncBroker, world: World) -> None:
    """One approval would bind both: a release that does not refuse them itself is refused when it parks (RB33)."""
    agent: Agent[Any, Any] = Agent(model_of([PAY, PAY]), name="payer")
    agent.tool_plain(lambda amount: amount, name="pay", requires_approval=True)
    with pytest.raises((InvalidInput, UnexpectedModelBehavior), match=r"one agent and id|unique"):
        await resumable(agent).run(broker, TEN, session="s1", key="k")
    assert (await broker.inbox.list()).items == ()
    assert world.effects == []


async def test_a_rejection_reaches_the_model_with_who_and_why(stage: Stage) -> None:
    run = await stage.paused("three")
    await stage.answer_all(run, [Approve(), Reject(reason="not eve"), Approve()])
    done = await stage.finished(run, "three")
    assert sorted(one.given for one in stage.world.effects) == [1, 3]
    assert any("not eve" in str(one) and ME.id in str(one) for one in done.result)


@pytest.mark.report("RB34")
async def test_agents_in_one_another_with_one_call_id_have_keys_of_their_own(stage: Stage) -> None:
    """A specialist acts before its coordinator is asked: both under keys that are the same at every attempt (RB34)."""
    keys: list[str] = []
    inner: Agent[Any, Any] = Agent(model_of([("act", {}, "c1")]), name="specialist", output_type=OUTPUT)
    outer: Agent[Any, Any] = Agent(
        model_of([("delegate", {}, "c1")], [PAY]), name="payer", output_type=OUTPUT
    )

    @inner.tool
    def act(ctx: RunContext[Any]) -> str:
        keys.append(effect_key(ctx))
        return "acted"

    @outer.tool
    async def delegate(ctx: RunContext[Any]) -> str:
        keys.append(effect_key(ctx))
        await inner.run(PROMPT, capabilities=[InlineWait(60)])
        return "delegated"

    @outer.tool(requires_approval=True)
    def pay(ctx: RunContext[Any], amount: int) -> str:
        keys.append(effect_key(ctx))
        return f"paid {amount}"

    support, broker = resumable(outer), stage.broker
    run_id = await stage.start({"amount": 1})
    async with broker.take(run_id) as run:
        await support(run)
    assert len(keys) == len(set(keys)) == 2
    assert all(run_id in one for one in keys)
    (asked,) = await stage.asked(run_id)
    assert (await stage.answer(asked, Approve())).ok
    async with broker.take(run_id) as run:
        assert await support(run) == ["delegated", "paid 1"]
        await run.finish()
    assert len(keys) == len(set(keys)) == 3


@pytest.mark.report("RB28")
async def test_a_worker_that_accepts_the_old_build_goes_on_with_its_pauses(
    broker: AsyncBroker, world: World
) -> None:
    """Tools may come with a release: it says which older ones it can go on from (RB28)."""
    old = resumable(agent_of("pay", world))
    told = await old.run(broker, TEN, session="s1", key="k")
    assert isinstance(told, Accepted)
    assert (await broker.inbox.answer(told.interrupt_ids[0], Approve(), by=ME)).ok
    more = agent_of("pay", World(world.folder, {"changed": True}))
    async with broker.take(told.run_id) as run:
        with pytest.raises(BuildMismatch):
            await resumable(more)(run)
        new = resumable(more, accepts=[old.described.build])
        assert old.described.build in new.builds
        assert await new(run) == ["paid 10"]
        await run.finish()
    assert [one.given for one in world.effects] == [10]
