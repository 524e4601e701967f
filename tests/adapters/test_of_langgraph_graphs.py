"""What graphs are made of: each kind pauses, is answered in the inbox, and goes on as it does without the broker."""

from functools import partial
from typing import Any, Literal, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt

from broker import Corrupt, InvalidInput, Respond, RunState
from broker.adapters.langgraph import effect_key

from .stage import Stage
from .subjects.langgraph import State, asks, said, simple
from .threads import called, config, go_on, payloads, waiting

BEGIN: dict[str, Any] = {"results": []}
HERE = config("here")


# The functional API ----------------------------------------------------------------------------------------------


@pytest.mark.report("RB9")
async def test_a_workflow_of_the_functional_api_goes_on(stage: Stage) -> None:
    """RB9: what tasks returned comes back and is not done again; what was changed in place is made anew."""

    @task
    def draft(topic: str) -> str:
        stage.world.effect("draft", topic, "")
        return f"a text on {topic}"

    @entrypoint(checkpointer=InMemorySaver())
    def write(topics: list[str]) -> dict[str, Any]:
        topics.append("dogs")
        text = draft(topics[0]).result()
        return {"text": text, "verdict": interrupt(text), "topics": topics}

    graph = called(stage, write)
    graph.invoke(["cats"], HERE)
    assert await payloads(stage) == ["a text on cats"]
    done = await go_on(stage, graph, Respond(payload="good"))
    assert done.result == {"text": "a text on cats", "verdict": "good", "topics": ["cats", "dogs"]}
    assert len(stage.world.effects) == 1


async def test_what_a_workflow_saves_is_not_what_it_returns(stage: Stage) -> None:
    """A run's result is the value; the next run of the thread finds what was saved."""

    @entrypoint(checkpointer=InMemorySaver())
    def count(step: int, *, previous: int | None = None) -> Any:
        answer = interrupt(previous)
        return entrypoint.final(value=f"{answer}!", save=(previous or 0) + step)

    graph = called(stage, count)
    graph.invoke(2, HERE)
    assert (await go_on(stage, graph, Respond(payload="one"))).result == "one!"
    graph.invoke(3, HERE)
    assert await payloads(stage) == [2]
    assert (await go_on(stage, graph, Respond(payload="two"))).result == "two!"


@pytest.mark.report("RB10")
async def test_all_that_a_thread_asks_is_in_the_inbox(stage: Stage) -> None:
    """RB10: of tasks that ask at once, what a workflow returns may lack some; the inbox has what its state has."""

    @task
    def ask(what: int) -> Any:
        return interrupt(what)

    @entrypoint(checkpointer=InMemorySaver())
    def both(_: int) -> list[Any]:
        asked = [ask(1), ask(2)]
        return [one.result() for one in asked]

    graph = called(stage, both)
    graph.invoke(0, HERE)
    run = await waiting(stage)
    while run.state is RunState.WAITING:
        asked = await payloads(stage)
        assert sorted(asked) == sorted(one.value for one in graph.get_state(HERE).interrupts)
        run = await go_on(stage, graph, *[Respond(payload=one * 10) for one in asked])
    assert run.result == [10, 20]


# Graphs in graphs ------------------------------------------------------------------------------------------------


async def test_a_question_two_graphs_down(stage: Stage) -> None:
    """Asked twice in one node there; what the node does has another key than it would have at another place."""

    def node(_: Any) -> dict[str, Any]:
        answers = [interrupt("first"), interrupt("second")]
        stage.world.effect("done", answers, effect_key())
        return {"results": answers}

    graph = called(stage, simple(simple(simple(node, None), None), InMemorySaver()), result=said)
    graph.invoke(BEGIN, HERE)
    assert (await go_on(stage, graph, Respond(payload=1))).state is RunState.WAITING
    assert await payloads(stage) == ["second"]
    done = await go_on(stage, graph, Respond(payload=2))
    assert done.result == [1, 2]
    (effect,) = stage.world.effects
    assert done.id in effect.key


