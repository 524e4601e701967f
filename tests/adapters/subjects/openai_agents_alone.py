"""What the OpenAI Agents SDK does in the cases without the broker. Each phase is a process of its own."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import time_machine
from agents import Runner, RunState, function_tool

from tests.adapters import forks
from tests.adapters.world import World

from .openai_agents import agent_of

PROMPT: Final = json.dumps({"amount": 10})
NO: Final = "too much"


def agent(world: World, scenario: str = "pay", *, name: str = "payer") -> Any:
    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        world.effect("pay", amount, "none")
        return f"paid {amount}"

    made = agent_of(scenario, pay)
    made.name = name
    return made


def state(world: World) -> Path:
    """What a team would keep in a table of its own."""
    return world.folder / "state"


def paid(world: World) -> list[Any]:
    return sorted(one.given for one in world.effects)


def keep(world: World, done: Any) -> None:
    state(world).write_text(done.to_state().to_string(strict_context=True))


def pause(world: World, scenario: str = "pay") -> str:
    done = asyncio.run(Runner.run(agent(world, scenario), PROMPT))
    keep(world, done)
    return "pauses: it is a result, and nothing is raised" if done.interruptions else "ended"


async def _go_on(made: Any, text: str, decide: Callable[[Any, Sequence[Any]], None]) -> Any:
    found = await RunState.from_string(made, text)
    decide(found, found.get_interruptions())
    return await Runner.run(made, found)


def go_on(world: World, decide: Callable[[Any, Sequence[Any]], None], made: Any = None) -> Any:
    """What the run comes to, resumed from what was stored."""
    return asyncio.run(_go_on(made or agent(world), state(world).read_text(), decide))


def yes(found: Any, items: Sequence[Any]) -> None:
    for item in items:
        found.approve(item)


def no(found: Any, items: Sequence[Any]) -> None:
    for item in items:
        found.reject(item, rejection_message=NO)


def tried(work: Callable[[], Any]) -> str:
    """The name of what it raises."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - its name is the word
        return f"refused: {type(error).__name__}"
    return "taken"


def approve(world: World) -> str:
    go_on(world, yes)
    return {1: "runs once", 2: "runs twice"}[len(world.effects)]


def again_after_kill(world: World) -> str:
    go_on(world, yes)
    first, second = world.effects
    assert first.pid != second.pid
    return "runs again, if somebody keeps the state and the answer"


def reject(world: World) -> str:
    (said,) = go_on(world, no).final_output
    return "the model is told why, not who" if said == NO and not world.effects else str(said)


def edit(world: World) -> str:
    def other(found: Any, items: Sequence[Any]) -> None:
        items[0].raw_item.arguments = json.dumps({"amount": 3})
        found.approve(items[0])

    return tried(lambda: go_on(world, other))


def external(world: World) -> str:
    def instead(found: Any, items: Sequence[Any]) -> None:
        found.reject(items[0], rejection_message="frames=240")

    (said,) = go_on(world, instead).final_output
    return "only as the words of a no" if said == "frames=240" and not world.effects else str(said)


def all_three(world: World) -> str:
    go_on(world, yes, agent(world, "three"))
    return "each runs once" if paid(world) == [1, 2, 3] else str(paid(world))


def one_of_three(world: World) -> str:
    """The second one; the states of the other two are stored anew, or the next answer would run it again."""
    done = go_on(world, lambda found, items: found.approve(items[1]), agent(world, "three"))
    left = [one.call_id for one in done.interruptions]
    old = state(world).read_text()
    keep(world, done)
    alone = (paid(world), left) == ([2], ["c1", "c3"])
    assert old != state(world).read_text()
    return "each runs when it is answered" if alone else f"{paid(world)} {left}"


def flip(world: World) -> str:
    (said,) = go_on(world, no).final_output
    is_both = (said, paid(world)) == (NO, [10])
    return "both are taken: it ran, and is told not to have" if is_both else str(said)


def late(world: World) -> str:
    go_on(world, yes)
    return "it runs, after the run has ended with a no" if paid(world) == [10] else str(paid(world))


def unknown(world: World) -> str:
    def nobody(found: Any, items: Sequence[Any]) -> None:
        items[0].raw_item.call_id = "nobody-asked"
        found.approve(items[0])

    still = [one.call_id for one in go_on(world, nobody).interruptions]
    return "ignored without a word" if still == ["c1"] and not world.effects else "noticed"


def misfit(world: World) -> str:
    """A yes that is none: any value that counts as true."""

    def many(found: Any, items: Sequence[Any]) -> None:
        found.approve({"call_id": items[0].call_id, "amount": "many"})

    return tried(lambda: go_on(world, many))


def new_input(world: World) -> str:
    """A new message after what the conversation came to; the stored state goes on as before."""
    made = agent(world)
    done = asyncio.run(Runner.run(made, PROMPT))
    keep(world, done)
    more = asyncio.run(
        Runner.run(agent(world, "question"), [*done.to_input_list(), {"role": "user", "content": "x"}])
    )
    before = len(world.effects)
    go_on(world, yes)
    is_both = bool(more.final_output or more.interruptions) and (before, paid(world)) == (0, [10])
    return "both go on: the old question can still be answered" if is_both else f"{before} {paid(world)}"


def nested(world: World) -> str:
    def one_each(found: Any, items: Sequence[Any]) -> None:
        assert {one.call_id for one in items} == {"i1"}
        first, second = sorted(items, key=lambda one: one.agent.name)
        found.approve(first)
        found.reject(second, rejection_message=NO)

    go_on(world, one_each, agent(world, "nested"))
    return "two questions, told apart by the agents' names" if paid(world) == [1] else str(paid(world))


def other_name(world: World) -> str:
    return tried(lambda: go_on(world, yes, agent(world, name="another")))


def years_later(world: World) -> str:
    with time_machine.travel(datetime.now(UTC) + timedelta(days=3650)):
        go_on(world, yes)
    return "no deadline: ten years later it runs" if paid(world) == [10] else "expired"


def without_state(world: World) -> str:
    return tried(lambda: asyncio.run(_go_on(agent(world), "{}", yes)))


def unserializable(world: World) -> str:
    """A context that is no mapping; unless it is told to be strict, the SDK stores an empty one."""
    done = asyncio.run(Runner.run(agent(world), PROMPT, context=object()))
    kept = json.loads(done.to_state().to_string())
    is_lost = not kept["context"]["context"]
    return f"{'lost without an error' if is_lost else 'kept'}; strict, {tried(lambda: keep(world, done))}"


def changed(world: World) -> str:
    text = re.sub(r'(\\"amount\\": ?)10', r"\g<1>99", state(world).read_text())
    return tried(lambda: asyncio.run(_go_on(agent(world), text, yes)))


PHASES: Final[dict[str, Callable[[World], str]]] = {
    made.__name__: made
    for made in (
        pause, approve, again_after_kill, reject, edit, external, all_three, one_of_three, flip, late, unknown,
        misfit, new_input, nested, other_name, years_later, without_state, unserializable, changed,
    )
} | {
    "pause_three": lambda world: pause(world, "three"),
    "pause_nested": lambda world: pause(world, "nested"),
    "killed": lambda world: forks.killed(lambda: go_on(world, yes), world),
    "both": lambda world: forks.race(lambda: go_on(world, yes), world),
}  # fmt: skip


def alone(_: str, phase: str, world: World) -> str:
    """One phase of a case."""
    return PHASES[phase](world)
