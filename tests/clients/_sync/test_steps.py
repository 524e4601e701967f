# Generated from tests/clients/_async/test_steps.py by tests/tools/unasync.py (make sync): do not edit.
"""The journal's steps, in this colour: recorded once, back at every replay, with the type they had."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from broker import Broker, InvalidInput, JournalMismatch, RunState
from tests.clock import Clock

from ._runtime import Run, together
from .journaling import Agent


class Turn(BaseModel):
    text: str
    at: datetime


@dataclass
class Price:
    amount: Decimal
    until: date


class Row(TypedDict):
    name: str
    size: int


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def a_model() -> Turn:
    return Turn(text="hi", at=NOW)


def a_dataclass() -> Price:
    return Price(Decimal("12.50"), date(2026, 1, 2))


def a_list() -> list[Turn | None]:
    return [Turn(text="x", at=NOW), None]


def a_map() -> Row:
    return {"name": "n", "size": 2**60}


def a_tuple() -> tuple[int, str]:
    return 1, "two"


def nothing() -> None:
    return None


def plain() -> Any:
    return {"a": [1, 2.5, None, True, "ü"]}


TYPED = [a_model, a_dataclass, a_list, a_map, a_tuple, nothing, plain]


@pytest.mark.parametrize("function", TYPED, ids=lambda function: function.__name__)
def test_a_step_comes_back_with_its_type(timed: Broker, clock: Clock, function: Callable[[], Any]) -> None:
    seen: list[Any] = []

    def handler(run: Run[Any]) -> str:
        seen.append(run.step(function))
        if len(seen) == 1:
            agent.die()
        return "done"

    agent = Agent(timed, clock, handler)
    assert [agent.start(), agent.go()] == [RunState.LEASED, RunState.FINISHED]
    assert seen[0] == seen[1]
    assert type(seen[0]) is type(seen[1])
    assert seen[0] == function()


def test_a_step_runs_once(timed: Broker, clock: Clock) -> None:
    """X4, rule 33: also after a second crash."""
    ran: list[int] = []
    entered: list[int] = []

    def work(number: int) -> int:
        ran.append(number)
        return number * 2

    def handler(run: Run[Any]) -> list[int]:
        found = [run.step(work, 1), run.step(work, 2)]
        entered.append(len(entered))
        if len(entered) < 4:
            agent.die()
        return [*found, run.step(work, 3)]

    agent = Agent(timed, clock, handler)
    agent.start()
    for _ in range(3):
        agent.go()
    assert agent.result() == [2, 4, 6]
    assert ran == [1, 2, 3]


def test_a_step_that_raises_is_made_again(timed: Broker, clock: Clock) -> None:
    ran: list[int] = []

    def flaky() -> str:
        ran.append(1)
        if len(ran) == 1:
            raise ConnectionError("busy")
        return "fine"

    def handler(run: Run[Any]) -> str:
        found: str = run.step(flaky)
        return found

    agent = Agent(timed, clock, handler)
    assert [agent.start(), agent.go()] == [RunState.READY, RunState.FINISHED]
    assert "ConnectionError: busy" in (agent.record()).errors[0]
    assert (agent.result(), len(ran)) == ("fine", 2)


def test_nothing_is_recorded_behind_a_step_that_raised(timed: Broker, clock: Clock) -> None:
    """It runs again and may end otherwise: what a handler made of its error must not be in the journal."""
    ran: list[str] = []

    def flaky() -> str:
        ran.append("flaky")
        if len(ran) == 1:
            raise ConnectionError("busy")
        return "fine"

    def other(_what: str) -> str:
        ran.append("other")
        return "other"

    def handler(run: Run[Any]) -> str:
        try:
            found: str = run.step(flaky)
        except ConnectionError:
            found = run.step(other, "instead")
        return found

    agent = Agent(timed, clock, handler)
    assert agent.start() is RunState.READY
    assert ran == ["flaky"]
    assert agent.go() is RunState.FINISHED
    assert agent.result() == "fine"


def test_a_loop_that_swallows_everything_ends(timed: Broker, clock: Clock) -> None:
    tried: list[int] = []

    def broken() -> str:
        raise ConnectionError

    def handler(run: Run[Any]) -> str:
        while len(tried) < 100:
            tried.append(1)
            try:
                return str(run.step(broken))
            except Exception:  # noqa: BLE001, S112 - that is what is tried
                continue
        return "never"

    agent = Agent(timed, clock, handler)
    assert agent.start() is RunState.READY
    assert len(tried) == 2


def test_concurrent_steps_have_keys(timed: Broker, clock: Clock) -> None:
    """Steps whose order depends on time are known by their key, whichever comes first."""
    ran: list[str] = []

    def work(name: str) -> str:
        ran.append(name)
        return name.upper()

    def handler(run: Run[Any]) -> list[str]:
        names = ["a", "b", "c"] if not ran else ["c", "a", "b"]
        found = together(*(partial(run.step, work, name, key=name) for name in names))
        if names[0] == "a":
            agent.die()
        return found

    agent = Agent(timed, clock, handler)
    agent.start()
    agent.go()
    assert agent.result() == ["C", "A", "B"]
    assert sorted(ran) == ["a", "b", "c"]


def test_a_key_is_for_one_step(timed: Broker, clock: Clock) -> None:
    def handler(run: Run[Any]) -> None:
        run.step(plain, key="k")
        run.step(plain, key="k")

    agent = Agent(timed, clock, handler)
    agent.start()
    assert isinstance(agent.error, InvalidInput)
    assert agent.error.field == "key"


def test_steps_inside_steps_have_places_of_their_own(timed: Broker, clock: Clock) -> None:
    """What is inside is not entered again once the outer one has its result; those after it are found all the same."""
    ran: list[str] = []

    def work(name: str) -> str:
        ran.append(name)
        return name

    def handler(run: Run[Any]) -> list[str]:
        def outer() -> str:
            return str(run.step(work, "inner")) + str(run.step(work, "second"))

        found = [run.step(outer), run.step(work, "after")]
        if ran.count("after") == 1 and len(entered) == 0:
            entered.append(1)
            agent.die()
        return found

    entered: list[int] = []
    agent = Agent(timed, clock, handler)
    agent.start()
    agent.go()
    assert agent.result() == ["innersecond", "after"]
    assert ran == ["inner", "second", "after"]


def test_another_step_at_a_place_is_a_mismatch(timed: Broker, clock: Clock) -> None:
    """Both digests are named, the run is dead at once, and nothing ran."""
    ran: list[str] = []

    def work(name: str) -> str:
        ran.append(name)
        return name

    def handler(run: Run[Any]) -> None:
        run.step(work, "first" if not ran else "second")
        agent.die()

    agent = Agent(timed, clock, handler)
    assert [agent.start(), agent.go()] == [RunState.LEASED, RunState.DEAD]
    assert isinstance(agent.error, JournalMismatch)
    assert ran == ["first"]
    (_lost, said) = (agent.record()).errors
    assert "journal_mismatch" in said
    assert agent.error.recorded in said
    assert agent.error.found in said


def test_a_mismatch_that_is_swallowed_counts(timed: Broker, clock: Clock) -> None:
    asked: list[str] = []

    def work(name: str) -> str:
        asked.append(name)
        return name

    def handler(run: Run[Any]) -> str:
        try:
            run.step(work, str(len(asked)))
        except Exception:  # noqa: BLE001 - what is tried
            return "it went well"
        agent.die()
        return ""

    agent = Agent(timed, clock, handler)
    agent.start()
    assert agent.go() is RunState.DEAD
    assert asked == ["0"]


def test_sets_have_one_order(timed: Broker, clock: Clock) -> None:
    """In each process another one: a digest must not depend on it."""
    words = [{"b", "a", "c"}, {"c", "b", "a"}]

    def work(_names: set[str]) -> list[str]:
        return []

    def handler(run: Run[Any]) -> None:
        run.step(work, words.pop())
        if words:
            agent.die()

    agent = Agent(timed, clock, handler)
    agent.start()
    assert agent.go() is RunState.FINISHED


class Odd:
    """What has no JSON form."""


def odd() -> Any:
    return Odd()


def annotated() -> Odd:
    return Odd()


def wrong() -> int:
    return "seven"  # type: ignore[return-value]


def huge() -> str:
    return "x" * (1024 * 1024 + 2000)


@pytest.mark.parametrize("function", [odd, annotated, wrong, huge], ids=lambda function: function.__name__)
def test_what_cannot_be_recorded_is_said(timed: Broker, clock: Clock, function: Callable[[], Any]) -> None:
    def handler(run: Run[Any]) -> None:
        run.step(function)

    agent = Agent(timed, clock, handler)
    assert agent.start() is RunState.READY
    assert isinstance(agent.error, InvalidInput)


def test_a_checkpoint_takes_the_place_of_the_journal(timed: Broker, clock: Clock) -> None:
    """Places begin anew behind it, and the handler goes on from its state."""
    ran: list[int] = []

    def work(number: int) -> int:
        ran.append(number)
        return number

    def handler(run: Run[Any]) -> list[int]:
        done: list[int] = run.checkpointed or []
        while len(done) < 6:
            done.append(run.step(work, len(done)))
            if len(done) % 2 == 0:
                run.checkpoint(done)
            if len(ran) in (3, 5):
                ran.append(-1)
                agent.die()
        return done

    agent = Agent(timed, clock, handler)
    for state in (agent.start(), agent.go()):
        assert state is RunState.LEASED
    assert agent.go() is RunState.FINISHED
    assert agent.result() == [0, 1, 2, 3, 4, 5]
    assert [number for number in ran if number >= 0] == [0, 1, 2, 3, 4, 5]


def test_a_checkpoint_is_made_between_calls(timed: Broker, clock: Clock) -> None:
    def handler(run: Run[Any]) -> None:
        def inside() -> None:
            run.checkpoint([])

        run.step(inside)

    agent = Agent(timed, clock, handler)
    agent.start()
    assert isinstance(agent.error, InvalidInput)
    assert agent.error.field == "checkpoint"


def test_a_finished_attempt_makes_no_steps(timed: Broker, clock: Clock) -> None:
    kept: list[Run[Any]] = []

    def handler(run: Run[Any]) -> str:
        kept.append(run)
        return "done"

    agent = Agent(timed, clock, handler)
    agent.start()
    with pytest.raises(Exception, match="no longer held"):
        kept[0].step(plain)


def test_a_minute_is_longer_than_a_lease() -> None:
    """What `Agent.go` rests on."""
    assert timedelta(minutes=1) > timedelta(seconds=15 + 30)
