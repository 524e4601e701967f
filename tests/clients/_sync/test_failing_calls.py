# Generated from tests/clients/_async/test_failing_calls.py by tests/tools/unasync.py (make sync): do not edit.
"""The calls of a turn that fail, time out or do not fit: told to the model, in this colour."""

from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any

import pytest

from broker import (
    Broker,
    CallFailed,
    InvalidInput,
    JournalFull,
    JournalMismatch,
    Limits,
    RunState,
    Settings,
    StaleLease,
    tool,
)
from broker.testing import RunningServer
from tests.clock import MOVABLE, Clock
from tests.journal.asked import call

from ._runtime import Run, together
from .journaling import Agent, Model, loop, talking
from .test_tool_calls import search


def speechless() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError

    raise Odd


def garbled() -> None:
    raise ValueError("\ud800" + "x" * 9000)


def stale() -> None:
    raise StaleLease("run_of_another")


def objects() -> Any:
    return object()


def endless() -> Any:
    return float("nan")


def huge() -> str:
    return "x" * (1024 * 1024 + 2000)


def raises() -> None:
    raise LookupError("no such booking")


def exits() -> None:
    raise SystemExit(3)


FAILING = {
    raises: "Error (LookupError): no such booking",
    exits: "Error (SystemExit): 3",
    speechless: "Error: Odd",
    garbled: "Error (ValueError): ?" + "x" * 1999,
    stale: "Error (StaleLease): The lease on run 'run_of_another'",
    objects: "Error (InvalidInput): result ",
    endless: "Error (InvalidInput): result ",
    huge: "Error (InvalidInput): Result ",
}


@pytest.mark.parametrize("function", FAILING, ids=lambda function: function.__name__)
def test_a_failure_of_a_tool_is_its_result(timed: Broker, clock: Clock, function: Any) -> None:
    """A24: told to the model, recorded, and not made again."""
    model = Model([call("c1", function.__name__)])

    def handler(run: Run[Any]) -> list[Any]:
        found = loop(run, model, [function])
        if not crashed:
            crashed.append(found)
            agent.die()
        return found

    crashed: list[list[Any]] = []
    agent = Agent(timed, clock, handler)
    assert [agent.start(), agent.go()] == [RunState.LEASED, RunState.FINISHED]
    assert agent.result() == crashed[0]
    assert crashed[0][0].startswith(FAILING[function])


def test_a_tool_out_of_time_has_failed(timed: Broker, clock: Clock) -> None:
    """A24: a raise, not a hang. The plain function goes on by itself, and changes nothing any more."""
    over = Event()

    @tool(timeout=timedelta(milliseconds=20))
    def slow() -> str:
        over.wait(10)
        return "too late"

    agent = Agent(timed, clock, talking([call("c1", "slow")], tools=[slow]))
    assert agent.start() is RunState.FINISHED
    over.set()
    assert agent.result() == ["Error (TimedOut): timed out after 0.02 s; it may be at work still"]


def test_an_error_of_its_own_about_time_is_no_time_out(timed: Broker, clock: Clock) -> None:
    @tool(timeout=timedelta(minutes=1))
    def slow() -> str:
        raise TimeoutError("the bank is slow")

    agent = Agent(timed, clock, talking([call("c1", "slow")], tools=[slow]))
    agent.start()
    assert agent.result() == ["Error (TimeoutError): the bank is slow"]


def test_one_call_by_itself(timed: Broker, clock: Clock) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    def handler(run: Run[Any]) -> list[Any]:
        return [run.call(add, {"a": 1, "b": 2}), run.call(add, {"a": 1, "b": 3}, call_id="c9")]

    agent = Agent(timed, clock, handler)
    agent.start()
    assert agent.result() == [3, 4]


def test_one_call_that_fails_raises(timed: Broker, clock: Clock) -> None:
    def handler(run: Run[Any]) -> None:
        run.call(raises)

    agent = Agent(timed, clock, handler)
    assert agent.start() is RunState.READY
    assert isinstance(agent.error, CallFailed)
    assert (agent.error.tool, agent.error.kind, agent.error.text) == (
        "raises",
        "LookupError",
        "no such booking",
    )


