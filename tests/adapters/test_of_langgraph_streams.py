"""Whoever streams a graph is given what it streams without the broker, and what it asks is asked whatever they do."""

import json
import re
import sqlite3
from functools import partial
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from broker import Corrupt, InvalidInput, Refused, Respond, RunState, Settlement
from broker.adapters.langgraph.graph import UNPARKED
from broker.testing import await_until

from .stage import Stage
from .subjects.langgraph import Forgetful, State, asks, said, simple
from .threads import called, config, go_on, payloads, waiting

BEGIN: dict[str, Any] = {"results": []}
HERE = config("here")
MODES: list[Any] = [
    None, "values", "updates", "messages", "custom", "tasks", "checkpoints", "debug", ["updates", "custom"]
]  # fmt: skip
NAMES = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|\d{4}-\d\d-\d\dT[\d:.]+\+00:00|0x[0-9a-f]+|0\.\d{5,}"
)
"""What differs from one thread to the next: ids, times, addresses, random versions."""


def talks(_: Any) -> dict[str, Any]:
    """Says something of its own, and has a model say something."""
    get_stream_writer()({"so far": 1})
    answer = GenericFakeChatModel(messages=iter([AIMessage("two words")])).invoke("go")
    return {"results": [answer.text]}


def talking() -> Any:
    """A graph that talks, and has a graph inside that talks and asks."""
    graph = StateGraph(State)
    graph.add_node("first", talks)
    graph.add_node("inner", simple(lambda state: {"results": [talks(state), interrupt("and?")]}, None))
    graph.add_edge(START, "first")
    graph.add_edge("first", "inner")
    return graph.compile(checkpointer=InMemorySaver())


def alike(chunks: list[Any]) -> list[str]:
    """The chunks without what is another in each thread."""
    return [NAMES.sub("#", json.dumps(one, default=repr, sort_keys=True)) for one in chunks]


@pytest.mark.parametrize("subgraphs", [False, True])
@pytest.mark.parametrize("mode", MODES, ids=str)
async def test_the_chunks_are_those_of_the_graph(mode: Any, subgraphs: bool, stage: Stage) -> None:  # noqa: FBT001
    options = {"stream_mode": mode, "subgraphs": subgraphs, "durability": "sync"}
    alone = list(talking().stream(BEGIN, HERE, **options))
    graph = called(stage, talking(), result=said)
    found = list(graph.stream(BEGIN, HERE, **options))
    assert alike(found) == alike(alone)
    assert found
    assert await payloads(stage) == ["and?"]
    again = [one async for one in graph.astream(BEGIN, config("there"), **options)]
    assert len(again) == len(found)


async def test_the_events_are_those_of_the_graph(stage: Stage) -> None:
    alone = [one["event"] async for one in talking().astream_events(BEGIN, HERE, durability="sync")]
    graph = called(stage, talking())
    assert [one["event"] async for one in graph.astream_events(BEGIN, HERE)] == alone
    assert await payloads(stage) == ["and?"]


async def test_another_version_of_events_is_refused(stage: Stage) -> None:
    graph = called(stage, talking())
    with pytest.raises(InvalidInput, match="v1 or v2"):
        graph.astream_events(BEGIN, HERE, version="v3")
    assert graph.get_state(HERE).values == {}


async def test_what_invoke_returns_in_either_form_is_parked(stage: Stage) -> None:
    """Version 2 returns the questions beside the values."""
    graph = called(stage, talking())
    returned = graph.invoke(BEGIN, HERE, version="v2")
    assert [one.value for one in returned.interrupts] == await payloads(stage)


@pytest.mark.report("RB14")
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_question_that_the_state_lacks_is_not_taken_for_a_pause_point(
    version: str, stage: Stage
) -> None:
    """RB14: the graph has told its caller of a question, and its checkpointer has it not."""
    saver = Forgetful(sqlite3.connect(":memory:", check_same_thread=False))
    graph = called(stage, simple(partial(asks, "what?"), saver, interrupt_after=["node"]))
    with pytest.raises(Corrupt, match="does not give the pause back"):
        graph.invoke(BEGIN, HERE, version=version)
    assert (await stage.broker.inbox.list()).items == ()


