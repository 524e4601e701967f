"""Agent Inbox's schema both ways, from its page, with graphs in worker processes that are killed."""

import json
from typing import Any

import pytest
from langgraph.prebuilt.interrupt import HumanInterrupt, HumanResponse
from pydantic import TypeAdapter

from broker import (
    Accepted,
    Action,
    AlreadyDecided,
    AnswerKind,
    Interrupt,
    InterruptRecord,
    Invalid,
    InvalidInput,
    Outcome,
    Respond,
    RunRecord,
    RunState,
    Settlement,
)
from tests.adapters.stage import ME, Stage
from tests.adapters.test_cases import TEN, amounts

from .subjects.agent_inbox import MAIL, PAGE

INTERRUPT: TypeAdapter[Any] = TypeAdapter(HumanInterrupt)
RESPONSE: TypeAdapter[Any] = TypeAdapter(HumanResponse)


def shown(asked: Interrupt) -> dict[str, Any]:
    """What an inbox gets over its wire: a `HumanInterrupt` as LangGraph declares it."""
    found: dict[str, Any] = json.loads(json.dumps(PAGE.human_interrupt(asked)))
    assert INTERRUPT.validate_python(found, strict=True) == found
    return found


def pressed(item: dict[str, Any], button: str, text: str = "", **edited: Any) -> list[dict[str, Any]]:
    """What Agent Inbox sends: a list of one response, in which every argument has become text."""
    request = item["action_request"]
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in {**request["args"], **edited}.items()
    }
    args: dict[str, Any] = {"response": text, "ignore": None}
    response = {"type": button, "args": args.get(button, {"action": request["action"], "args": texts})}
    RESPONSE.validate_python(response, strict=True)
    return [response]


async def press(stage: Stage, asked: InterruptRecord, button: str, text: str = "", **edited: Any) -> Outcome:
    """What became of a button that somebody pressed on what an inbox shows of an interrupt."""
    said = PAGE.answer(asked.interrupt, pressed(shown(asked.interrupt), button, text, **edited))
    return await stage.answer(asked, said)


async def pressed_in(stage: Stage, run: RunRecord | str, button: str, text: str = "", **edited: Any) -> None:
    (asked,) = await stage.asked(run)
    assert isinstance(await press(stage, asked, button, text, **edited), Accepted)


# An agent that asks in words of its own ----------------------------------------------------------------------------


