# Generated from tests/clients/_async/test_places.py by tests/tools/unasync.py (make sync): do not edit.
"""What the journal makes of another entry at the place of one without an id, in this colour: a mismatch, always."""

from collections.abc import Callable
from typing import Any

import pytest

from broker import Approve, Broker, JournalMismatch, RunState, gated
from tests.clock import Clock

from ._runtime import Run
from .journaling import Agent


class Effects:
    """What was done, by tools of which some have to be asked about."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.refund = gated(self.gated_tool("refund"))
        self.pay = gated(self.gated_tool("pay"))

    def gated_tool(self, name: str) -> Callable[..., Any]:
        """A function of that name."""

        def tool(amount: int) -> str:
            return self.work(f"{name} {amount}")

        tool.__name__ = name
        return tool

    def work(self, what: str) -> str:
        """Notes an effect; as a tool it is not asked about."""
        self.done.append(what)
        return what


@pytest.fixture
def effects() -> Effects:
    return Effects()


def check_mismatch(agent: Agent, said: str) -> None:
    """The attempt ended with both digests, which the run is dead with."""
    assert isinstance(agent.error, JournalMismatch)
    assert agent.error.code in said
    assert agent.error.recorded in said
    assert agent.error.found in said
    assert agent.error.recorded != agent.error.found


def test_another_tool_at_the_place_of_an_approved_call_runs_nothing(
    timed: Broker, clock: Clock, effects: Effects
) -> None:
    """A28: the approval is of another tool, and is not dropped for a new question. Off: guard `place-tool`."""
    tools = [effects.pay, effects.refund, effects.pay]

    def handler(run: Run[Any]) -> Any:
        return run.call(tools.pop(0), {"amount": 5})

    agent = Agent(timed, clock, handler)
    assert agent.start() is RunState.WAITING
    agent.answer("0:pay", Approve())
    assert agent.go() is RunState.DEAD
    check_mismatch(agent, (agent.record()).errors[-1])
    assert effects.done == []
    timed.dead.requeue(agent.run_id)
    assert agent.go() is RunState.FINISHED
    assert effects.done == ["pay 5"]


def test_another_tool_at_the_place_of_a_call_that_ran_runs_nothing(
    timed: Broker, clock: Clock, effects: Effects
) -> None:
    def other(what: str) -> str:
        return effects.work(f"other {what}")

    tools = [effects.work, other]

    def handler(run: Run[Any]) -> None:
        run.call(tools.pop(0), {"what": "a"})
        agent.die()

    agent = Agent(timed, clock, handler)
    assert [agent.start(), agent.go()] == [RunState.LEASED, RunState.DEAD]
    check_mismatch(agent, (agent.record()).errors[-1])
    assert effects.done == ["a"]


@pytest.mark.parametrize("names", [["gone", "work"], ["work", "gone"]])
def test_a_tool_at_the_place_of_a_call_that_could_not_be_made_runs_nothing(
    timed: Broker, clock: Clock, effects: Effects, names: list[str]
) -> None:
    """And the other way round: that it could not be made is recorded in its place, not beside what is there."""
    left = list(names)

    def handler(run: Run[Any]) -> None:
        run.calls([{"name": left.pop(0), "arguments": {"what": "a"}}], [effects.work])
        agent.die()

    agent = Agent(timed, clock, handler)
    assert [agent.start(), agent.go()] == [RunState.LEASED, RunState.DEAD]
    check_mismatch(agent, (agent.record()).errors[-1])
    assert effects.done == (["a"] if names[0] == "work" else [])


@pytest.mark.parametrize("kinds", [["step", "call"], ["call", "step"]])
def test_a_step_at_the_place_of_a_call_is_a_mismatch(
    timed: Broker, clock: Clock, effects: Effects, kinds: list[str]
) -> None:
    """And a call at the place of a step: the kind differs. Off: guards `place-tool` and `place-kind`."""
    left = list(kinds)

    def handler(run: Run[Any]) -> None:
        kind = left.pop(0)
        if kind == "step":
            run.step(effects.work, kind)
        else:
            run.call(effects.work, {"what": kind})
        agent.die()

    agent = Agent(timed, clock, handler)
    assert [agent.start(), agent.go()] == [RunState.LEASED, RunState.DEAD]
    check_mismatch(agent, (agent.record()).errors[-1])
    assert effects.done == kinds[:1]


def test_names_that_look_like_a_place_are_none(timed: Broker, clock: Clock, effects: Effects) -> None:
    """A call with the id `1:work` does not stand at place 1, whatever came there first."""

    def handler(run: Run[Any]) -> list[Any]:
        said = [run.call(effects.work, {"what": "named"}, call_id="1:work")]
        said.append(run.step(effects.work, "first"))
        if run.attempt == 1:
            agent.die()
        said.append(run.step(effects.work, "second"))
        return said

    agent = Agent(timed, clock, handler)
    agent.start()
    assert agent.go() is RunState.FINISHED
    assert effects.done == ["named", "first", "second"]


def test_places_are_counted_anew_behind_a_checkpoint(timed: Broker, clock: Clock, effects: Effects) -> None:
    """Another tool may stand there."""

    def handler(run: Run[Any]) -> Any:
        if run.checkpointed is None:
            run.call(effects.work, {"what": "before"})
            run.checkpoint("cut")
            agent.die()
        return run.call(effects.pay, {"amount": 5})

    agent = Agent(timed, clock, handler)
    agent.start()
    assert agent.go() is RunState.WAITING
    agent.answer("1/0:pay", Approve())
    assert agent.go() is RunState.FINISHED
    assert effects.done == ["before", "pay 5"]
