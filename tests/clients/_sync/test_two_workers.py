# Generated from tests/clients/_async/test_two_workers.py by tests/tools/unasync.py (make sync): do not edit.
"""Two workers that hold the same run, one of them too long, in this colour; and a verdict that goes at a bad time."""

from collections.abc import Sequence
from threading import Event
from typing import Any

import pytest
import redis

from broker import (
    Approve,
    Broker,
    Corrupt,
    Doubt,
    Principal,
    Reject,
    RunState,
    StaleLease,
    Verdict,
    current_call,
    gated,
    tool,
)
from broker.store.keys import Keyspace
from broker.telemetry import Observation, Silent
from broker.testing import RunningServer
from tests.clock import MOVABLE, Clock
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


@pytest.mark.parametrize("how", [tool(), gated, tool(on_doubt=Doubt.ASK)], ids=["inline", "gated", "asking"])
def test_the_older_worker_records_nothing(timed: Broker, clock: Clock, how: Any) -> None:
    """Rule 16, X5: it wakes when another one has gone on; its result and all it does after that are refused."""
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


class Tampering(Silent):
    """Somebody who puts another verdict in the place of the one a call was begun by, right after the begin."""

    def __init__(self, url: str, p: Any, data: bytes | None) -> None:
        self.url, self.p, self.data = url, p, data

    def told(self, calls: Sequence[Observation], /) -> None:
        for one in calls:
            if one.op == "begin" and one.outcome == "run" and one.interrupt_ids:
                with redis.Redis.from_url(self.url) as client:
                    key = self.p.key("verdict", one.interrupt_ids[0])
                    client.set(key, self.data) if self.data else client.delete(key)


BY = Principal.local("me")
OTHERS = {
    "missing": None,
    "rejected": Verdict(interrupt_id="x", answer=Reject(reason="no"), by=BY, op="op").to_bytes(),
    "of another question": Verdict(interrupt_id="x", answer=Approve(), by=BY, op="op").to_bytes(),
}


@pytest.mark.parametrize("other", OTHERS)
def test_the_verdict_is_read_again_after_the_begin(
    server: RunningServer, namespace: str, clock: Clock, other: str
) -> None:
    """P1, rule 35: what was there when the lease began does not count; nothing runs without it."""
    ran: list[int] = []

    @gated
    def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    tampering = Tampering(server.url, Keyspace(namespace, 1).partition(0), OTHERS[other])
    with Broker(server.url, namespace=namespace, by=BY, rendering=MOVABLE, observer=tampering) as broker:
        agent = Agent(broker, clock, talking([call("c1", "pay", amount=40)], tools=[pay]))
        agent.start()
        agent.answer("c1", Approve())
        assert agent.go() is RunState.READY
        assert isinstance(agent.error, Corrupt)
        assert agent.go() is RunState.READY
        assert "corrupt" in (agent.record()).errors[-1]
    assert ran == []
