"""Killing at every step: what it finds, what it lets pass, and what it cannot be asked."""

import sys
from pathlib import Path
from typing import Any

import pytest

from broker import Answer, Approve, InterruptRecord, InvalidInput, Respond, RunState
from broker.testing import (
    CrashUnsafe,
    Testbed,
    Unanswered,
    answer,
    approve,
    complete,
    never,
    respond,
    wait_until,
)
from broker.testing.crashing import Victims, target_of
from broker.testing.victim import Order

from . import agents

ONE_CALL = [
    "before lease", "after lease", "before begin 0:pay", "after begin 0:pay", "after effect paid",
    "before end 0:pay", "after end 0:pay", "before finish", "after finish",
]  # fmt: skip


def test_beyond_22_a_tool_executed_twice_is_found_at_the_moment_it_happens(testbed: Testbed) -> None:
    with pytest.raises(CrashUnsafe) as found:
        testbed.kill_at_every_step(agents.careless, 40)
    twice = ["'paid' happened twice, not once"]
    assert found.value.crashes.faults == {"after effect paid": twice, "before end 0:pay_without_key": twice}
    assert str(found.value) == (
        "2 of 9 kills change what the agent comes to\n"
        "killed after effect paid: 'paid' happened twice, not once\n"
        "killed before end 0:pay_without_key: 'paid' happened twice, not once"
    )


def test_beyond_22_an_effect_under_its_key_is_one_effect(testbed: Testbed) -> None:
    crashes = testbed.kill_at_every_step(agents.careful, 40)
    assert (crashes.calm.state, crashes.calm.result) == (RunState.FINISHED, "paid 40")
    assert [one.killed for one in crashes.trips] == ONE_CALL
    assert all(one.effects == {"paid": 1} for one in crashes.trips)
    assert testbed.effects == {}  # it was no run of this process


def test_a_key_that_changes_with_the_attempt_is_found(testbed: Testbed) -> None:
    with pytest.raises(CrashUnsafe, match="killed before end 0:pay_by_attempt: 'paid' happened twice"):
        testbed.kill_at_every_step(agents.mistaken, 40)


def test_an_effect_between_two_calls_is_found_at_each_moment_after_it(testbed: Testbed) -> None:
    with pytest.raises(CrashUnsafe) as found:
        testbed.kill_at_every_step(agents.outside, 40)
    after = [
        "after effect told the customer",
        "before begin 1:pay",
        "after begin 1:pay",
        "after effect paid #2",
        "before end 1:pay",
        "after end 1:pay",
        "before finish",
    ]
    assert list(found.value.crashes.faults) == after


def test_a_result_that_depends_on_the_attempt_is_found(testbed: Testbed) -> None:
    with pytest.raises(CrashUnsafe, match="the result is 2, not 1"):
        testbed.kill_at_every_step(agents.counting)


def test_R04_an_agent_that_asks_and_waits_comes_to_the_same_whenever_it_is_killed(testbed: Testbed) -> None:
    answers = [approve("cancel_*"), complete("film", "v-9")]
    crashes = testbed.kill_at_every_step(agents.booking, [7], answers=answers)
    assert crashes.calm.result == ["cancelled 7", "v-9"]
    assert crashes.calm.effects == {"cancelled 7": 1, "filming": 1}
    assert {"after suspend", "before suspend #2", "before handle film"} <= set(crashes.calm.moments)


def test_a_wrong_yes_about_a_call_in_doubt_is_found(testbed: Testbed) -> None:
    with pytest.raises(CrashUnsafe, match="killed before end c1: 'mailed' happened twice"):
        testbed.kill_at_every_step(agents.mailing, "ada", answers=[approve("mail")])


def test_a_result_for_a_call_in_doubt_that_never_ran_is_found(testbed: Testbed) -> None:
    with pytest.raises(CrashUnsafe) as found:
        testbed.kill_at_every_step(agents.mailing, "ada", answers=[respond("mail", "mailed ada")])
    assert found.value.crashes.faults == {"after begin c1": ["'mailed' happened never, not once"]}


