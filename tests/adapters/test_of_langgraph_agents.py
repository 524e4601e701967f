"""Agents of LangChain with people in the loop, in both modes: the model is told what it is told without the broker."""

from dataclasses import replace
from typing import Any, Final

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from broker import Answer, AnswerKind, Approve, Cancel, Edit, Invalid, Reject, Respond, RunState

from .stage import Stage, shown
from .subjects.langgraph import Stub, agent, said, tools
from .threads import called, config, go_on, waiting

HERE = config("here")
GO: Final = {"messages": [("user", "{}")]}
ANSWERS: Final[dict[str, tuple[Answer, dict[str, Any]]]] = {
    "approve": (Approve(), {"type": "approve"}),
    "edit": (
        Edit(arguments={"amount": 5}),
        {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 5}}},
    ),
    "reject": (Reject(reason="too much"), {"type": "reject", "message": "too much"}),
    "respond": (Respond(payload="paid by hand"), {"type": "respond", "message": "paid by hand"}),
}
"""Each answer as the broker has it, and as the middleware has it."""

MODES = pytest.mark.parametrize("mode", ["per_call", "batched"])


def payer(stage: Stage, mode: str, *amounts: int) -> Any:
    """An agent that pays these amounts in its one turn."""
    world = replace(stage.world, options={"mode": mode})
    return agent(world, [list(amounts)], "pay", checkpointer=InMemorySaver())


def alone(made: Any, mode: str, decisions: dict[int, dict[str, Any]]) -> list[Any]:
    """The messages of an agent without the broker, with a decision for each amount."""
    made.invoke(GO, HERE)
    asked = made.get_state(HERE).interrupts
    if mode == "batched":
        (one,) = asked
        wanted = [decisions[row["args"]["amount"]] for row in one.value["action_requests"]]
        return messages(made.invoke(Command(resume={one.id: {"decisions": wanted}}), HERE))
    each = {one.id: decisions[one.value["args"]["amount"]] for one in asked}
    return messages(made.invoke(Command(resume=each), HERE))


def messages(values: Any) -> list[Any]:
    """What the model is told, and what it says."""
    return [
        (one.type, one.text, getattr(one, "tool_calls", None), getattr(one, "status", None))
        for one in values["messages"]
    ]


@MODES
@pytest.mark.parametrize("word", ANSWERS)
async def test_an_answer_is_told_as_without_the_broker(word: str, mode: str, stage: Stage) -> None:
    answer, decision = ANSWERS[word]
    expected = alone(payer(stage, mode, 3), mode, {3: decision})
    before = len(stage.world.effects)
    graph = called(stage, payer(stage, mode, 3), result=said)
    graph.invoke(GO, HERE)
    done = await go_on(stage, graph, answer)
    assert done.state is RunState.FINISHED
    assert messages(graph.get_state(HERE).values) == expected
    assert len(stage.world.effects) == 2 * before == (2 if word in ("approve", "edit") else 0)


@pytest.mark.report("RB20", "RB37")
@MODES
async def test_each_call_of_a_turn_has_its_own_answer(mode: str, stage: Stage) -> None:
    """The decisions are as many as the calls, and each is of its own call, although the tool is the same."""
    words = dict(zip((1, 2, 3, 4), ANSWERS, strict=True))
    expected = alone(payer(stage, mode, *words), mode, {n: ANSWERS[word][1] for n, word in words.items()})
    graph = called(stage, payer(stage, mode, *words), result=said)
    graph.invoke(GO, HERE)
    run = await waiting(stage)
    asked = await stage.asked(run)
    assert sorted(shown(one.interrupt)["amount"] for one in asked) == list(words)
    for one in reversed(asked[1:]):
        assert (await stage.answer(one, ANSWERS[words[shown(one.interrupt)["amount"]]][0])).ok
    assert (await stage.broker.runs.get(run.id)).state is RunState.WAITING
    assert (await stage.answer(asked[0], ANSWERS[words[shown(asked[0].interrupt)["amount"]]][0])).ok
    async with stage.broker.take(run.id) as taken:
        await taken.finish(await graph.resume(taken))
    assert messages(graph.get_state(HERE).values) == expected


@MODES
async def test_a_tool_offers_what_its_configuration_allows(mode: str, stage: Stage) -> None:
    """Another kind of answer is refused, and the thread is as it was; nobody's decision is told in words of its own."""
    gate: Any = HumanInTheLoopMiddleware(
        {"pay": {"allowed_decisions": ["approve", "reject"]}}, interrupt_mode=mode
    )
    made = create_agent(
        Stub(turns=[[3]]), [tools(stage.world)["pay"]], middleware=[gate], checkpointer=InMemorySaver()
    )
    graph = called(stage, made, result=said)
    graph.invoke(GO, HERE)
    (asked,) = await stage.asked(await waiting(stage))
    assert set(asked.interrupt.offered) == {AnswerKind.APPROVE, AnswerKind.REJECT, AnswerKind.CANCEL}
    for word in ("edit", "respond"):
        assert isinstance(await stage.answer(asked, ANSWERS[word][0]), Invalid)
    done = await go_on(stage, graph, Cancel(reason="the shop has closed"))
    assert "the shop has closed" in done.result[0]
    assert stage.world.effects == []


@pytest.mark.report("RB22")
@MODES
async def test_each_message_of_a_thread_asks_for_itself(mode: str, stage: Stage) -> None:
    """RB22: a second message that asks the same is another question; the first one's answer is not taken for it."""
    graph = called(stage, payer(stage, mode, 3), result=said)
    graph.invoke(GO, HERE)
    (first,) = await stage.asked(await waiting(stage))
    await go_on(stage, graph, Approve())
    graph.invoke(GO, HERE)
    (second,) = await stage.asked(await waiting(stage))
    assert second.id != first.id
    assert shown(second.interrupt) == shown(first.interrupt)
    assert not (await stage.answer(first, Reject(reason="late"))).ok
    done = await go_on(stage, graph, Reject(reason="not again"))
    assert [one.given for one in stage.world.effects] == [3]
    assert "not again" in done.result[-1]
