"""What the OpenAI Agents SDK does in the cases without the broker. Each phase is a process of its own."""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

from agents import Runner, RunState, function_tool

from tests.adapters.world import World
from tests.worker.fleet import report

from .openai_agents import agent_of


def agent(world: World, *, dies: bool = False) -> Any:
    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        world.effect("pay", amount, "none")
        if dies:
            report(json.dumps("killed"))
            os._exit(0)
        return f"paid {amount}"

    return agent_of("pay", pay)


def state(world: World) -> Path:
    """What a team would keep in a table of its own."""
    return world.folder / "state"


async def pause(_: str, world: World) -> str:
    done = await Runner.run(agent(world), json.dumps({"amount": 10}))
    state(world).write_text(done.to_state().to_string(strict_context=True))
    return "paused"


async def approve(world: World, *, dies: bool = False) -> None:
    made = agent(world, dies=dies)
    found = await RunState.from_string(made, state(world).read_text())
    (item,) = found.get_interruptions()
    found.approve(item)
    await Runner.run(made, found)


async def resume(case: str, world: World) -> str:
    await approve(world)
    match case, len(world.effects):
        case (_, 1):
            return "runs once"
        case ("killed", 2):
            return "runs again, if somebody keeps the state and the answer"
        case (_, count):
            return f"runs {'twice' if count == 2 else count}"


async def killed(_: str, world: World) -> str:
    """The worker dies when the tool has had its effect, and has said its word."""
    await approve(world, dies=True)
    return "survived"


async def unknown(_: str, world: World) -> str:
    found = await RunState.from_string(agent(world), state(world).read_text())
    (item,) = found.get_interruptions()
    item.raw_item.call_id = "nobody-asked"
    found.approve(item)
    done = await Runner.run(agent(world), found)
    still = [one.call_id for one in done.interruptions]
    return "ignored without a word" if still == ["c1"] and not world.effects else "noticed"


async def changed(_: str, world: World) -> str:
    text = re.sub(r'(\\"amount\\": ?)10', r"\g<1>99", state(world).read_text())
    try:
        found = await RunState.from_string(agent(world), text)
        for item in found.get_interruptions():
            found.approve(item)
        await Runner.run(agent(world), found)
    except Exception as error:  # noqa: BLE001 - its name is the word
        return f"refused: {type(error).__name__}"
    return f"runs with {world.effects[0].given}"


PHASES = {
    "pause": pause, "resume": resume, "killed": killed, "unknown": unknown, "changed": changed,
}  # fmt: skip


def alone(case: str, phase: str, world: World) -> str:
    """One phase of a case."""
    return asyncio.run(PHASES[phase](case, world))
