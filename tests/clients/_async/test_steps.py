"""The journal's steps, in this colour: recorded once, back at every replay, with the type they had."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from broker import AsyncBroker, InvalidInput, JournalMismatch, RunState
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


async def a_model() -> Turn:
    return Turn(text="hi", at=NOW)


async def a_dataclass() -> Price:
    return Price(Decimal("12.50"), date(2026, 1, 2))


async def a_list() -> list[Turn | None]:
    return [Turn(text="x", at=NOW), None]


async def a_map() -> Row:
    return {"name": "n", "size": 2**60}


async def a_tuple() -> tuple[int, str]:
    return 1, "two"


async def nothing() -> None:
    return None


async def plain() -> Any:
    return {"a": [1, 2.5, None, True, "ü"]}


TYPED = [a_model, a_dataclass, a_list, a_map, a_tuple, nothing, plain]


@pytest.mark.parametrize("function", TYPED, ids=lambda function: function.__name__)
async def test_a_step_comes_back_with_its_type(
    timed: AsyncBroker, clock: Clock, function: Callable[[], Any]
) -> None:
    seen: list[Any] = []

    async def handler(run: Run[Any]) -> str:
        seen.append(await run.step(function))
        if len(seen) == 1:
            agent.die()
        return "done"

    agent = Agent(timed, clock, handler)
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.FINISHED]
    assert seen[0] == seen[1]
    assert type(seen[0]) is type(seen[1])
    assert seen[0] == await function()


async def test_a_step_runs_once(timed: AsyncBroker, clock: Clock) -> None:
    """X4, rule 33: also after a second crash."""
    ran: list[int] = []
    entered: list[int] = []

    async def work(number: int) -> int:
        ran.append(number)
        return number * 2

    async def handler(run: Run[Any]) -> list[int]:
        found = [await run.step(work, 1), await run.step(work, 2)]
        entered.append(len(entered))
        if len(entered) < 4:
            agent.die()
        return [*found, await run.step(work, 3)]

    agent = Agent(timed, clock, handler)
    await agent.start()
    for _ in range(3):
        await agent.go()
    assert await agent.result() == [2, 4, 6]
    assert ran == [1, 2, 3]


async def test_a_step_that_raises_is_made_again(timed: AsyncBroker, clock: Clock) -> None:
    ran: list[int] = []

    async def flaky() -> str:
        ran.append(1)
        if len(ran) == 1:
            raise ConnectionError("busy")
        return "fine"

    async def handler(run: Run[Any]) -> str:
        found: str = await run.step(flaky)
        return found

    agent = Agent(timed, clock, handler)
    assert [await agent.start(), await agent.go()] == [RunState.READY, RunState.FINISHED]
    assert "ConnectionError: busy" in (await agent.record()).errors[0]
    assert (await agent.result(), len(ran)) == ("fine", 2)


async def test_nothing_is_recorded_behind_a_step_that_raised(timed: AsyncBroker, clock: Clock) -> None:
    """It runs again and may end otherwise: what a handler made of its error must not be in the journal."""
    ran: list[str] = []

    async def flaky() -> str:
        ran.append("flaky")
        if len(ran) == 1:
            raise ConnectionError("busy")
        return "fine"

    async def other(_what: str) -> str:
        ran.append("other")
        return "other"

    async def handler(run: Run[Any]) -> str:
        try:
            found: str = await run.step(flaky)
        except ConnectionError:
            found = await run.step(other, "instead")
        return found

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.READY
    assert ran == ["flaky"]
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == "fine"


async def test_a_loop_that_swallows_everything_ends(timed: AsyncBroker, clock: Clock) -> None:
    tried: list[int] = []

    async def broken() -> str:
        raise ConnectionError

    async def handler(run: Run[Any]) -> str:
        while len(tried) < 100:
            tried.append(1)
            try:
                return str(await run.step(broken))
            except Exception:  # noqa: BLE001, S112 - that is what is tried
                continue
        return "never"

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.READY
    assert len(tried) == 2


async def test_concurrent_steps_have_keys(timed: AsyncBroker, clock: Clock) -> None:
    """Steps whose order depends on time are known by their key, whichever comes first."""
    ran: list[str] = []

    async def work(name: str) -> str:
        ran.append(name)
        return name.upper()

    async def handler(run: Run[Any]) -> list[str]:
        names = ["a", "b", "c"] if not ran else ["c", "a", "b"]
        found = await together(*(partial(run.step, work, name, key=name) for name in names))
        if names[0] == "a":
            agent.die()
        return found

    agent = Agent(timed, clock, handler)
    await agent.start()
    await agent.go()
    assert await agent.result() == ["C", "A", "B"]
    assert sorted(ran) == ["a", "b", "c"]


async def test_a_key_is_for_one_step(timed: AsyncBroker, clock: Clock) -> None:
    async def handler(run: Run[Any]) -> None:
        await run.step(plain, key="k")
        await run.step(plain, key="k")

    agent = Agent(timed, clock, handler)
    await agent.start()
    assert isinstance(agent.error, InvalidInput)
    assert agent.error.field == "key"


async def test_steps_inside_steps_have_places_of_their_own(timed: AsyncBroker, clock: Clock) -> None:
    """What is inside is not entered again once the outer one has its result; those after it are found all the same."""
    ran: list[str] = []

    async def work(name: str) -> str:
        ran.append(name)
        return name

    async def handler(run: Run[Any]) -> list[str]:
        async def outer() -> str:
            return str(await run.step(work, "inner")) + str(await run.step(work, "second"))

        found = [await run.step(outer), await run.step(work, "after")]
        if ran.count("after") == 1 and len(entered) == 0:
            entered.append(1)
            agent.die()
        return found

    entered: list[int] = []
    agent = Agent(timed, clock, handler)
    await agent.start()
    await agent.go()
    assert await agent.result() == ["innersecond", "after"]
    assert ran == ["inner", "second", "after"]


async def test_another_step_at_a_place_is_a_mismatch(timed: AsyncBroker, clock: Clock) -> None:
    """Both digests are named, the run is dead at once, and nothing ran."""
    ran: list[str] = []

    async def work(name: str) -> str:
        ran.append(name)
        return name

    async def handler(run: Run[Any]) -> None:
        await run.step(work, "first" if not ran else "second")
        agent.die()

    agent = Agent(timed, clock, handler)
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.DEAD]
    assert isinstance(agent.error, JournalMismatch)
    assert ran == ["first"]
    (_lost, said) = (await agent.record()).errors
    assert "journal_mismatch" in said
    assert agent.error.recorded in said
    assert agent.error.found in said


async def test_a_mismatch_that_is_swallowed_counts(timed: AsyncBroker, clock: Clock) -> None:
    asked: list[str] = []

    async def work(name: str) -> str:
        asked.append(name)
        return name

    async def handler(run: Run[Any]) -> str:
        try:
            await run.step(work, str(len(asked)))
        except Exception:  # noqa: BLE001 - what is tried
            return "it went well"
        agent.die()
        return ""

    agent = Agent(timed, clock, handler)
    await agent.start()
    assert await agent.go() is RunState.DEAD
    assert asked == ["0"]


async def test_sets_have_one_order(timed: AsyncBroker, clock: Clock) -> None:
    """In each process another one: a digest must not depend on it."""
    words = [{"b", "a", "c"}, {"c", "b", "a"}]

    async def work(_names: set[str]) -> list[str]:
        return []

    async def handler(run: Run[Any]) -> None:
        await run.step(work, words.pop())
        if words:
            agent.die()

    agent = Agent(timed, clock, handler)
    await agent.start()
    assert await agent.go() is RunState.FINISHED


class Odd:
    """What has no JSON form."""


async def odd() -> Any:
    return Odd()


async def annotated() -> Odd:
    return Odd()


async def wrong() -> int:
    return "seven"  # type: ignore[return-value]


async def huge() -> str:
    return "x" * (1024 * 1024 + 2000)


@pytest.mark.parametrize("function", [odd, annotated, wrong, huge], ids=lambda function: function.__name__)
async def test_what_cannot_be_recorded_is_said(
    timed: AsyncBroker, clock: Clock, function: Callable[[], Any]
) -> None:
    async def handler(run: Run[Any]) -> None:
        await run.step(function)

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.READY
    assert isinstance(agent.error, InvalidInput)


async def test_a_checkpoint_takes_the_place_of_the_journal(timed: AsyncBroker, clock: Clock) -> None:
    """Places begin anew behind it, and the handler goes on from its state."""
    ran: list[int] = []

    async def work(number: int) -> int:
        ran.append(number)
        return number

    async def handler(run: Run[Any]) -> list[int]:
        done: list[int] = run.checkpointed or []
        while len(done) < 6:
            done.append(await run.step(work, len(done)))
            if len(done) % 2 == 0:
                await run.checkpoint(done)
            if len(ran) in (3, 5):
                ran.append(-1)
                agent.die()
        return done

    agent = Agent(timed, clock, handler)
    for state in (await agent.start(), await agent.go()):
        assert state is RunState.LEASED
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == [0, 1, 2, 3, 4, 5]
    assert [number for number in ran if number >= 0] == [0, 1, 2, 3, 4, 5]


async def test_a_checkpoint_is_made_between_calls(timed: AsyncBroker, clock: Clock) -> None:
    async def handler(run: Run[Any]) -> None:
        async def inside() -> None:
            await run.checkpoint([])

        await run.step(inside)

    agent = Agent(timed, clock, handler)
    await agent.start()
    assert isinstance(agent.error, InvalidInput)
    assert agent.error.field == "checkpoint"


async def test_a_finished_attempt_makes_no_steps(timed: AsyncBroker, clock: Clock) -> None:
    kept: list[Run[Any]] = []

    async def handler(run: Run[Any]) -> str:
        kept.append(run)
        return "done"

    agent = Agent(timed, clock, handler)
    await agent.start()
    with pytest.raises(Exception, match="no longer held"):
        await kept[0].step(plain)


def test_a_minute_is_longer_than_a_lease() -> None:
    """What `Agent.go` rests on."""
    assert timedelta(minutes=1) > timedelta(seconds=15 + 30)