async def test_a_stream_that_is_left_at_its_question_parks(stage: Stage) -> None:
    graph = called(stage, simple(partial(asks, "what?"), InMemorySaver()), result=said)
    for chunk in graph.stream(BEGIN, HERE):
        assert "__interrupt__" in chunk
        break
    assert await payloads(stage) == ["what?"]
    assert (await go_on(stage, graph, Respond(payload="that"))).result == ["that"]


async def test_an_async_stream_that_is_left_at_its_question_parks(stage: Stage) -> None:
    graph = called(stage, simple(partial(asks, "what?"), InMemorySaver()))
    async for chunk in graph.astream(BEGIN, HERE):
        assert "__interrupt__" in chunk
        break

    async def asked() -> bool:
        return bool((await stage.broker.inbox.list()).items)

    await await_until(asked, 30, what="the loop has closed the stream")
    assert await payloads(stage) == ["what?"]


async def test_a_stream_that_is_left_before_it_asks_leaves_nothing_to_answer(stage: Stage) -> None:
    graph = called(stage, talking())
    stream = graph.astream(BEGIN, HERE, stream_mode="custom")
    assert await anext(stream) == {"so far": 1}
    await stream.aclose()
    assert (await stage.broker.inbox.list()).items == ()


def test_no_method_runs_the_graph_and_leaves_its_question_behind(stage: Stage) -> None:
    """Whatever a graph inherits that takes an input either parks or is not there."""
    graph = called(stage, talking())
    for name in UNPARKED:
        assert hasattr(graph.graph, name)
        with pytest.raises(AttributeError, match="without parking"):
            getattr(graph, name)
    inherited = {
        name for name in dir(Runnable) if not name.startswith("_") and callable(getattr(Runnable, name))
    }
    reads = {name for name in inherited if name.startswith(("get_", "config_"))}
    assert inherited - reads - UNPARKED == {
        "invoke", "ainvoke", "stream", "astream", "astream_events", "with_config",
    }  # fmt: skip


async def test_a_bound_configuration_is_kept_and_parks(stage: Stage) -> None:
    seen = []

    def node(_: Any, config: RunnableConfig) -> dict[str, Any]:
        seen.append(config["configurable"]["who"])
        return asks("what?", None)

    graph = called(stage, simple(node, InMemorySaver()), result=said)
    bound = graph.with_config({"configurable": {"who": "ada"}})
    bound.invoke(BEGIN, HERE)
    assert (await go_on(stage, bound, Respond(payload="that"))).result == ["that"]
    assert seen == ["ada", "ada"]


# Threads that wait -----------------------------------------------------------------------------------------------


async def test_a_thread_that_waits_and_that_nobody_has_is_parked_later(stage: Stage) -> None:
    """Its caller died between the pause and its parking; afterwards nothing happens, nor with a worker's run."""
    graph = called(stage, simple(partial(asks, "what?"), InMemorySaver()), result=said)
    assert graph.park(HERE) is False  # there is no such thread
    graph.graph.invoke(BEGIN, HERE)
    assert (await stage.broker.inbox.list()).items == ()
    assert graph.park(HERE) is True
    assert await graph.apark(HERE) is False
    assert await payloads(stage) == ["what?"]
    assert (await go_on(stage, graph, Respond(payload="that"))).result == ["that"]
    assert graph.park(HERE) is False


async def test_a_question_that_was_withdrawn_is_asked_anew_by_parking(stage: Stage) -> None:
    graph = called(stage, simple(partial(asks, "what?"), InMemorySaver()), result=said)
    graph.invoke(BEGIN, HERE)
    first = await waiting(stage)
    await stage.broker.runs.withdraw(first.id, seq=first.seq, reason="a mistake")
    assert graph.park(HERE) is True
    assert (await waiting(stage)).id != first.id
    assert (await go_on(stage, graph, Respond(payload="that"))).result == ["that"]


async def test_a_thread_that_stopped_in_a_node_goes_on_with_nothing(stage: Stage) -> None:
    """Its caller died before it asked: there is nothing to park, and the node is run again."""
    faults = [OSError("gone")]

    def node(_: Any) -> dict[str, Any]:
        if faults:
            raise faults.pop()
        return asks("what?", None)

    graph = called(stage, simple(node, InMemorySaver()), result=said)
    with pytest.raises(OSError, match="gone"):
        graph.invoke(BEGIN, HERE)
    with pytest.raises(Corrupt):
        graph.park(HERE)
    assert (await stage.broker.inbox.list()).items == ()
    graph.invoke(None, HERE)
    assert (await go_on(stage, graph, Respond(payload="that"))).result == ["that"]


