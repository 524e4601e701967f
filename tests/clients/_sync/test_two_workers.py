# Generated from tests/clients/_async/test_two_workers.py by tests/tools/unasync.py (make sync): do not edit.
"""Two workers that hold the same run, one of them too long, in this colour; and a verdict that goes at a bad time."""

from threading import Event
from typing import Any

import pytest

from broker import (
    Approve,
    Broker,
    Doubt,
    RunState,
    StaleLease,
    current_call,
    gated,
    tool,
)
from tests.clock import Clock
from tests.journal.asked import call

from ._runtime import begin, result, until
from .journaling import Agent, talking


class Slow:
    """A tool that does not return before it is let go, the first time it is called."""

    def __init__(self) -> None:
        self.entered = Event()
        self.let_go = Event()
        self.fences: list[int] = []

    def work(self) -> str:
        self.fences.append(current_call().fence)
        if len(self.fences) == 1:
            self.entered.set()
            self.let_go.wait(20)
            return "from the one that was too slow"
        return "from the one that went on"


@pytest.mark.report("RA23")
@pytest.mark.parametrize("how", [tool(), gated, tool(on_doubt=Doubt.ASK)], ids=["inline", "gated", "asking"])
def test_RA23_the_older_worker_records_nothing(timed: Broker, clock: Clock, how: Any) -> None:
    """Rule 16, X5: it wakes when another one has gone on; its result and all it does after that are refused.

    Off: `holds` of the prelude, true for whoever asks.
    """
    slow, after = Slow(), list[str]()

    def work() -> str:
        return slow.work()

    def next_one() -> str:
        after.append("next")
        return "next"

    turns = ([call("c1", "work")], [call("c2", "next_one")])
    tools = [how(work), next_one]
    older, newer = (Agent(timed, clock, talking(*turns, tools=tools)) for _ in range(2))
    if how is gated:
        older.start()
        older.answer("c1", Approve())
        first = begin(older.go)
    else:
        first = begin(older.start)
    until(slow.entered.is_set)
    older.stop_renewing()
    newer.run_id = older.run_id
    state = newer.go()
    if state is RunState.WAITING:
        newer.answer("c1~1", Approve())
        state = newer.go()
    assert state is RunState.FINISHED
    slow.let_go.set()
    assert result(first) is RunState.FINISHED
    assert isinstance(older.error, StaleLease)
    assert newer.result() == ["from the one that went on", "next"]
    assert after == ["next"]
    assert slow.fences == sorted(set(slow.fences))
