"""Beyond 22: agents tried in a test, with people who answer as scripted and a clock that moves: real outcomes."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Accepted,
    AlreadyDecided,
    Expired,
    Interrupt,
    InvalidInput,
    Replayed,
    Run,
    RunState,
    Worker,
)
from broker.testing import (
    Script,
    Testbed,
    Unanswered,
    approve,
    complete,
    edit,
    effect,
    fail,
    happened,
    late,
    never,
    reject,
    respond,
    twice,
)

from . import agents

NOBODY = "Error (expired): Nobody answered in time. It was not run."


def codes(testbed: Testbed) -> list[str]:
    return [one.outcome.code for one in testbed.answered]


@pytest.mark.parametrize(
    ("answers", "says", "effects"),
    [
        ([approve("cancel_*")], "cancelled 7", {"cancelled 7": 1}),
        ([approve()], "cancelled 7", {"cancelled 7": 1}),
        ([never("pay_*"), approve("*")], "cancelled 7", {"cancelled 7": 1}),
        ([edit("cancel_*", room=8)], "cancelled 8", {"cancelled 8": 1}),
        ([reject("cancel_*", "too late")], "Not approved by first: too late. It was not run.", {}),
        ([never("cancel_*")], NOBODY, {}),
        ([late(approve("cancel_*"))], NOBODY, {}),
    ],
    ids=["approve", "approve anything", "the first that fits", "edit", "reject", "never", "late"],
)
def test_beyond_22_what_is_said_to_a_question_is_what_becomes_of_it(
    testbed: Testbed, answers: Sequence[Script], says: str, effects: dict[str, int]
) -> None:
    run = testbed.run(agents.cancelling, 7, answers=answers)
    assert run.state is RunState.FINISHED
    assert isinstance(run.result, str)
    assert run.result.endswith(says)
    assert testbed.effects == effects


def test_beyond_22_an_answer_that_comes_too_late_is_told_so(testbed: Testbed) -> None:
    testbed.run(agents.cancelling, 7, answers=[late(approve("cancel_*"))])
    (said,) = testbed.answered
    assert isinstance(said.outcome, Expired)
    assert said.question.deadline is not None
    assert said.outcome.at is not None
    assert said.outcome.at >= said.question.deadline


def test_beyond_22_a_double_click_is_one_answer(testbed: Testbed) -> None:
    run = testbed.run(agents.cancelling, 7, answers=[twice(approve("cancel_*"))])
    assert [type(one.outcome) for one in testbed.answered] == [Accepted, Replayed]
    assert (run.result, testbed.effects) == ("cancelled 7", {"cancelled 7": 1})


def test_beyond_22_a_second_party_is_told_who_was_first(testbed: Testbed) -> None:
    run = testbed.run(agents.cancelling, 7, answers=[twice(reject("cancel_*"), approve("cancel_*"))])
    last = testbed.answered[-1].outcome
    assert isinstance(last, AlreadyDecided)
    assert last.winner.by is not None
    assert (last.winner.by.id, testbed.effects) == ("first", {})
    assert "Not approved by first" in str(run.result)


def test_a_job_elsewhere_is_completed_or_fails(testbed: Testbed) -> None:
    yes = approve("cancel_*")
    done = testbed.run(agents.booking, [7], answers=[yes, complete("film", "v-9")])
    assert done.result == ["cancelled 7", "v-9"]
    failed = testbed.run(agents.booking, [7], answers=[yes, fail("film", "no light")])
    assert failed.state is RunState.DEAD
    assert "no light" in failed.errors[-1]


def test_several_questions_are_answered_each_by_its_script_before_the_clock_is_moved(
    testbed: Testbed,
) -> None:
    answers = [late(edit("cancel_*", room=9)), complete("film", None)]
    testbed.run(agents.booking, [7, 8], answers=answers)
    assert codes(testbed) == ["expired", "expired", "accepted"]


def test_a_question_without_a_deadline_that_nobody_answers_stays_open(testbed: Testbed) -> None:
    run = testbed.run(agents.calling, "555", answers=[never()])
    assert (run.state, testbed.answered) == (RunState.WAITING, [])


def test_late_needs_a_deadline(testbed: Testbed) -> None:
    with pytest.raises(InvalidInput, match="late is said of a question without a deadline"):
        testbed.run(agents.calling, "555", answers=[late(approve())])


def test_a_question_that_no_script_fits_fails_the_test(testbed: Testbed) -> None:
    with pytest.raises(Unanswered, match=r"nobody answers 'cancel_booking' .*offers approve, edit, reject"):
        testbed.run(agents.cancelling, 7, answers=[respond("cancel_*", "yes"), approve("book_*")])


def test_a_question_about_no_tool_is_known_by_its_kind(testbed: Testbed) -> None:
    async def asking(run: Run[Any]) -> Any:
        if run.resolutions:
            return str(run.resolutions[0].state)
        await run.suspend(Interrupt(payload={"which": "room"}))
        return None

    assert testbed.run(asking, answers=[respond("custom", 7)]).result == "resolved"


def test_a_run_that_dies_is_told_with_its_errors(testbed: Testbed) -> None:
    run = testbed.run(agents.failing)
    assert run.state is RunState.DEAD
    assert "no such room" in run.errors[-1]


def test_a_run_that_goes_on_for_ever_is_told_with_what_it_waits_for(testbed: Testbed) -> None:
    with pytest.raises(TimeoutError, match="the end of run") as found:
        testbed.run(agents.booking, [7], answers=[approve()], timeout=0)
    assert found.value.__notes__


def test_effects_count_once_for_each_key_and_each_time_without_one(testbed: Testbed) -> None:
    assert [effect("charged", key="a"), effect("charged", key="a"), effect("charged", key="b")] == [
        True,
        False,
        True,
    ]
    assert [effect("mailed"), effect("mailed")] == [True, True]
    assert testbed.effects == {"charged": 2, "mailed": 2}
    assert [happened("charged"), happened("charged", key="b"), happened("charged", key="c")] == [
        True,
        True,
        False,
    ]


def test_an_effect_outside_a_testbed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="effect is one of a test"):
        effect("charged")


async def test_a_test_of_either_colour_may_use_it(testbed: Testbed) -> None:
    assert testbed.run(agents.careful, 40).result == "paid 40"
    assert testbed.run(agents.blocking, "ada").result == "posted to ada"


def test_a_worker_that_cannot_serve_is_told(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "add", lambda *_: None)
    with pytest.raises(InvalidInput, match="agents are none"):
        testbed.run(agents.careful, 40)


def test_runs_can_be_started_however_far_the_clock_was_moved(testbed: Testbed) -> None:
    before = testbed.clock.now()
    testbed.clock.advance(timedelta(days=300))
    assert testbed.clock.now() - before >= timedelta(days=300)
    assert testbed.run(agents.careful, 40).result == "paid 40"
