"""What LangGraph does in the cases without the broker. Each phase is a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from langgraph.types import Command, interrupt

from broker.testing import wait_until
from tests.adapters.world import World

from .langgraph import CONFIG, agent, saver, simple, swallows

IDS: Final = "ids"


def graph(world: World, mode: str = "per_call") -> Any:
    return agent(replace(world, options={"mode": mode}), [[0]], "pay", checkpointer=saver(world))


def given(amount: int = 10) -> dict[str, Any]:
    return {"messages": [("user", json.dumps({"amount": amount}))]}


def ids(made: Any) -> list[str]:
    return [one.id for one in made.get_state(CONFIG).interrupts]


def keep(made: Any, world: World) -> None:
    """What a client remembers of the pause."""
    (world.folder / IDS).write_text(json.dumps(ids(made)))


def kept(world: World) -> str:
    found: list[str] = json.loads((world.folder / IDS).read_text())
    return found[0]


def pause(_: str, world: World) -> str:
    made = graph(world)
    made.invoke(given(), CONFIG, durability="sync")
    keep(made, world)
    return "paused"


def resume(case: str, world: World) -> str:
    made = graph(world)
    made.invoke(Command(resume={kept(world): {"type": "approve"}}), CONFIG)
    count = len(world.effects)
    match case, count:
        case ("approve", 1):
            return "runs once"
        case ("duplicate", 1):
            return "runs once; the second is ignored without a word"
        case ("killed", 2):
            return "runs again, if somebody keeps the answer"
        case ("new_input", 0) if kept(world) not in ids(made):
            return "the old question is gone without a word"
    return f"{count} effects"


def unknown(_: str, world: World) -> str:
    made = graph(world)
    made.invoke(Command(resume={"0" * 32: {"type": "approve"}}), CONFIG)
    return "ignored without a word" if ids(made) == [kept(world)] and not world.effects else "noticed"


def again(_: str, world: World) -> str:
    graph(world).invoke(given(7), CONFIG)
    return "asked again"


def killed(_: str, world: World) -> str:
    """The worker dies in the tool: this process is another one's child, so that its word is heard."""
    world.hold()
    child = phase_of("slow", world)
    wait_until(lambda: len(world.effects) == 1, 120, what="the tool has had its effect")
    child.kill()
    child.wait()
    world.let_go()
    return "killed"


def both(_: str, world: World) -> str:
    """Two workers at once, in strict mode."""
    world.hold()
    children = [phase_of("slow", world), phase_of("slow", world)]
    wait_until(lambda: len(world.effects) == len(children), 120, what="both tools have had their effect")
    world.let_go()
    codes = [child.wait() for child in children]
    return "runs twice" if codes == [0, 0] else f"exit codes {codes}"


def phase_of(phase: str, world: World) -> "subprocess.Popen[bytes]":
    options = {"subject": "langgraph", "case": "-", "phase": phase, "folder": str(world.folder)}
    return subprocess.Popen([sys.executable, "-m", "tests.adapters.child", json.dumps(options)])


def slow(_: str, world: World) -> str:
    config = {"configurable": {**CONFIG["configurable"], "__pregel_strict_resume": True}}
    graph(world).invoke(Command(resume={kept(world): {"type": "approve"}}), config)
    return str(os.getpid())


def asks_twice(_: Any) -> dict[str, Any]:
    return {"results": [interrupt("the first"), interrupt("the second")]}


def pause_two(_: str, world: World) -> str:
    made = simple(asks_twice, saver(world))
    made.invoke({"results": []}, CONFIG, durability="sync")
    keep(made, world)
    return "paused"


def first(_: str, world: World) -> str:
    """The answer to the first question; the second time this is a client that repeats itself."""
    made = simple(asks_twice, saver(world))
    done = made.invoke(Command(resume={kept(world): "yes"}), CONFIG)
    taken = done.get("results") == ["yes", "yes"]
    return "the late answer is taken for the next question" if taken else "asks the second"


def pause_batched(_: str, world: World) -> str:
    made = graph(world, "batched")
    made.invoke(given(), CONFIG, durability="sync")
    keep(made, world)
    return "paused"


def misfit(_: str, world: World) -> str:
    return tried(world, {"decisions": []})


def good(_: str, world: World) -> str:
    word = tried(world, {"decisions": [{"type": "approve"}]})
    refused = word == "ValueError" and not world.effects
    return "stored; the right answer is refused after it" if refused else word


def tried(world: World, answer: Any) -> str:
    try:
        graph(world, "batched").invoke(Command(resume={kept(world): answer}), CONFIG)
    except ValueError as error:
        return type(error).__name__
    return "taken"


def pause_swallow(_: str, world: World) -> str:
    made = simple(partial(swallows, world), saver(world))
    done = made.invoke({"results": []}, CONFIG)
    return "goes on without an answer" if done["results"] == [None] and not ids(made) else "paused"


PHASES: Final[dict[str, Callable[[str, World], str]]] = {
    made.__name__: made
    for made in (
        pause, resume, unknown, again, killed, both, slow, pause_two, first, pause_batched, misfit, good,
        pause_swallow,
    )
}  # fmt: skip
