"""What only the OpenAI Agents SDK has: approvals for good, contexts, nested agents, streams, runs without a worker."""

import asyncio
from typing import Any

import pytest
from agents import Agent, UserError, function_tool
from agents.tool_context import ToolContext

from broker import Accepted, Approve, AsyncBroker, BuildMismatch, Edit, InvalidInput, Replayed, RunState
from broker.adapters import Finished, current_run
from broker.adapters.openai_agents import ALWAYS, brokered, resumable
from broker.testing import await_until

from .stage import ME, Stage
from .subjects.openai_agents import Stub, agent_of, ask, payer
from .world import World

TEN = {"amount": 10}


async def test_an_approval_for_good_asks_no_more_and_is_on_record(stage: Stage) -> None:
    """`always_approve` is in the metadata of the answer: the second call of the tool runs unasked."""
    run = await stage.paused("in_a_row", TEN)
    (asked,) = await stage.asked(run)
    await stage.answer_all(run, [Approve(metadata={ALWAYS: True})])
    done = await stage.finished(run, "in_a_row")
    assert (done.result, done.seq) == (["paid 10", "paid 10"], 1), done.errors
    ended = (await stage.broker.inbox.get(asked.id)).resolution
    assert ended is not None
    assert ended.answer == Approve(metadata={ALWAYS: True})
    assert len({one.key for one in stage.world.effects}) == 2


async def test_a_run_without_a_worker_parks_and_stays_for_its_answer(
    broker: AsyncBroker, world: World
) -> None:
    support = resumable(agent_of("in_a_row", brokered(payer(world))))

    told = await support.run(broker, TEN, session="s1", key="k")
    again = await support.run(broker, TEN, session="s1", key="k")
    assert (type(told), type(again)) == (Accepted, Replayed)
    assert isinstance(told, Accepted)
    assert isinstance(again, Replayed)
    assert told.interrupt_ids == again.interrupt_ids
    assert isinstance(await support.run(broker, TEN, session="s1", key="k", wait=0.1), Replayed)
    (asked,) = told.interrupt_ids
    assert (await broker.inbox.answer(asked, Approve(), by=ME)).ok
    staying = asyncio.create_task(support.run(broker, TEN, session="s1", key="k", wait=30))
    first = await broker.runs.get(told.run_id)

    async def again_paused() -> bool:
        return (await broker.runs.get(told.run_id)).seq > first.seq

    await await_until(again_paused, 30, what="it has paused again")
    (asked,) = (await broker.runs.get(told.run_id)).interrupt_ids
    assert (await broker.inbox.answer(asked, Approve(), by=ME)).ok
    assert await staying == Finished(["paid 10", "paid 10"])
    assert (await broker.runs.get(told.run_id)).state is RunState.FINISHED
    assert [one.given for one in world.effects] == [10, 10]


async def test_two_agents_of_one_name_with_one_id_are_not_published(
    broker: AsyncBroker, world: World
) -> None:
    """The SDK cannot tell which of them an approval is for, so nobody is asked."""
    pay = brokered(payer(world))
    inner = Agent(name="inner", tools=[pay], model=Stub([("pay", {"amount": 1}, "i1")]))
    tools = [inner.as_tool("ask1", "asks"), inner.as_tool("ask2", "asks")]
    turns = [("ask1", {"input": "x"}, "o1"), ("ask2", {"input": "y"}, "o2")]
    support = resumable(Agent(name="payer", tools=tools, model=Stub(turns)))
    with pytest.raises((InvalidInput, UserError)):
        await support.run(broker, "go", session="s1", key="k")
    assert (await broker.inbox.list()).items == ()


async def test_a_context_is_read_back_or_the_pause_is_refused(broker: AsyncBroker, world: World) -> None:
    """Without a serializer the SDK would go on with an empty context: strict, it refuses to write one."""

    class Context:
        tenant = "t1"

    agent = agent_of("pay", brokered(payer(world)))
    strict = resumable(agent, context=lambda _: Context())
    with pytest.raises(UserError, match="strict_context"):
        await strict.run(broker, TEN, session="s1", key="k")
    kept = resumable(
        agent, context=lambda _: Context(),
        context_serializer=lambda one: {"tenant": one.tenant}, context_deserializer=lambda _: Context(),
    )  # fmt: skip
    assert isinstance(await kept.run(broker, TEN, session="s1", key="k"), Accepted)


