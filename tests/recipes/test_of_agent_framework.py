"""The recipe of Microsoft Agent Framework, from its page, in worker processes that are killed."""

import json
from dataclasses import replace
from typing import Any

import pytest
from agent_framework import Content, Message

from broker import AlreadyDecided, Approve, Cancel, Complete, Invalid, Reject, Respond, RunState
from tests.adapters.stage import ME, Stage
from tests.adapters.test_cases import (  # noqa: F401 - cases of the adapters' suite
    TEN,
    amounts,
    refused,
    test_approve,
    test_changed_arguments,
    test_duplicate,
    test_expired,
    test_external,
    test_flipped,
    test_in_a_row,
    test_killed,
    test_late,
    test_new_input,
    test_other_build,
    test_race,
    test_reject,
    test_swallowed,
    test_three_at_once,
    test_three_one_by_one,
    test_too_large,
    test_unknown_id,
    test_unserializable,
    test_wrong_kind,
)

from .subjects.agent_framework import agent_of


async def state_of(stage: Stage, run_id: str) -> Any:
    """The framework's part of a paused run's state: its session, and its requests."""
    state = await stage.broker.runs.state(run_id)
    assert state is not None
    assert state.opaque is not None
    return json.loads(state.opaque.partition(b"\n")[2])


async def test_a_refusal_is_read_by_the_model_with_who_and_why_also_later(stage: Stage) -> None:
    """The framework itself tells the model that it was rejected, and no more."""
    run = await stage.paused("in_a_row", TEN)
    await stage.answer_all(run, [Reject(reason="too much")])
    worker = stage.worker("in_a_row")
    await stage.next_pause(run)
    worker.kill()
    await stage.answer_all(run, [Approve()])
    done = await stage.finished(run, "in_a_row")
    first, second = done.result
    assert "too much" in first
    assert ME.id in first
    assert (second, amounts(stage)) == ("paid 10", [10])


async def test_all_calls_of_a_turn_are_made_when_all_are_answered(stage: Stage) -> None:
    """One that needs no yes, one that does, one whose result comes from elsewhere."""
    run = await stage.paused("mixed")
    assert stage.world.effects == []
    await stage.answer_all(run, [Approve(), Complete(value={"frames": 240})])
    done = await stage.finished(run, "mixed")
    assert sorted(done.result) == sorted(["looked", "paid 10", '{"frames": 240}']), done.errors
    assert sorted(one.what for one in stage.world.effects) == ["look", "pay"]
    assert len({one.key for one in stage.world.effects}) == 2


async def test_a_call_id_that_the_model_gives_again_is_another_question(stage: Stage) -> None:
    run = await stage.paused("same_id", TEN)
    await stage.answer_all(run, [Approve()])
    stage.worker("same_id")
    again = await stage.next_pause(run)
    assert set(again.interrupt_ids).isdisjoint(run.interrupt_ids)
    await stage.answer_all(run, [Reject(reason="once is enough")])
    done = await stage.ended(run)
    assert done.result[0] == "paid 10"
    assert "once is enough" in done.result[1]
    assert amounts(stage) == [10]


@pytest.mark.report("RB33")
async def test_two_calls_of_one_id_in_a_turn_are_not_published(stage: Stage) -> None:
    """RB33: one approval would bind both."""
    await refused(stage, "twins", "one agent and id")


@pytest.mark.report("RB52", "RB57")
async def test_RB52_B57_a_run_that_fails_after_its_tool_goes_on_from_the_pause(stage: Stage) -> None:
    """The answer is spent when the run's end is stored, and each attempt has the session as it was at the pause."""
    run = await stage.paused("pay", TEN)
    before = await state_of(stage, run.id)
    (stage.world.folder / "away").touch()
    await stage.answer_all(run, [Approve()])
    done = await stage.finished(run, "pay")
    assert (done.state, done.result) == (RunState.FINISHED, ["paid 10"]), done.errors
    assert "the model is away" in done.errors[0]
    first, second = stage.world.effects
    assert first.key == second.key
    assert await state_of(stage, run.id) == before


@pytest.mark.report("RB53", "RB54")
async def test_RB53_B54_the_session_and_its_requests_are_in_the_pause(stage: Stage) -> None:
    """Without the session the framework asks anew, whatever was approved; with it the call is made."""
    run = await stage.paused("pay", TEN)
    session, requests = await state_of(stage, run.id)
    assert [one["id"] for one in requests] == [
        one["id"] for one in session["state"]["tool_approval"]["pending_approval_requests"]
    ]
    yes = Message(
        "user", [Content.from_dict(one).to_function_approval_response(approved=True) for one in requests]
    )
    anew = (await agent_of("three", stage.world).run(yes)).user_input_requests
    assert {one.id for one in anew}.isdisjoint(one["id"] for one in requests)
    assert (len(anew), stage.world.effects) == (3, [])
    await stage.answer_all(run, [Approve()])
    assert (await stage.finished(run, "pay")).result == ["paid 10"]


