"""What functions of the journal change in their arguments in place, in this colour."""

from typing import Any

import pytest

from broker import AsyncBroker, RunState, tool
from tests.clock import Clock

from ._runtime import Run
from .journaling import Agent


async def adds(messages: list[dict[str, str]], *, notes: dict[str, Any]) -> str:
    """As an agent does that keeps its books in what it is given."""
    messages[0]["text"] += "!"
    messages.append({"text": "two"})
    notes["seen"] = True
    return "added"


async def count(messages: list[dict[str, str]]) -> int:
    return len(messages)


@pytest.mark.report("RB9")
async def test_RB9_what_is_changed_in_place_is_seen_at_no_entry(timed: AsyncBroker, clock: Clock) -> None:
    """Else the handler would see it until its worker dies, and ask for another step than is on record.

    Off: `own` in `Journal.step`. What a call is given is copied with its record.
    """
    entered: list[Any] = []

    async def handler(run: Run[Any]) -> list[Any]:
        messages, notes = [{"text": "one"}], dict[str, Any]()
        said = [await run.step(adds, messages, notes=notes)]
        said.append(await run.call(tool()(adds), {"messages": messages, "notes": notes}, call_id="c1"))
        said.append(await run.step(count, messages))
        entered.append((messages, notes))
        if len(entered) == 1:
            agent.die()
        return said

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.LEASED
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["added", "added", 1]
    assert entered == [([{"text": "one"}], {})] * 2


async def test_what_goes_around_in_circles_is_given_as_it_is(timed: AsyncBroker, clock: Clock) -> None:
    circle: list[Any] = []
    circle.append(circle)

    async def handler(run: Run[Any]) -> int:
        found: int = await run.step(count, circle)
        return found

    agent = Agent(timed, clock, handler)
    assert await agent.start() is RunState.FINISHED