async def test_graphs_in_parallel_are_asked_together(stage: Stage) -> None:
    graph = StateGraph(State)
    for name in ("left", "right"):
        graph.add_node(name, simple(partial(asks, name), None))
        graph.add_edge(START, name)
        graph.add_edge(name, END)
    made = called(stage, graph.compile(checkpointer=InMemorySaver()), result=said)
    made.invoke(BEGIN, HERE)
    asked = await stage.asked(await waiting(stage))
    assert sorted(one.interrupt.agent_path for one in asked) == [("left",), ("right",)]
    done = await go_on(stage, made, *[Respond(payload=f"to {one.interrupt.payload}") for one in asked])
    assert sorted(done.result) == ["to left", "to right"]


async def test_a_graph_inside_sends_its_parent_on(stage: Stage) -> None:
    def inner(_: Any) -> Command[Any]:
        return Command(graph=Command.PARENT, goto=interrupt("where?"), update={"results": ["inner"]})

    graph = StateGraph(State)
    graph.add_node("node", simple(inner, None), destinations=("left", "right"))
    graph.add_node("left", lambda _: {"results": ["left"]})
    graph.add_node("right", lambda _: {"results": ["right"]})
    graph.add_edge(START, "node")
    made = called(stage, graph.compile(checkpointer=InMemorySaver()), result=said)
    made.invoke(BEGIN, HERE)
    assert (await go_on(stage, made, Respond(payload="right"))).result == ["inner", "right"]


# Ways on ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "ways"), [(True, ["proceed"]), (False, ["cancel"])])
async def test_an_answer_says_where_the_graph_goes(answer: bool, ways: list[str], stage: Stage) -> None:  # noqa: FBT001
    def approval(_: Any) -> Command[Literal["proceed", "cancel"]]:
        return Command(goto="proceed" if interrupt("approve?") else "cancel")

    graph = StateGraph(State)
    graph.add_node("approval", approval)
    graph.add_node("proceed", lambda _: {"results": ["proceed"]})
    graph.add_node("cancel", lambda _: {"results": ["cancel"]})
    graph.add_edge(START, "approval")
    made = called(stage, graph.compile(checkpointer=InMemorySaver()), result=said)
    made.invoke(BEGIN, HERE)
    assert (await go_on(stage, made, Respond(payload=answer))).result == ways


class Item(TypedDict):
    n: int


@pytest.mark.report("RB7", "RB63")
async def test_what_is_sent_out_at_once_is_answered_together(stage: Stage) -> None:
    """Three questions of one step are one pause; each answer goes to its own, whatever order they come in."""

    def node(item: Item) -> dict[str, Any]:
        return {"results": [(item["n"], interrupt(item["n"]))]}

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_conditional_edges(START, lambda _: [Send("node", {"n": n}) for n in (1, 2, 3)], ["node"])
    made = called(stage, graph.compile(checkpointer=InMemorySaver()), result=said)
    made.invoke(BEGIN, HERE)
    run = await waiting(stage)
    for one in reversed(await stage.asked(run)):
        assert (await stage.answer(one, Respond(payload=one.interrupt.payload * 10))).ok
    async with stage.broker.take(run.id) as taken:
        await taken.finish(await made.resume(taken))
    done = await stage.broker.runs.get(run.id)
    assert [tuple(one) for one in done.result] == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.report("RB3")
async def test_a_question_that_is_asked_until_its_answer_will_do(stage: Stage) -> None:
    """RB3: each round is a question with one answer, and the node's body runs again at each of them."""
    passes = []

    def age(_: Any) -> dict[str, Any]:
        asked = "age?"
        while True:
            passes.append(asked)
            answer = interrupt(asked)
            if isinstance(answer, int):
                return {"results": [answer]}
            asked = f"{answer} is no age"

    graph = called(stage, simple(age, InMemorySaver()), result=said)
    graph.invoke(BEGIN, HERE)
    run = await waiting(stage)
    seen = set()
    for answer in ("x", "y", 3):
        seen |= set(run.interrupt_ids)
        run = await go_on(stage, graph, Respond(payload=answer))
    assert run.result == [3]
    assert len(seen) == 3
    assert passes.count("age?") == 4