@pytest.mark.report("RB23")
async def test_a_context_is_there_again_when_the_run_goes_on(broker: AsyncBroker) -> None:
    """An approval counts, and the tool has its context, for whoever goes on with the run (RB23)."""
    tenants: list[Any] = []

    @brokered
    @function_tool
    def pay(ctx: ToolContext[Any], amount: int) -> str:
        tenants.append(ctx.context)
        return f"paid {amount}"

    def support() -> Any:
        return resumable(agent_of("pay", pay), context=lambda given: {"tenant": f"t{given['amount']}"})

    told = await support().run(broker, TEN, session="s1", key="k")
    assert isinstance(told, Accepted)
    assert (await broker.inbox.answer(told.interrupt_ids[0], Approve(), by=ME)).ok
    async with broker.take(told.run_id) as run:
        assert await support()(run) == ["paid 10"]
        await run.finish()
    assert tenants == [{"tenant": "t10"}]


@pytest.mark.report("RB26", "RB34")
async def test_nested_agents_with_one_call_id_have_keys_of_their_own(stage: Stage) -> None:
    """Two agents in one, each with a call `i1`: both approved, two keys, at this attempt and the next (RB26, RB34)."""
    run = await stage.paused("nested")
    await stage.answer_all(run, [Approve(), Approve()])
    stage.world.hold()
    victim = stage.worker("nested")
    await stage.has_effects(2)
    victim.kill()
    stage.world.let_go()
    done = await stage.finished(run, "nested")
    assert done.state is RunState.FINISHED, done.errors
    found = {(one.given, one.key) for one in stage.world.effects}
    assert len(stage.world.effects) == 4
    assert len(found) == len({key for _, key in found}) == 2


@pytest.mark.report("RB28")
async def test_a_worker_that_accepts_the_old_build_goes_on_with_its_pauses(
    broker: AsyncBroker, world: World
) -> None:
    """Tools may come with a release: it says which older ones it can go on from (RB28)."""
    old = resumable(agent_of("pay", brokered(payer(world))))
    told = await old.run(broker, TEN, session="s1", key="k")
    assert isinstance(told, Accepted)
    assert (await broker.inbox.answer(told.interrupt_ids[0], Approve(), by=ME)).ok
    more = agent_of("pay", brokered(payer(world)), ask)
    async with broker.take(told.run_id) as run:
        with pytest.raises(BuildMismatch):
            await resumable(more)(run)
        new = resumable(more, accepts=[old.described.build])
        assert old.described.build in new.builds
        assert await new(run) == ["paid 10"]
        await run.finish()
    assert [one.given for one in world.effects] == [10]


# Streams ---------------------------------------------------------------------------------------------------------


async def test_a_listener_is_told_as_the_run_goes_and_its_pause_comes_after(stage: Stage) -> None:
    """The stream is drained before the run parks; what comes after the answers is streamed too."""
    told: list[tuple[int, Any]] = []

    async def listen(event: Any) -> None:
        assert current_run().is_held
        told.append((current_run().seq, event))

    support = resumable(agent_of("pay", brokered(payer(stage.world))), on_event=listen)
    run_id = await stage.start(TEN)
    async with stage.broker.take(run_id) as run:
        await support(run)
    kinds = [event.type for _, event in told]
    assert "raw_response_event" in kinds
    assert any(getattr(event, "name", "") == "tool_called" for _, event in told)
    await stage.answer_all(run_id, [Edit(arguments={"amount": 3})])
    async with stage.broker.take(run_id) as run:
        assert await support(run) == ["paid 3"]
        await run.finish()
    assert any(seq == 1 and getattr(event, "name", "") == "tool_output" for seq, event in told)
    assert {seq for seq, _ in told} == {0, 1}
    assert [one.given for one in stage.world.effects] == [3]


async def test_the_caller_of_a_run_without_a_worker_hears_it(broker: AsyncBroker, world: World) -> None:
    """Its listener stands in the place of the agent's; without one nothing is streamed."""
    agents: list[Any] = []
    callers: list[Any] = []
    support = resumable(agent_of("pay", brokered(payer(world))), on_event=agents.append)
    told = await support.run(broker, TEN, session="s1", key="k", on_event=callers.append)
    assert isinstance(told, Accepted)
    before = len(callers)
    assert before > 0
    assert (await broker.inbox.answer(told.interrupt_ids[0], Approve(), by=ME)).ok
    done = await support.run(broker, TEN, session="s1", key="k", wait=60, on_event=callers.append)
    assert done == Finished(["paid 10"])
    assert any(getattr(one, "name", "") == "tool_output" for one in callers[before:])
    assert agents == []


async def test_what_a_listener_raises_ends_the_attempt(broker: AsyncBroker, world: World) -> None:
    def broken(_: Any) -> None:
        raise LookupError("the client has gone")

    support = resumable(agent_of("pay", brokered(payer(world))))
    with pytest.raises(LookupError, match="gone"):
        await support.run(broker, TEN, session="s1", key="k", on_event=broken)
    assert (await broker.inbox.list()).items == ()


def test_what_is_no_function_tool_is_refused() -> None:
    with pytest.raises(InvalidInput, match="tool"):
        brokered(object())
