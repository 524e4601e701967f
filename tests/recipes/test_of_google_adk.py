"""The recipe for Google's ADK: the adapters' cases on the code of its page, and what users of ADK report."""

import pytest

from broker import Approve, Complete, Fail, Reject, RunRecord, RunState
from tests.adapters import test_cases as cases
from tests.adapters.stage import ME, Stage
from tests.adapters.test_cases import (  # noqa: F401 - collected here: the same cases as for every adapter
    test_approve,
    test_changed_arguments,
    test_duplicate,
    test_edit,
    test_expired,
    test_flipped,
    test_in_a_row,
    test_killed,
    test_late,
    test_nested,
    test_other_build,
    test_reject,
    test_restart,
    test_restart_empty,
    test_swallowed,
    test_three_at_once,
    test_too_large,
    test_unknown_id,
    test_unserializable,
    test_wrong_kind,
)

TEN = {"amount": 10}


def done_by(stage: Stage) -> list[tuple[str, int]]:
    """What the tools did, each with the number of the worker."""
    return [(one.what, stage.pids.index(one.pid)) for one in stage.world.effects]


async def ended(stage: Stage, run: RunRecord, scenario: str) -> RunRecord:
    """The run, which another worker has finished."""
    done = await stage.finished(run, scenario)
    assert done.state is RunState.FINISHED, done.errors
    return done


@pytest.mark.report("RB38")
async def test_RB38_what_ran_beside_the_questions_is_kept(stage: Stage) -> None:
    """Its result came after the event that says what is asked: the stream was read to its end before the pause."""
    run = await stage.paused("mixed", TEN)
    answers = {"pay": Approve(), "render": Complete(value="frames=240")}
    asked = await stage.asked(run)
    await stage.answer_all(run, [answers[one.interrupt.action.tool] for one in asked if one.interrupt.action])
    done = await ended(stage, run, "mixed")
    assert done.result == ["seen", "paid 10", "frames=240"]
    assert done_by(stage) == [("look", 0), ("render", 0), ("pay", 1)]


@pytest.mark.report("RB40", "RB44")
async def test_RB40_B44_two_workers_run_a_confirmed_tool_once(stage: Stage) -> None:
    """The framework alone runs it for both, and tells one of them afterwards that its session is stale."""
    await cases.test_race(stage)


@pytest.mark.report("RB40")
async def test_RB40_a_second_text_supersedes_what_was_asked(stage: Stage) -> None:
    await cases.test_new_input(stage)


@pytest.mark.report("RB41", "RB46")
async def test_RB41_B46_the_result_of_one_job_begins_no_other_anew(stage: Stage) -> None:
    """Nor is the model asked again before the last one is there."""
    run = await stage.paused("jobs")
    stage.worker("jobs")
    asked = await stage.asked(run)
    assert (await stage.answer(asked[0], Complete(value="first"))).ok
    assert (await stage.broker.runs.get(run.id)).state is RunState.WAITING
    assert (await stage.answer(asked[1], Complete(value="second"))).ok
    done = await stage.ended(run)
    assert done.result == ["first", "second"], done.errors
    assert done_by(stage) == [("render", 0), ("render", 0)]
    assert len((stage.world.folder / "model").read_text().splitlines()) == 2


@pytest.mark.report("RB46")
async def test_RB46_the_run_goes_on_at_the_last_of_several_answers(stage: Stage) -> None:
    await cases.test_three_one_by_one(stage)


@pytest.mark.report("RB42")
async def test_RB42_a_second_job_of_an_agent_inside_is_waited_for(stage: Stage) -> None:
    run = await stage.paused("jobs_handed_on")
    await stage.answer_all(run, [Complete(value="first")])
    stage.worker("jobs_handed_on")
    again = await stage.next_pause(run)
    await stage.answer_all(again, [Complete(value="second")])
    done = await stage.ended(run)
    assert done.result == ["first", "second"], done.errors


@pytest.mark.report("RB42")
async def test_RB42_a_run_that_ends_without_a_word_is_on_record_as_failed(stage: Stage) -> None:
    run = await stage.paused("silent", TEN)
    await stage.answer_all(run, [Approve()])
    done = await stage.finished(run, "silent")
    assert done.state is RunState.DEAD
    assert all("without a word" in one for one in done.errors)
    assert len({one.key for one in stage.world.effects}) == 1


@pytest.mark.report("RB43")
async def test_RB43_a_confirmation_reaches_the_agent_inside_that_asked(stage: Stage) -> None:
    run = await stage.paused("handed_on", TEN)
    (asked,) = await stage.asked(run)
    assert asked.interrupt.agent_path == ("cashier",)
    await stage.answer_all(run, [Approve()])
    done = await ended(stage, run, "handed_on")
    assert done.result == ["paid 10"]
    assert done_by(stage) == [("pay", 1)]


@pytest.mark.report("RB45")
async def test_RB45_nobody_is_asked_for_the_result_of_a_job_that_did_not_begin(stage: Stage) -> None:
    """The model is told what was wrong with its call, and the run goes on."""
    run_id = await stage.start()
    stage.worker("invalid")
    done = await stage.when(run_id, RunState.FINISHED, RunState.DEAD, RunState.WAITING)
    assert done.state is RunState.FINISHED, done.errors
    assert "scene" in done.result[0]
    assert (done.seq, stage.world.effects) == (0, [])


@pytest.mark.report("RB47")
async def test_RB47_a_question_has_the_id_of_the_call_and_keeps_that_of_the_confirmation(
    stage: Stage,
) -> None:
    run = await stage.paused("pay", TEN)
    (asked,) = await stage.asked(run)
    assert asked.interrupt.call_id == "1/payer/c1"
    assert str(asked.interrupt.metadata["confirmation"]).startswith("adk-")


async def test_the_result_is_what_the_agent_says_last(stage: Stage) -> None:
    """It says something before each of its calls."""
    run = await stage.paused("looks_then", TEN)
    await stage.answer_all(run, [Approve()])
    assert (await ended(stage, run, "looks_then")).result == ["paid 10", "seen"]


async def test_a_tool_without_arguments_is_asked_about(stage: Stage) -> None:
    run = await stage.paused("bare")
    await stage.answer_all(run, [Approve()])
    assert (await ended(stage, run, "bare")).result == ["closed"]
    assert done_by(stage) == [("close", 1)]


@pytest.mark.parametrize("value", [None, False, {}, ""], ids=["None", "False", "map", "text"])
async def test_empty_answers(stage: Stage, value: object) -> None:
    run = await stage.paused("external")
    await stage.answer_all(run, [Complete(value=value)])
    assert (await ended(stage, run, "external")).result == [value]


async def test_external(stage: Stage) -> None:
    """A job that was begun before the pause is not begun again; what went wrong with it is told to the model."""
    run = await stage.paused("external")
    await stage.answer_all(run, [Fail(error="out of paper")])
    done = await ended(stage, run, "external")
    assert "out of paper" in done.result[0]
    assert done_by(stage) == [("render", 0)]


async def test_a_rejection_reaches_the_model_with_who_and_why(stage: Stage) -> None:
    run = await stage.paused("three")
    await stage.answer_all(run, [Approve(), Reject(reason="not eve"), Approve()])
    done = await ended(stage, run, "three")
    assert sorted(one.given for one in stage.world.effects) == [1, 3]
    assert any("not eve" in str(one) and ME.id in str(one) for one in done.result)