async def test_parking_leaves_a_workers_run_alone(stage: Stage) -> None:
    """A worker that is at a thread parks it itself, also while its run is not yet stored as paused."""
    graph = called(stage, simple(partial(asks, "what?"), InMemorySaver()), result=said)
    run_id = await stage.start(BEGIN, session="here")
    async with stage.broker.take(run_id) as run:
        suspend = run.suspend

        async def late(*given: Any, **options: Any) -> Any:
            assert await graph.apark(HERE) is False
            return await suspend(*given, **options)

        run.suspend = late  # type: ignore[method-assign]
        await graph.resume(run)
    assert (await waiting(stage)).id == run_id
    assert graph.park(HERE) is False


@pytest.mark.report("RB1")
async def test_going_on_with_nothing_asks_again(stage: Stage) -> None:
    """RB1: `invoke(None)` on a thread that waits supersedes and asks anew; no answer of before is taken for it."""
    graph = called(stage, simple(asks_both, InMemorySaver()), result=said)
    graph.invoke(BEGIN, HERE)
    await go_on(stage, graph, Respond(payload="one"))
    (old,) = await stage.asked(await waiting(stage))
    graph.invoke(None, HERE)
    assert (await stage.broker.inbox.get(old.id)).state is Settlement.SUPERSEDED
    assert await payloads(stage) == ["second"]
    assert not (await stage.answer(old, Respond(payload="late"))).ok
    graph.invoke(None, HERE)
    assert (await go_on(stage, graph, Respond(payload="two"))).result == ["one", "two"]


def asks_both(_: Any) -> dict[str, Any]:
    return {"results": [interrupt("first"), interrupt("second")]}


@pytest.mark.report("RB18")
async def test_a_thread_whose_answer_is_under_way_takes_no_new_input(stage: Stage) -> None:
    """RB18: what somebody types is not taken for an answer, and does not drop one."""
    graph = called(stage, simple(partial(asks, "what?"), InMemorySaver()), result=said)
    graph.invoke(BEGIN, HERE)
    await stage.answer_all(await waiting(stage), [Respond(payload="that")])
    for given in (BEGIN, None):
        with pytest.raises(Refused, match="goes on with its answers"):
            graph.invoke(given, HERE)
    assert graph.get_state(HERE).interrupts != ()


async def test_a_thread_that_cannot_use_its_answer_is_asked_again_from_before(stage: Stage) -> None:
    """The graph keeps an answer that its node fails at, and fails at the right one too; a fork has it not."""

    def age(_: Any) -> dict[str, Any]:
        return {"results": [int(interrupt("age?"))]}

    graph = called(stage, simple(age, InMemorySaver()), result=said)
    graph.invoke(BEGIN, HERE)
    run = await waiting(stage)
    await stage.answer_all(run, [Respond(payload="old enough")])
    async with stage.broker.take(run.id) as taken:
        with pytest.raises(ValueError, match="old enough"):
            await graph.resume(taken)
        await taken.fail("ValueError", "old enough", final=True)
    assert (await stage.broker.runs.get(run.id)).state is RunState.DEAD
    graph.invoke(None, graph.get_state(HERE).config)
    assert (await stage.broker.runs.get(run.id)).state is RunState.WITHDRAWN
    assert (await go_on(stage, graph, Respond(payload="7"))).result == [7]


async def test_a_call_from_an_earlier_point_of_the_thread_parks_where_it_comes_to(stage: Stage) -> None:
    """What comes after it goes on from the thread's head, and not from that point again."""
    graph = called(stage, simple(asks_both, InMemorySaver()), result=said)
    graph.invoke(BEGIN, HERE)
    before = graph.get_state(HERE).config
    await go_on(stage, graph, Respond(payload="one"))
    graph.invoke(None, before)
    assert await payloads(stage) == ["first"]
    await go_on(stage, graph, Respond(payload="uno"))
    assert (await go_on(stage, graph, Respond(payload="due"))).result == ["uno", "due"]
