# Generated from tests/clients/_async/test_said.py by tests/tools/unasync.py (make sync): do not edit.
"""Input that comes after a run was started, in this colour."""

from typing import Any

import pytest

from broker import (
    Accepted,
    Approve,
    Broker,
    Conflict,
    InvalidInput,
    Replayed,
    RunState,
    UnknownId,
    gated,
)
from tests.clock import Clock
from tests.journal.asked import call

from ._runtime import Run
from .journaling import Agent


@gated
def pay() -> str:
    return "paid"


def hears(run: Run[Any]) -> Any:
    """Looks at what was said before its call and after it; each look is on record."""
    before = run.step(run.said)
    run.calls([call("c1", "pay")], [pay])
    return [before, run.step(run.said)]


def test_what_is_said_while_a_run_waits_is_there_when_it_goes_on(timed: Broker, clock: Clock) -> None:
    """What it has heard before stays what it has heard, however often it is entered."""
    agent = Agent(timed, clock, hears)
    agent.start()
    assert isinstance(timed.runs.say(agent.run_id, {"text": "wait"}), Accepted)
    assert isinstance(timed.runs.say(agent.run_id, None, op="m-1"), Accepted)
    assert isinstance(timed.runs.say(agent.run_id, None, op="m-1"), Replayed)
    agent.answer("c1", Approve())
    assert agent.go() is RunState.FINISHED
    assert agent.result() == [[], [{"text": "wait"}, None]]
    assert isinstance(timed.runs.say(agent.run_id, "late"), Conflict)
    assert timed.runs.said(agent.run_id) == ({"text": "wait"}, None)


def test_what_cannot_be_said_is_refused(timed: Broker, clock: Clock) -> None:
    agent = Agent(timed, clock, hears)
    agent.start()
    for message in (float("nan"), object(), "x" * 2_000_000):
        with pytest.raises(InvalidInput, match="message"):
            timed.runs.say(agent.run_id, message)
    with pytest.raises(InvalidInput, match="op"):
        timed.runs.say(agent.run_id, "x", op="a b")
    assert timed.runs.said(agent.run_id) == ()


def test_nothing_is_said_to_a_run_that_is_not_there(timed: Broker) -> None:
    started = timed.start("airline", session="s")
    other = started.run_id[:-4] + "0000"
    with pytest.raises(UnknownId):
        timed.runs.say(other, "x")
