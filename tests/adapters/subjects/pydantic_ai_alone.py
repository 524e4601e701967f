"""What Pydantic AI does in the cases without the broker. Each phase is a process of its own."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import time_machine
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.conversation import ConversationTypeAdapter
from pydantic_ai.tools import DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.toolsets import ExternalToolset

from tests.adapters import forks
from tests.adapters.world import World

from .pydantic_ai import METADATA, OUTPUT, PAY, TURNS, agent_of, model_of

PROMPT: Final = json.dumps({"amount": 10})
NEVER: Final = {"c1": ToolDenied("too much")}


def agent(world: World, scenario: str = "pay", *, name: str = "pay") -> Agent[Any, Any]:
    outside = [agent_of(scenario, world).toolsets[-1]] if scenario == "external" else []
    made: Agent[Any, Any] = Agent(
        model_of(*TURNS.get(scenario, ([PAY],))), name="payer", output_type=[OUTPUT, DeferredToolRequests],
        toolsets=[one for one in outside if isinstance(one, ExternalToolset)],
    )  # fmt: skip

    def pay(amount: int) -> str:
        world.effect("pay", amount, "none")
        return f"paid {amount}"

    made.tool_plain(pay, name=name, requires_approval=True)
    return made


def state(world: World) -> Path:
    """What a team would keep in a table of its own."""
    return world.folder / "state"


def paid(world: World) -> list[Any]:
    return sorted(one.given for one in world.effects)


def pause(world: World, scenario: str = "pay") -> str:
    done = asyncio.run(agent(world, scenario).run(PROMPT))
    state(world).write_bytes(ConversationTypeAdapter.dump_json(done.conversation))
    return (
        "pauses: it is a result, and nothing is raised"
        if isinstance(done.output, DeferredToolRequests)
        else "ended"
    )


def go_on(world: World, approvals: Any, *, scenario: str = "pay", made: Any = None, calls: Any = None) -> Any:
    """What the run comes to, resumed from what was stored."""
    found = ConversationTypeAdapter.validate_json(state(world).read_bytes())
    told = DeferredToolResults(approvals=approvals, calls=calls or {})
    return asyncio.run(
        (made or agent(world, scenario)).run(conversation=found, deferred_tool_results=told)
    ).output


def tried(work: Callable[[], Any]) -> str:
    """The name of what it raises."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - its name is the word
        return f"refused: {type(error).__name__}"
    return "taken"


def approve(world: World) -> str:
    go_on(world, {"c1": True})
    count = len(world.effects)
    return {1: "runs once", 2: "runs twice"}[count]


def again_after_kill(world: World) -> str:
    go_on(world, {"c1": True})
    first, second = world.effects
    assert first.pid != second.pid
    return "runs again, if somebody keeps the state and the answer"


def reject(world: World) -> str:
    (said,) = go_on(world, NEVER)
    return "the model is told why, not who" if said == "too much" and not world.effects else str(said)


def edit(world: World) -> str:
    go_on(world, {"c1": ToolApproved(override_args={"amount": 3})})
    return "the edited call runs" if paid(world) == [3] else str(paid(world))


def external(world: World) -> str:
    (said,) = go_on(world, {}, scenario="external", calls={"c1": "frames=240"})
    return "it stands for the call" if said == "frames=240" else str(said)


def all_three(world: World) -> str:
    go_on(world, dict.fromkeys(("c1", "c2", "c3"), True), scenario="three")
    return "each runs once" if paid(world) == [1, 2, 3] else str(paid(world))


def flip(world: World) -> str:
    (said,) = go_on(world, NEVER)
    return (
        "both are taken: it ran, and is told not to have"
        if (said, paid(world)) == ("too much", [10])
        else said
    )


def late(world: World) -> str:
    go_on(world, {"c1": True})
    return "it runs, after the run has ended with a no" if paid(world) == [10] else str(paid(world))


def misfit(world: World) -> str:
    (said,) = go_on(world, {"c1": ToolApproved(override_args={"amount": "many"})})
    is_told = "valid integer" in str(said) and not world.effects
    return "the model is told; nobody is asked again" if is_told else str(said)


def new_input(world: World) -> str:
    """New input for a conversation that waits."""
    found = ConversationTypeAdapter.validate_json(state(world).read_bytes())
    return tried(lambda: asyncio.run(agent(world).run("never mind", conversation=found)))


def nested(world: World) -> str:
    """An agent in a tool of another one, which may end with requests."""
    inner, asked = agent(world), []
    outer: Agent[Any, Any] = Agent(model_of([("ask", {}, "o1")]), output_type=[OUTPUT, DeferredToolRequests])

    @outer.tool_plain
    async def ask() -> str:
        asked.append((await inner.run(PROMPT)).output)
        return "asked"

    told = outer.run_sync(PROMPT).output
    lost = told == ["asked"] and isinstance(asked[0], DeferredToolRequests)
    return "the outer run ends; its caller is not asked" if lost else str(told)


def other_tools(world: World) -> str:
    (said,) = go_on(world, {"c1": True}, made=agent(world, name="refund"))
    is_told = "Unknown tool" in str(said) and not world.effects
    return "the model is told that there is no such tool" if is_told else str(said)


def years_later(world: World) -> str:
    with time_machine.travel(datetime.now(UTC) + timedelta(days=3650)):
        go_on(world, {"c1": True})
    return "no deadline: ten years later it runs" if paid(world) == [10] else "expired"


def without_state(world: World) -> str:
    told = DeferredToolResults(approvals={"c1": True})
    return tried(lambda: asyncio.run(agent(world).run(PROMPT, deferred_tool_results=told)))


def unserializable(world: World) -> str:
    made = agent_of("unserializable", world)
    done = asyncio.run(made.run(PROMPT, output_type=[OUTPUT, DeferredToolRequests]))
    assert done.output.metadata["c1"].keys() == METADATA["unserializable"]().keys()
    return tried(lambda: ConversationTypeAdapter.dump_json(done.conversation))


def changed(world: World) -> str:
    """Whoever can write the stored state decides what was approved."""
    state(world).write_text(state(world).read_text().replace('"amount":10', '"amount":99'))
    go_on(world, {"c1": True})
    return f"runs with {'the changed ones' if paid(world) == [99] else paid(world)}"


PHASES: Final[dict[str, Callable[[World], str]]] = {
    made.__name__: made
    for made in (
        pause, approve, again_after_kill, reject, edit, external, all_three, flip, late, misfit, new_input,
        nested, other_tools, years_later, without_state, unserializable, changed,
    )
} | {
    "pause_external": lambda world: pause(world, "external"),
    "pause_three": lambda world: pause(world, "three"),
    "one_of_three": lambda world: tried(lambda: go_on(world, {"c1": True}, scenario="three")),
    "unknown": lambda world: tried(lambda: go_on(world, {"nobody-asked": True})),
    "killed": lambda world: forks.killed(lambda: go_on(world, {"c1": True}), world),
    "both": lambda world: forks.race(lambda: go_on(world, {"c1": True}), world),
}  # fmt: skip


def alone(_: str, phase: str, world: World) -> str:
    """One phase of a case."""
    return PHASES[phase](world)
