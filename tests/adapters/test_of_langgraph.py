"""What only LangGraph has: pause points, batches of calls, forks, threads that are ahead, graphs called as before."""

from functools import partial
from typing import Any

import aiosqlite
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from broker import (
    Approve,
    Cancel,
    Edit,
    InvalidInput,
    Phase,
    Refused,
    Reject,
    Respond,
    RunState,
    ScheduledPause,
    Settlement,
)
from broker.adapters.langgraph import effect_key, resumable
from broker.errors import UnknownId

from .child import AGENT
from .stage import Stage, shown
from .subjects.langgraph import asks, graph_of, said, simple
from .threads import called, config

START: dict[str, Any] = {"results": []}


@pytest.mark.cannot("swallowed")
async def test_a_pause_swallowed_by_the_node_is_lost(stage: Stage) -> None:
    """`GraphInterrupt` is an `Exception`: the node that catches it goes on, and nobody is asked."""
    run_id = await stage.start()
    done = await stage.finished(run_id, "swallow")
    assert (done.state, done.result, done.interrupt_ids) == (RunState.FINISHED, [None], ())


@pytest.mark.report("RB5", "RB20")
async def test_the_calls_of_a_batch_are_questions_of_their_own(stage: Stage) -> None:
    run = await stage.paused("three", mode="batched")
    assert [shown(one.interrupt) for one in await stage.asked(run)] == [{"amount": n} for n in (1, 2, 3)]
    await stage.answer_all(run, [Approve(), Reject(reason="no"), Edit(arguments={"amount": 5})])
    done = await stage.finished(run, "three", mode="batched")
    assert done.state is RunState.FINISHED, done.errors
    assert sorted(one.given for one in stage.world.effects) == [1, 5]


async def test_a_pause_point_is_a_scheduled_pause(stage: Stage) -> None:
    run = await stage.paused("static")
    (asked,) = await stage.asked(run)
    assert asked.interrupt.kind == ScheduledPause(phase=Phase.BEFORE, node="node")
    await stage.answer_all(run, [Approve()])
    assert (await stage.finished(run, "static")).result == ["ran"]


async def test_a_pause_point_that_nobody_lets_pass_is_not_passed(stage: Stage) -> None:
    run = await stage.paused("static")
    await stage.answer_all(run, [Cancel()])
    done = await stage.finished(run, "static")
    assert (done.state, done.result) == (RunState.DEAD, None)
    assert graph_of("static", stage.world).get_state(config(stage.session)).next == ("node",)


async def test_a_question_that_nobody_answers_ends_the_run(stage: Stage) -> None:
    """Whatever `interrupt` returned might be taken for a yes."""
    run = await stage.paused("question")
    await stage.answer_all(run, [Cancel(reason="gone")])
    done = await stage.finished(run, "question")
    assert done.state is RunState.DEAD
    assert "gone" in done.errors[0]


async def test_a_graph_inside_a_graph_asks_for_itself(stage: Stage) -> None:
    run = await stage.paused("subgraph")
    await stage.answer_all(run, [Respond(payload="that")])
    assert (await stage.finished(run, "subgraph")).result == ["that"]


async def test_a_fork_asks_again_and_its_answer_is_that_of_the_same_record(stage: Stage) -> None:
    """LangGraph gives the question of a forked head another id; the record is the one that people see."""
    run = await stage.paused("question")
    graph, thread = graph_of("question", stage.world), config(stage.session)
    before = graph.get_state(thread)
    graph.invoke(None, before.config)
    assert graph.get_state(thread).interrupts[0].id != before.interrupts[0].id
    await stage.answer_all(run, [Respond(payload="that")])
    assert (await stage.finished(run, "question")).result == ["that"]


@pytest.mark.report("RB1")
async def test_an_answer_is_not_taken_for_the_next_question(stage: Stage) -> None:
    """A worker fed the answer and died: the thread is ahead, and asks the same in the next node."""
    run = await stage.paused("same_twice")
    graph, thread = graph_of("same_twice", stage.world), config(stage.session)
    graph.invoke(Command(resume={graph.get_state(thread).interrupts[0].id: "yes"}), thread)
    await stage.answer_all(run, [Respond(payload="yes")])
    stage.worker("same_twice")
    again = await stage.next_pause(run)
    assert graph.get_state(thread).values["results"] == ["yes"]
    await stage.answer_all(again, [Respond(payload="no")])
    assert (await stage.ended(run)).result == ["yes", "no"]


# Called as before ------------------------------------------------------------------------------------------------


async def test_a_graph_that_is_called_parks_by_itself(stage: Stage) -> None:
    graph = called(stage, graph_of("question", stage.world), result=said)
    returned = graph.invoke(START, config("called"))
    assert returned["__interrupt__"][0].value == "what?"
    (found,) = (await stage.broker.inbox.list()).items
    assert (found.session_id, found.interrupt.payload) == ("called", "what?")
    assert (await stage.answer(found, Respond(payload="that"))).ok
    assert (await stage.finished(found.run_id, "question")).result == ["that"]


async def test_new_input_of_a_called_graph_supersedes(stage: Stage) -> None:
    graph = called(stage, graph_of("question", stage.world), result=said)
    graph.invoke(START, config("called"))
    (old,) = (await stage.broker.inbox.list()).items
    for _ in graph.stream(START, config("called")):
        pass
    assert (await stage.broker.inbox.get(old.id)).state is Settlement.SUPERSEDED
    (new,) = (await stage.broker.inbox.list()).items
    assert new.id != old.id
    await stage.answer(new, Respond(payload="that"))
    with pytest.raises(Refused, match="goes on with its answers"):
        graph.invoke(START, config("called"))


async def test_the_async_colour(stage: Stage) -> None:
    """A checkpointer that is async: the graph is awaited, here and where it goes on."""
    async with aiosqlite.connect(stage.world.folder / "async.sqlite") as connection:
        graph = called(stage, simple(partial(asks, "what?"), AsyncSqliteSaver(connection)), result=said)
        await graph.ainvoke(START, config("called"))
        (found,) = (await stage.broker.inbox.list()).items
        await stage.answer(found, Respond(payload="that"))
        async with stage.broker.take(found.run_id) as run:
            await run.finish(await graph.resume(run))
        async for _ in graph.astream(START, config("other")):
            pass
        assert (await stage.broker.runs.get(found.run_id)).result == ["that"]
        assert [one.session_id for one in (await stage.broker.inbox.list()).items] == ["other"]


def test_what_cannot_be_kept_is_refused(stage: Stage) -> None:
    node = partial(asks, "what?")
    with pytest.raises(InvalidInput, match="checkpointer"):
        resumable(simple(node, None), AGENT)
    graph = called(stage, simple(node, InMemorySaver()))
    with pytest.raises(InvalidInput, match="names no thread"):
        graph.invoke(START)
    with pytest.raises(InvalidInput, match="inbox"):
        graph.invoke(Command(resume="yes"), config("t"))
    assert graph.get_state(config("t")).values == {}
    with pytest.raises((UnknownId, RuntimeError)):
        effect_key()
