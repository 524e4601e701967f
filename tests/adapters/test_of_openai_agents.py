"""What only the OpenAI Agents SDK has: approvals for good, contexts, agents of one name, runs without a worker."""

import asyncio

import pytest
from agents import Agent, UserError

from broker import Accepted, Approve, AsyncBroker, InvalidInput, Replayed, RunState
from broker.adapters import Finished
from broker.adapters.openai_agents import ALWAYS, brokered, resumable
from broker.testing import await_until

from .stage import ME, Stage
from .subjects.openai_agents import Stub, agent_of, payer
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


def test_what_is_no_function_tool_is_refused() -> None:
    with pytest.raises(InvalidInput, match="tool"):
        brokered(object())
