"""The recipe for Strands: the adapters' cases on the code of its page, and what users of Strands report."""

import pytest

from broker import Approve, Corrupt, Reject, Respond, RunState
from tests.adapters import test_cases as cases
from tests.adapters.stage import ME, Stage
from tests.adapters.test_cases import (  # noqa: F401 - collected here: the same cases as for every adapter
    test_approve,
    test_changed_arguments,
    test_duplicate,
    test_edit,
    test_empty_answers,
    test_expired,
    test_external,
    test_flipped,
    test_in_a_row,
    test_late,
    test_nested,
    test_new_input,
    test_other_build,
    test_reject,
    test_restart,
    test_restart_empty,
    test_swallowed,
    test_three_at_once,
    test_three_one_by_one,
    test_too_large,
    test_unknown_id,
    test_unserializable,
    test_wrong_kind,
    test_wrong_shape,
)


async def test_P4_P6_two_workers_run_an_approved_tool_once(stage: Stage) -> None:
    """The framework alone runs it for each that resumes the snapshot."""
    await cases.test_race(stage)


@pytest.mark.report("RB48")
async def test_RB48_an_agent_inside_that_preserves_its_context_is_not_parked(stage: Stage) -> None:
    """Its turn is in its own memory: whoever answered would answer for nothing. Nobody is asked."""
    run_id = await stage.start({"amount": 10})
    stage.worker("unreadable")
    dead = await stage.when(run_id, RunState.DEAD, RunState.WAITING)
    assert dead.state is RunState.DEAD
    assert all(Corrupt.code in one and "preserves its context" in one for one in dead.errors)
    assert (await stage.broker.inbox.list()).items == ()


@pytest.mark.report("RB48")
async def test_RB48_an_agent_inside_is_resumed_in_another_process(stage: Stage) -> None:
    """Two agents inside ask under one id of their model; each gets its own answer."""
    await cases.test_nested(stage)


@pytest.mark.report("RB49")
async def test_RB49_the_state_comes_to_the_next_worker_with_the_answers(stage: Stage) -> None:
    """A call without a question ran before the pause, in the worker that was killed then, and does not run again."""
    run = await stage.paused("mixed", {})
    assert [one.what for one in stage.world.effects] == ["look"]
    asked = {one.interrupt.action is not None: one for one in await stage.asked(run)}
    assert (await stage.answer(asked[False], Respond(payload="blue"))).ok
    assert (await stage.answer(asked[True], Approve())).ok
    done = await stage.finished(run, "mixed")
    assert sorted(done.result) == ["blue", "paid 10", "seen"], done.errors
    assert [(one.what, one.pid) for one in stage.world.effects] == [
        ("look", stage.pids[0]),
        ("pay", stage.pids[1]),
    ]


@pytest.mark.report("RB50")
async def test_RB50_P6_a_worker_killed_inside_a_tool_is_followed_by_another_under_the_same_key(
    stage: Stage,
) -> None:
    """A kill -9 after the effect, before it is on record."""
    await cases.test_killed(stage)


async def test_a_rejection_reaches_the_model_with_who_and_why(stage: Stage) -> None:
    run = await stage.paused("three")
    await stage.answer_all(run, [Approve(), Reject(reason="not eve"), Approve()])
    done = await stage.finished(run, "three")
    assert sorted(one.given for one in stage.world.effects) == [1, 3]
    assert any("not eve" in str(one) and ME.id in str(one) for one in done.result)
