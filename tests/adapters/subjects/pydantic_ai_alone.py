"""What Pydantic AI does in the cases without the broker. Each phase is a process of its own."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.conversation import ConversationTypeAdapter
from pydantic_ai.tools import DeferredToolResults

from tests.adapters.world import World
from tests.worker.fleet import report

from .pydantic_ai import OUTPUT, PAY, model_of

PROMPT = json.dumps({"amount": 10})


def agent(world: World, *, dies: bool = False) -> Agent[Any, Any]:
    made: Agent[Any, Any] = Agent(model_of([PAY]), name="payer", output_type=[OUTPUT, DeferredToolRequests])

    @made.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        world.effect("pay", amount, "none")
        if dies:
            report(json.dumps("killed"))
            os._exit(0)
        return f"paid {amount}"

    return made


def state(world: World) -> Path:
    """What a team would keep in a table of its own."""
    return world.folder / "state"


async def pause(_: str, world: World) -> str:
    done = await agent(world).run(PROMPT)
    state(world).write_bytes(ConversationTypeAdapter.dump_json(done.conversation))
    return "paused"


async def approve(world: World, *, dies: bool = False, name: str = "c1") -> None:
    found = ConversationTypeAdapter.validate_json(state(world).read_bytes())
    told = DeferredToolResults(approvals={name: True})
    await agent(world, dies=dies).run(conversation=found, deferred_tool_results=told)


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
    try:
        await approve(world, name="nobody-asked")
    except Exception as error:  # noqa: BLE001 - its name is the word
        return f"refused: {type(error).__name__}"
    return "noticed by nobody"


async def changed(_: str, world: World) -> str:
    """Whoever can write the stored state decides what was approved."""
    text = state(world).read_text().replace('"amount":10', '"amount":99')
    state(world).write_text(text)
    await approve(world)
    return f"runs with {'what was approved' if world.effects[0].given == 10 else 'the changed ones'}"


async def again(_: str, world: World) -> str:
    """New input for a conversation that waits."""
    found = ConversationTypeAdapter.validate_json(state(world).read_bytes())
    try:
        done = await agent(world).run("never mind", conversation=found)
    except Exception as error:  # noqa: BLE001 - its name is the word
        return f"refused: {type(error).__name__}"
    return "the old call is closed without a word" if not world.effects and done else "it runs"


PHASES = {
    "pause": pause, "resume": resume, "killed": killed, "unknown": unknown, "changed": changed, "again": again,
}  # fmt: skip


def alone(case: str, phase: str, world: World) -> str:
    """One phase of a case."""
    return asyncio.run(PHASES[phase](case, world))