async def test_approve(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    (asked,) = await stage.asked(run)
    item = shown(asked.interrupt)
    assert item["action_request"] == {"action": "pay", "args": TEN}
    assert all(item["config"].values())
    assert "pay" in item["description"]
    await pressed_in(stage, run, "accept")
    done = await stage.finished(run, "pay")
    assert (done.state, done.result) == (RunState.FINISHED, ["paid 10"]), done.errors
    (effect,) = stage.world.effects
    assert (effect.given, effect.pid) == (10, stage.pids[1])


async def test_deny_with_reason(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    await pressed_in(stage, run, "response", "too much")
    done = await stage.finished(run, "pay")
    assert done.state is RunState.FINISHED, done.errors
    assert "too much" in done.result[0]
    assert stage.world.effects == []
    (asked,) = await stage.asked(run)
    assert asked.resolution is not None
    assert asked.resolution.state is Settlement.RESOLVED
    assert asked.resolution.answer is not None
    assert asked.resolution.answer.kind is AnswerKind.REJECT


async def test_ignored_is_not_refused(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    await pressed_in(stage, run, "ignore")
    done = await stage.finished(run, "pay")
    assert "ignored" in done.result[0]
    assert stage.world.effects == []
    (asked,) = await stage.asked(run)
    assert asked.state is Settlement.CANCELLED


async def test_edit(stage: Stage) -> None:
    """The inbox sends a number as text; the tool takes a number."""
    run = await stage.paused("pay", TEN)
    await pressed_in(stage, run, "edit", amount=3)
    done = await stage.finished(run, "pay")
    assert (done.result, amounts(stage)) == (["paid 3"], [3]), done.errors


async def test_killed(stage: Stage) -> None:
    """After the pause, and after the effect before its record: delivered again under the same key."""
    run = await stage.paused("pay", TEN)
    stage.world.hold()
    await pressed_in(stage, run, "accept")
    victim = stage.worker("pay")
    await stage.has_effects(1)
    victim.kill()
    stage.world.let_go()
    done = await stage.finished(run, "pay")
    assert (done.state, done.result) == (RunState.FINISHED, ["paid 10"]), done.errors
    first, second = stage.world.effects
    assert first.key == second.key
    assert (first.pid, second.pid) == tuple(stage.pids[1:])


@pytest.mark.report("RB20")
async def test_RB20_the_calls_of_a_turn_are_items_of_their_own(stage: Stage) -> None:
    run = await stage.paused("three", mode="batched")
    asked = await stage.asked(run)
    assert [shown(one.interrupt)["action_request"]["args"]["amount"] for one in asked] == [1, 2, 3]
    for one, button in zip(asked, ("accept", "response", "edit"), strict=True):
        assert (await press(stage, one, button, "no", amount=5)).ok
    done = await stage.finished(run, "three", mode="batched")
    assert done.state is RunState.FINISHED, done.errors
    assert amounts(stage) == [1, 5]


async def test_a_question_is_answered_with_text(stage: Stage) -> None:
    run = await stage.paused("question")
    (asked,) = await stage.asked(run)
    item = shown(asked.interrupt)
    assert item["action_request"]["args"] == {"payload": "what?"}
    assert [name for name, allowed in item["config"].items() if allowed] == ["allow_ignore", "allow_respond"]
    assert isinstance(await press(stage, asked, "accept"), Invalid)
    await pressed_in(stage, run, "response", "that")
    assert (await stage.finished(run, "question")).result == ["that"]


# A graph that asks in the schema -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["mail", "listed"])
async def test_the_graph_gets_what_was_shown_back(stage: Stage, scenario: str) -> None:
    """Not what the inbox sent: there all arguments are text."""
    run = await stage.paused(scenario)
    (asked,) = await stage.asked(run)
    assert shown(asked.interrupt) == MAIL
    await pressed_in(stage, run, "accept")
    done = await stage.finished(run, scenario)
    assert done.result == [{"type": "accept", "args": MAIL["action_request"]}], done.errors


async def test_the_graph_gets_an_edit_in_the_types_of_what_was_shown(stage: Stage) -> None:
    run = await stage.paused("mail")
    await pressed_in(stage, run, "edit", to="12", copies=1, urgent=False)
    done = await stage.finished(run, "mail")
    args = {"to": "12", "copies": 1, "urgent": False}
    assert done.result == [{"type": "edit", "args": {"action": "mail", "args": args}}], done.errors
    assert [one.given for one in stage.world.effects] == [args]


@pytest.mark.parametrize(("button", "args"), [("response", "not to her"), ("ignore", None)])
async def test_the_graph_is_told_why_or_that_it_was_ignored(stage: Stage, button: str, args: Any) -> None:
    run = await stage.paused("mail")
    await pressed_in(stage, run, button, "not to her")
    done = await stage.finished(run, "mail")
    assert (done.result, stage.world.effects) == ([{"type": button, "args": args}], []), done.errors


async def test_the_graph_s_worker_is_killed_after_the_effect(stage: Stage) -> None:
    run = await stage.paused("mail")
    stage.world.hold()
    await pressed_in(stage, run, "accept")
    victim = stage.worker("mail")
    await stage.has_effects(1)
    victim.kill()
    stage.world.let_go()
    done = await stage.finished(run, "mail")
    assert done.state is RunState.FINISHED, done.errors
    first, second = stage.world.effects
    assert first.key == second.key
    assert (first.pid, second.pid) == tuple(stage.pids[1:])


@pytest.mark.parametrize("button", ["accept", "edit", "ignore"])
async def test_what_the_config_does_not_allow_is_refused(stage: Stage, button: str) -> None:
    run = await stage.paused("only_respond")
    (asked,) = await stage.asked(run)
    assert isinstance(await press(stage, asked, button), Invalid)
    await pressed_in(stage, run, "response", "no")
    assert (await stage.finished(run, "only_respond")).result == [{"type": "response", "args": "no"}]


MINE = MAIL["action_request"]
MISFITS: dict[str, Any] = {
    "bare": {"type": "accept", "args": MINE},
    "empty": [],
    "two": [{"type": "ignore", "args": None}] * 2,
    "text": ["accept"],
    "accepts something else": [{"type": "accept", "args": {"action": "mail", "args": {"to": "mallory"}}}],
    "edits something else": [{"type": "edit", "args": {"action": "pay", "args": {}}}],
    "no such button": [{"type": "approve", "args": None}],
}


@pytest.mark.parametrize("payload", MISFITS.values(), ids=list(MISFITS))
async def test_a_response_from_elsewhere_is_held_to_the_request(stage: Stage, payload: Any) -> None:
    """The broker has the schema, so that no way of answering gets round it; the graph goes on as if nothing was."""
    run = await stage.paused("mail")
    (asked,) = await stage.asked(run)
    assert isinstance(await stage.answer(asked, Respond(payload=payload)), Invalid)
    await pressed_in(stage, run, "accept")
    assert (await stage.finished(run, "mail")).result == [{"type": "accept", "args": MINE}]


# Threads -----------------------------------------------------------------------------------------------------------


@pytest.mark.report("RB22")
async def test_RB22_the_second_question_of_a_thread_is_an_item_of_its_own(stage: Stage) -> None:
    run = await stage.paused("in_a_row", TEN)
    (first,) = await stage.asked(run)
    assert (await press(stage, first, "accept")).ok
    stage.worker("in_a_row")
    again = await stage.next_pause(run)
    (second,) = await stage.asked(again)
    assert shown(second.interrupt)["action_request"] == shown(first.interrupt)["action_request"]
    late = await press(stage, first, "response", "no, wait")
    assert isinstance(late, AlreadyDecided)
    assert late.winner.by == ME
    assert (await stage.broker.inbox.get(second.id)).state is Settlement.OPEN
    assert (await press(stage, second, "response", "once is enough")).ok
    done = await stage.ended(run)
    assert done.result[0] == "paid 10"
    assert "once is enough" in done.result[1]
    assert amounts(stage) == [10]


@pytest.mark.report("RB18")
async def test_RB18_new_input_takes_the_old_item_away(stage: Stage) -> None:
    """An answer typed as chat is new input: what was asked is superseded, and its buttons say so."""
    run = await stage.paused("mail")
    (old,) = await stage.asked(run)
    newer = await stage.start()
    stage.worker("mail")
    await stage.when(newer, RunState.WAITING)
    assert not (await press(stage, old, "accept")).ok
    (open_now,) = (await stage.broker.inbox.list()).items
    assert (open_now.run_id, stage.world.effects) == (newer, [])
    assert (await stage.broker.inbox.get(old.id)).state is Settlement.SUPERSEDED


# What cannot be read -----------------------------------------------------------------------------------------------

PAYS = Interrupt.approval(
    Action(tool="pay", arguments={"amount": 10, "to": "eve"}), "c1", offers=tuple(AnswerKind)[:3]
)
UNREADABLE: dict[str, Any] = {
    "bare": {"type": "accept", "args": None},
    "two": [{"type": "accept", "args": None}] * 2,
    "another tool": [{"type": "edit", "args": {"action": "wipe", "args": {}}}],
    "no arguments": [{"type": "edit", "args": None}],
    "no text": [{"type": "response", "args": None}],
    "no such button": [{"type": "approve", "args": None}],
    "nothing": None,
    "text for a number": [{"type": "edit", "args": {"action": "pay", "args": {"amount": "ten"}}}],
}


@pytest.mark.parametrize("responses", UNREADABLE.values(), ids=list(UNREADABLE))
def test_what_cannot_be_read_is_a_typed_error(responses: Any) -> None:
    with pytest.raises(InvalidInput, match="response"):
        PAGE.answer(PAYS, responses)