def test_many_calls_at_the_same_time(timed: Broker, clock: Clock) -> None:
    def echo(n: int) -> int:
        return n

    def handler(run: Run[Any]) -> list[Any]:
        return together(*(partial(run.call, echo, {"n": n}, call_id=f"c{n}") for n in range(12)))

    agent = Agent(timed, clock, handler)
    agent.start()
    assert agent.result() == list(range(12))


def test_a_model_that_answers_otherwise_runs_nothing(timed: Broker, clock: Clock) -> None:
    """After a crash before its turn was recorded it may; after that, other arguments under an id are a mismatch.

    Off: guard `journal-digest` of begin.lua.
    """
    ran: list[int] = []

    def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    def handler(run: Run[Any]) -> None:
        run.calls([call("c1", "pay", amount=40 if not ran else 400)], [pay])
        agent.die()

    agent = Agent(timed, clock, handler)
    assert [agent.start(), agent.go()] == [RunState.LEASED, RunState.DEAD]
    assert isinstance(agent.error, JournalMismatch)
    assert ran == [40]


def test_the_order_of_arguments_is_no_matter(timed: Broker, clock: Clock) -> None:
    """A12."""

    def pay(amount: int, to: str) -> str:
        return f"{amount} to {to}"

    def handler(run: Run[Any]) -> Any:
        arguments = {"amount": 40, "to": "x"} if not crashed else {"to": "x", "amount": 40.0}
        (message,) = run.calls([call("c1", "pay", **arguments)], [pay])
        if not crashed:
            crashed.append(1)
            agent.die()
        return message["content"]

    crashed: list[int] = []
    agent = Agent(timed, clock, handler)
    agent.start()
    agent.go()
    assert agent.result() == "40 to x"


def test_a_tool_may_make_steps_and_calls(timed: Broker, clock: Clock) -> None:
    """A helper agent as a tool: what it did before a crash comes back to it."""
    ran: list[str] = []

    def work(name: str) -> str:
        ran.append(name)
        return name

    def handler(run: Run[Any]) -> list[Any]:
        def research(name: str) -> str:
            found = str(run.step(work, name)) + str(run.call(work, {"name": "deep"}))
            if not crashed:
                crashed.append(1)
                agent.die()
            return found

        one = run.call(research, {"name": "a"}, call_id="c1")
        return [one, run.step(work, "after")]

    crashed: list[int] = []
    agent = Agent(timed, clock, handler)
    assert [agent.start(), agent.go()] == [RunState.LEASED, RunState.FINISHED]
    assert agent.result() == ["adeep", "after"]
    assert ran == ["a", "deep", "after"]


@pytest.fixture
def small(server: RunningServer, namespace: str) -> Broker:
    """A broker whose journals are small."""
    settings = Settings(limits=Limits(journal_entries=6))
    return Broker(server.url, namespace=namespace, settings=settings, rendering=MOVABLE)


@pytest.mark.report("RA50")
def test_a_long_journal_is_warned_about_and_then_refused(
    small: Broker, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """At half a warning, once; at full the run is dead before anything more runs, with the remedy among its errors."""
    ran: list[int] = []

    def work(n: int) -> int:
        ran.append(n)
        return n

    def handler(run: Run[Any]) -> None:
        for n in range(10):
            run.step(work, n)

    with small:
        agent = Agent(small, clock, handler)
        assert agent.start() is RunState.DEAD
        assert isinstance(agent.error, JournalFull)
        assert ran == [0, 1, 2, 3, 4, 5]
        warned = [line.getMessage() for line in caplog.records if "half full" in line.getMessage()]
        assert len(warned) == 1
        assert "(3 entries" in warned[0]
        assert "run.checkpoint" in (agent.record()).errors[0]


def test_checkpoints_make_room(small: Broker, clock: Clock) -> None:
    def work(n: int) -> int:
        return n

    def handler(run: Run[Any]) -> int:
        for n in range(run.checkpointed or 0, 20):
            run.step(work, n)
            run.call(work, {"n": n}, call_id="again")
            run.checkpoint(n + 1)
        return 20

    with small:
        agent = Agent(small, clock, handler)
        assert agent.start() is RunState.FINISHED


def test_two_tools_of_one_name_are_refused(timed: Broker, clock: Clock) -> None:
    def handler(run: Run[Any]) -> None:
        run.calls([], [search, search])

    agent = Agent(timed, clock, handler)
    agent.start()
    assert isinstance(agent.error, InvalidInput)
