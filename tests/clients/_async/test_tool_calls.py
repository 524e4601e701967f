"""The calls of a turn that nobody is asked about, in this colour: recorded, matched by id, their failures told."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from broker import (
    AsyncBroker,
    NotACall,
    RunState,
    current_call,
)
from tests.clock import Clock
from tests.journal.asked import call

from ._runtime import Run
from .journaling import Agent, Model, loop, talking


class Hit(BaseModel):
    name: str
    at: datetime


async def search(text: str) -> list[Hit]:
    return [Hit(name=text, at=datetime(2026, 1, 2, tzinfo=UTC))]


async def test_what_tools_return_is_what_the_model_reads(timed: AsyncBroker, clock: Clock) -> None:
    async def text() -> str:
        return "as it is"

    async def nothing() -> None:
        return None

    turn = [call("c1", "search", text="x"), call("c2", "text"), call("c3", "nothing")]
    agent = Agent(timed, clock, talking(turn, tools=[search, text, nothing]))
    await agent.start()
    assert await agent.result() == ['[{"name": "x", "at": "2026-01-02T00:00:00Z"}]', "as it is", "null"]


async def test_a_recorded_result_is_never_made_again(timed: AsyncBroker, clock: Clock) -> None:
    """A7, A8: the key is the same on every attempt, and a second crash runs nothing either."""
    keys: list[tuple[str, int]] = []

    async def pay(amount: int) -> str:
        keys.append((current_call().key, current_call().attempt))
        if len(keys) == 1:
            agent.die()
        return f"paid {amount}"

    model = Model([call("c1", "pay", amount=40)])

    async def handler(run: Run[Any]) -> list[Any]:
        found = await loop(run, model, [pay])
        if len(keys) == 2 and not crashed:
            crashed.append(1)
            agent.die()
        return found

    crashed: list[int] = []
    agent = Agent(timed, clock, handler)
    states = [await agent.start(), await agent.go(), await agent.go()]
    assert states == [RunState.LEASED, RunState.LEASED, RunState.FINISHED]
    assert keys == [(f"{agent.run_id}:c1", 1), (f"{agent.run_id}:c1", 2)]
    assert await agent.result() == ["paid 40"]
    assert model.asked == 2


async def test_a_call_knows_itself(timed: AsyncBroker, clock: Clock) -> None:
    seen: list[Any] = []

    async def look() -> None:
        seen.append(current_call())

    agent = Agent(timed, clock, talking([call("c1", "look")], tools=[look]))
    await agent.start()
    (found,) = seen
    assert (found.id, found.tool, found.run_id, found.session_id) == ("c1", "look", agent.run_id, "s")
    assert (found.fence, found.attempt) == (1, 1)
    assert found.token not in repr(found)
    with pytest.raises(NotACall):
        current_call()


async def test_an_equal_call_under_another_id_is_another_call(timed: AsyncBroker, clock: Clock) -> None:
    """Identity is never a content hash."""
    ran: list[int] = []

    async def pay(amount: int) -> int:
        ran.append(amount)
        return len(ran)

    twice = [call("c1", "pay", amount=40), call("c2", "pay", amount=40)]
    agent = Agent(timed, clock, talking(twice, [call("c3", "pay", amount=40)], tools=[pay]))
    await agent.start()
    assert sorted(await agent.result()) == ["1", "2", "3"]


async def test_an_id_that_comes_again_is_told_to_the_model(timed: AsyncBroker, clock: Clock) -> None:
    """A model that numbers its calls anew each turn must not get the result of another call."""
    ran: list[int] = []

    async def pay(amount: int) -> str:
        ran.append(amount)
        return f"paid {amount}"

    turns = [
        [call("c1", "pay", amount=40)],
        [call("c1", "pay", amount=50)],
        [call("c2", "pay", amount=60)] * 2,
    ]
    agent = Agent(timed, clock, talking(*turns, tools=[pay]))
    await agent.start()
    refused = "Error (InvalidCall): its id was used before in this run"
    assert await agent.result() == ["paid 40", refused, "paid 60", refused]
    assert ran == [40, 60]


async def test_calls_without_ids_are_known_by_their_place(timed: AsyncBroker, clock: Clock) -> None:
    ran: list[int] = []

    async def pay(amount: int) -> int:
        ran.append(amount)
        return amount

    async def handler(run: Run[Any]) -> list[Any]:
        turn = [call(None, "pay", amount=1), call(None, "pay", amount=1)]
        said = [await run.calls(turn, [pay]), await run.calls(turn, [pay])]
        if not crashed:
            crashed.append(1)
            agent.die()
        return [message["content"] for some in said for message in some]

    crashed: list[int] = []
    agent = Agent(timed, clock, handler)
    await agent.start()
    await agent.go()
    assert await agent.result() == ["1", "1", "1", "1"]
    assert len(ran) == 4


LONG = "call_" + "x" * 2000


ODD = {
    "long": LONG,
    "braces": "{braces}",
    "spaces": " spaced ",
    "control": "new\nline",
    "surrogate": "\ud800",
}


@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
async def test_whatever_an_id_is_made_of(timed: AsyncBroker, clock: Clock, odd: str) -> None:
    """Gateways put whole documents into call ids; the message carries them back as they were."""
    said: list[Any] = []

    async def work() -> str:
        return current_call().id

    async def handler(run: Run[Any]) -> str:
        said.extend(await run.calls([call(odd, "work")], [work]))
        return str(said[0]["content"])

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.FINISHED
    assert said[0]["tool_call_id"] == odd
    assert said[0]["content"].startswith("call_")


BAD: dict[str, tuple[Any, str]] = {
    "unknown": (call("c1", "nope"), "there is no tool nope"),
    "no json": ({"id": "c1", "function": {"name": "pay", "arguments": "{"}}, "its arguments are no JSON"),
    "a list": ({"id": "c1", "name": "pay", "arguments": [1]}, "its arguments are no object"),
    "nan": (
        {"id": "c1", "function": {"name": "pay", "arguments": '{"amount": NaN}'}},
        "arguments.amount is NaN or infinite",
    ),
    "more": (call("c1", "pay", amount=1, to="x"), "pay takes other arguments"),
    "less": (call("c1", "pay"), "pay takes other arguments"),
    "name": (
        {"id": "c1", "name": "pay{}", "input": {}},
        "name holds a brace, a control character or half a surrogate pair",
    ),
}


@pytest.mark.parametrize("wrong", BAD)
async def test_what_a_model_got_wrong_is_told_to_it(timed: AsyncBroker, clock: Clock, wrong: str) -> None:
    """No call of a model can kill its run."""

    async def pay(amount: int) -> str:
        raise AssertionError(amount)

    asked, said = BAD[wrong]
    agent = Agent(timed, clock, talking([asked], tools=[pay]))
    assert await agent.start() is RunState.FINISHED
    assert await agent.result() == [f"Error (InvalidCall): {said}"]


async def test_a_wrong_call_stays_wrong(timed: AsyncBroker, clock: Clock) -> None:
    """Its failure is recorded: a release that brings the tool does not run it in the middle of an old turn."""
    ran: list[str] = []

    async def nope() -> str:
        ran.append("nope")
        return "now I am there"

    async def handler(run: Run[Any]) -> Any:
        tools = [nope] if crashed else []
        (message,) = await run.calls([call("c1", "nope")], tools)
        if not crashed:
            crashed.append(1)
            agent.die()
        return message["content"]

    crashed: list[int] = []
    agent = Agent(timed, clock, handler)
    await agent.start()
    await agent.go()
    assert (await agent.result(), ran) == ("Error (InvalidCall): there is no tool nope", [])


async def test_a_tool_that_is_gone_gives_back_what_it_gave(timed: AsyncBroker, clock: Clock) -> None:
    async def old() -> str:
        return "from an older release"

    async def handler(run: Run[Any]) -> Any:
        (message,) = await run.calls([call("c1", "old")], [] if crashed else [old])
        if not crashed:
            crashed.append(1)
            agent.die()
        return message["content"]

    crashed: list[int] = []
    agent = Agent(timed, clock, handler)
    await agent.start()
    await agent.go()
    assert await agent.result() == "from an older release"
