# Generated from tests/clients/_async/test_in_place.py by tests/tools/unasync.py (make sync): do not edit.
"""What functions of the journal change in their arguments in place, in this colour."""

from typing import Any

import pytest

from broker import Broker, RunState, tool
from tests.clock import Clock

from ._runtime import Run
from .journaling import Agent


def adds(messages: list[dict[str, str]], *, notes: dict[str, Any]) -> str:
    """As an agent does that keeps its books in what it is given."""
    messages[0]["text"] += "!"
    messages.append({"text": "two"})
    notes["seen"] = True
    return "added"


def count(messages: list[dict[str, str]]) -> int:
    return len(messages)


@pytest.mark.report("RB9")
def test_RB9_what_is_changed_in_place_is_seen_at_no_entry(timed: Broker, clock: Clock) -> None:
    """Else the handler would see it until its worker dies, and ask for another step than is on record.

    Off: `own` in `Journal.step`. What a call is given is copied with its record.
    """
    entered: list[Any] = []

    def handler(run: Run[Any]) -> list[Any]:
        messages, notes = [{"text": "one"}], dict[str, Any]()
        said = [run.step(adds, messages, notes=notes)]
        said.append(run.call(tool()(adds), {"messages": messages, "notes": notes}, call_id="c1"))
        said.append(run.step(count, messages))
        entered.append((messages, notes))
        if len(entered) == 1:
            agent.die()
        return said

    agent = Agent(timed, clock, handler)
    assert agent.start() is RunState.LEASED
    assert agent.go() is RunState.FINISHED
    assert agent.result() == ["added", "added", 1]
    assert entered == [([{"text": "one"}], {})] * 2


def test_what_goes_around_in_circles_is_given_as_it_is(timed: Broker, clock: Clock) -> None:
    circle: list[Any] = []
    circle.append(circle)

    def handler(run: Run[Any]) -> int:
        found: int = run.step(count, circle)
        return found

    agent = Agent(timed, clock, handler)
    assert agent.start() is RunState.FINISHED