@pytest.mark.report("RB4", "RB8")
async def test_a_node_that_asks_twice_waits_twice(stage: Stage) -> None:
    """RB4, RB8: the second question is a pause of its own, and the first answer is not asked for again."""

    def node(_: Any) -> dict[str, Any]:
        stage.world.effect("before", None, "")
        return {"results": [interrupt("first"), interrupt("second")]}

    graph = called(stage, simple(node, InMemorySaver()), result=said)
    graph.invoke(BEGIN, HERE)
    first = await waiting(stage)
    again = await go_on(stage, graph, Respond(payload="one"))
    assert (again.state, again.seq > first.seq) == (RunState.WAITING, True)
    assert await payloads(stage) == ["second"]
    assert (await go_on(stage, graph, Respond(payload="two"))).result == ["one", "two"]
    assert len(stage.world.effects) == 3


@pytest.mark.report("RB5")
async def test_two_tools_of_one_task_are_asked_one_after_the_other(stage: Stage) -> None:
    """RB5: they do not share an id, and the answers are not swapped."""

    @tool
    def left(v: str) -> str:
        """Asks."""
        return f"left {v} {interrupt('left?')}"

    @tool
    def right(v: str) -> str:
        """Asks."""
        return f"right {v} {interrupt('right?')}"

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([left, right]))
    graph.add_edge(START, "tools")
    made = called(stage, graph.compile(checkpointer=InMemorySaver()), result=said)
    calls = [{"name": name, "args": {"v": name[0]}, "id": name} for name in ("left", "right")]
    messages: list[AnyMessage] = [AIMessage("", tool_calls=calls)]
    made.invoke({"messages": messages}, HERE)
    run = await waiting(stage)
    seen = set()
    while run.state is RunState.WAITING:
        asked = await stage.asked(run)
        seen |= {one.id for one in asked}
        run = await go_on(stage, made, *[Respond(payload=f"to {one.interrupt.payload}") for one in asked])
    assert run.result == ["left l to left?", "right r to right?"]
    assert len(seen) == 2


async def test_a_command_may_be_new_input_and_not_a_way_round_a_question(stage: Stage) -> None:
    """An update supersedes what the thread asked, and it is asked again.

    What a node asks that `Command(goto=...)` leads to at once is not in the state of LangGraph: it is not published.
    """
    graph = StateGraph(State)
    graph.add_node("ask", partial(asks, "sure?"))
    graph.add_node("other", partial(asks, "other?"))
    graph.add_edge(START, "ask")
    made = called(stage, graph.compile(checkpointer=InMemorySaver()), result=said)
    made.invoke(BEGIN, HERE)
    old = await waiting(stage)
    with pytest.raises(InvalidInput, match="sends on a thread that waits"):
        made.invoke(Command(goto="other"), HERE)
    assert (await waiting(stage)).id == old.id
    made.invoke(Command(update={"results": ["noted"]}), HERE)
    assert (await stage.broker.runs.get(old.id)).state is RunState.WITHDRAWN
    assert (await go_on(stage, made, Respond(payload="yes"))).result == ["noted", "yes"]
    with pytest.raises(Corrupt, match="does not give the pause back"):
        made.invoke(Command(goto="other"), HERE)
    assert (await stage.broker.inbox.list()).items == ()


@pytest.mark.report("RB64")
async def test_going_on_carries_the_answers_and_not_the_input_again(stage: Stage) -> None:
    """RB64: what a run was started with is in its thread; given once more, it would be added once more."""
    graph = called(stage, simple(partial(asks, "sure?"), InMemorySaver()), result=said)
    run_id = await stage.start({"results": ["given"]}, session="here")
    async with stage.broker.take(run_id) as run:
        await graph.resume(run)
    assert (await go_on(stage, graph, Respond(payload="yes"))).result == ["given", "yes"]