@pytest.mark.report("RB55")
async def test_RB55_what_was_answered_is_not_asked_again(stage: Stage) -> None:
    run = await stage.paused("in_a_row", TEN)
    (first,) = await stage.asked(run)
    await stage.answer(first, Approve())
    worker = stage.worker("in_a_row")
    await stage.next_pause(run)
    worker.kill()
    _, requests = await state_of(stage, run.id)
    assert [one["function_call"]["call_id"] for one in requests] == ["c2"]
    assert isinstance(await stage.answer(first, Reject(reason="late")), AlreadyDecided)
    await stage.answer_all(run, [Approve()])
    assert (await stage.finished(run, "in_a_row")).result == ["paid 10", "paid 10"]
    assert [(await stage.broker.inbox.list()).items, len(amounts(stage))] == [(), 2]


@pytest.mark.report("RB56")
async def test_RB56_a_session_that_its_loader_cannot_read_is_not_published(stage: Stage) -> None:
    await refused(stage, "unreadable", "sealed")


@pytest.mark.report("RB59")
async def test_RB59_who_was_asked_and_who_said_what_is_on_record(stage: Stage) -> None:
    run = await stage.paused("pay", TEN)
    await stage.answer_all(run, [Reject(reason="too much")])
    await stage.finished(run, "pay")
    told = [(one.event, one.detail) for one in await stage.broker.history(stage.session) if one.interrupt_id]
    assert told == [("suspended", "approval_pending 1/c1"), ("resolved", "reject: too much")]
    (answered,) = [one for one in await stage.broker.history(stage.session) if one.event == "resolved"]
    assert (answered.by, answered.interrupt_id) == (ME, run.interrupt_ids[0])


# Workflows ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def flow(stage: Stage) -> Stage:
    """The stage of the second recipe, whose workers run a workflow."""
    return replace(stage, subject="tests.recipes.subjects.agent_framework_flow")


def paid(flow: Stage) -> list[int]:
    return [one.given for one in flow.world.effects if one.what == "pay"]


@pytest.mark.report("RB54", "RB55")
async def test_RB54_B55_a_workflow_goes_on_from_the_checkpoint_in_its_pause(flow: Stage) -> None:
    """Approved, then denied with a reason; the old answer is not for the new question, and nothing runs again."""
    run = await flow.paused("pay", 10)
    (first,) = await flow.asked(run)
    assert first.interrupt.payload == {"amount": 10}
    assert (await flow.answer(first, Respond(payload={"yes": True}))).ok
    worker = flow.worker("pay")
    await flow.next_pause(run)
    worker.kill()
    (second,) = await flow.asked(run)
    assert second.interrupt.payload == {"amount": 11}
    assert isinstance(await flow.answer(first, Respond(payload={"yes": False})), AlreadyDecided)
    assert (await flow.answer(second, Respond(payload={"yes": False, "why": "too much"}))).ok
    done = await flow.finished(run, "pay")
    assert (done.state, done.result) == (RunState.FINISHED, ["11: too much"]), done.errors
    assert [(one.what, one.given) for one in flow.world.effects] == [("begin", 10), ("pay", 10)]


@pytest.mark.report("RB55")
async def test_RB55_a_workflow_s_worker_is_killed_after_the_effect(flow: Stage) -> None:
    run = await flow.paused("pay", 9)
    flow.world.hold()
    await flow.answer_all(run, [Respond(payload={"yes": True})])
    victim = flow.worker("pay")
    await flow.has_effects(2)
    victim.kill()
    flow.world.let_go()
    done = await flow.finished(run, "pay")
    assert (done.state, done.result) == (RunState.FINISHED, ["9: paid"]), done.errors
    _, first, second = flow.world.effects
    assert first.key == second.key
    assert (first.pid, second.pid) == tuple(flow.pids[1:])


async def test_a_response_of_another_type_is_refused_and_nobody_s_value_is_made_up(flow: Stage) -> None:
    run = await flow.paused("pay", 9)
    (asked,) = await flow.asked(run)
    assert isinstance(await flow.answer(asked, Respond(payload="yes")), Invalid)
    assert (await flow.answer(asked, Cancel(reason="gone"))).ok
    dead = await flow.finished(run, "pay")
    assert dead.state is RunState.DEAD
    assert "gone" in dead.errors[0]
    assert paid(flow) == []


@pytest.mark.report("RB56")
async def test_RB56_a_checkpoint_of_a_type_that_is_not_listed_is_not_published(flow: Stage) -> None:
    run_id = await flow.start(9)
    dead = await flow.finished(run_id, "unlisted")
    assert (dead.state, dead.interrupt_ids) == (RunState.DEAD, ())
    assert "other requests than are asked" in dead.errors[0]
    assert paid(flow) == []