def test_somebody_who_looks_before_he_answers_a_doubt_does_no_harm(testbed: Testbed) -> None:
    def look(_: InterruptRecord) -> Answer:
        return Respond(payload="mailed ada") if testbed.effects.get("mailed") else Approve()

    testbed.kill_at_every_step(agents.mailing, "ada", answers=[answer("mail", look, reason="may_have_run")])


def test_a_tool_whose_second_effect_is_lost_is_found(testbed: Testbed) -> None:
    with pytest.raises(CrashUnsafe) as found:
        testbed.kill_at_every_step(agents.halving, 40)
    assert found.value.crashes.faults == {"after effect charged": ["'told of 40' happened never, not once"]}


def test_an_agent_that_takes_another_way_each_time_is_told(testbed: Testbed) -> None:
    with pytest.raises(CrashUnsafe, match="did not come to this moment again") as found:
        testbed.kill_at_every_step(agents.wandering, 40)
    begin = next(moment for moment in found.value.crashes.calm.moments if moment.startswith("before begin"))
    assert begin in found.value.crashes.faults


def test_questions_that_nobody_answers_in_time_end_alike_whenever_it_is_killed(testbed: Testbed) -> None:
    crashes = testbed.kill_at_every_step(agents.cancelling, 7, answers=[never()])
    assert "Nobody answered in time" in str(crashes.calm.result)
    assert crashes.calm.effects == {}


def test_a_worker_ends_with_the_process_that_started_it(testbed: Testbed, tmp_path: Path) -> None:
    traces = str(tmp_path / "moments"), str(tmp_path / "effects")
    victims = Victims(agents.careful, tmp_path / "log")
    victims.open()
    with victims.worker(Order(testbed.url, testbed.namespace, {}, *traces)) as worker:
        victims.close()
        with pytest.raises(RuntimeError, match="a worker ended with 1"):
            wait_until(worker.code, what="its end")


def test_a_plain_function_is_killed_too(testbed: Testbed) -> None:
    crashes = testbed.kill_at_every_step(agents.blocking, "ada")
    assert crashes.calm.effects == {"posted": 1}


def test_an_agent_may_be_named_by_a_text(testbed: Testbed) -> None:
    crashes = testbed.kill_at_every_step(f"{agents.__name__}:support.resume", "ada")
    assert crashes.calm.result == "hello, ada"


def test_an_agent_that_dies_undisturbed_is_told(testbed: Testbed) -> None:
    with pytest.raises(CrashUnsafe, match=r"the run is dead without a kill \(.*no such room") as found:
        testbed.kill_at_every_step(agents.failing)
    assert found.value.crashes.trips == ()


def test_a_question_that_nobody_answers_is_told(testbed: Testbed) -> None:
    with pytest.raises(Unanswered, match="nobody answers 'cancel_booking'"):
        testbed.kill_at_every_step(agents.cancelling, 7, answers=[approve("film")])


def test_an_agent_that_only_this_process_has_is_refused(testbed: Testbed) -> None:
    async def local(_: object) -> None:
        """Nothing."""

    refused: list[Any] = [local, lambda _: None, agents.support, agents.support.resume, "no_attribute"]
    for agent in refused:
        with pytest.raises(InvalidInput, match=r"agent .* cannot be found by another process"):
            testbed.kill_at_every_step(agent)


def test_a_module_that_cannot_be_imported_is_told_with_its_fault(testbed: Testbed) -> None:
    with pytest.raises(InvalidInput, match="No module named 'no_such_module'"):
        testbed.kill_at_every_step("no_such_module:agent")


def test_a_module_that_pytest_imported_by_its_path_is_found_by_its_file(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents.careful, "__module__", "imported_by_path")
    monkeypatch.setitem(sys.modules, "imported_by_path", agents)
    assert target_of(agents.careful).file == agents.__file__
    assert testbed.kill_at_every_step(agents.careful, 2).calm.result == "paid 2"
    assert tmp_path.exists()
