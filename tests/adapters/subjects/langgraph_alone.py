"""What LangGraph does in the cases without the broker. Each phase is a process of its own."""

import json
import operator
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final, TypedDict

import time_machine
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from tests.adapters import forks
from tests.adapters.world import World

from .langgraph import CONFIG, SCENARIOS, agent, asks, change, given_back, nested, saver, simple, swallows

IDS: Final = "ids"
YES: Final = {"type": "approve"}
NO: Final = {"type": "reject", "message": "too much"}
STRICT: Final = {"configurable": {**CONFIG["configurable"], "__pregel_strict_resume": True}}


def graph(world: World, scenario: str = "pay", mode: str = "per_call", tool: str = "pay") -> Any:
    told = replace(world, options={"mode": mode})
    return agent(told, SCENARIOS[scenario], tool, checkpointer=saver(world))


def given(amount: int = 10) -> dict[str, Any]:
    return {"messages": [("user", json.dumps({"amount": amount}))]}


def ids(made: Any) -> list[str]:
    return [one.id for one in made.get_state(CONFIG).interrupts]


def kept(world: World) -> list[str]:
    found: list[str] = json.loads((world.folder / IDS).read_text())
    return found


def paid(world: World) -> list[Any]:
    return sorted(one.given for one in world.effects)


def begin(world: World, made: Any, first: Any) -> str:
    """Runs it up to its pause; the ids of its questions are what a client remembers."""
    done = made.invoke(first, CONFIG, durability="sync")
    (world.folder / IDS).write_text(json.dumps(ids(made)))
    return "paused" if "__interrupt__" in done else "ended"


def go_on(made: Any, answers: dict[str, Any], config: Any = None) -> Any:
    return made.invoke(Command(resume=answers), config or CONFIG)


def pause(world: World) -> str:
    return begin(world, graph(world), given())


def answer(world: World, said: Any, config: Any = None, scenario: str = "pay") -> Any:
    """What comes of one answer to every question that the client remembers."""
    return go_on(graph(world, scenario), dict.fromkeys(kept(world), said), config)


def told(state: Any) -> str:
    """What the model reads of the last call."""
    return str(next(one.text for one in reversed(state["messages"]) if one.type == "tool"))


def tried(work: Callable[[], Any]) -> str:
    """The name of what it raises."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - its name is the word
        return f"refused: {type(error).__name__}"
    return "taken"


def approve(world: World) -> str:
    answer(world, YES)
    return {1: "runs once"}.get(len(world.effects), str(paid(world)))


def repeat(world: World) -> str:
    answer(world, YES)
    return "runs once; the second is ignored without a word" if paid(world) == [10] else str(paid(world))


def again_after_kill(world: World) -> str:
    answer(world, YES)
    first, second = world.effects
    assert first.pid != second.pid
    return "runs again, if somebody keeps the answer"


def reject(world: World) -> str:
    said = told(answer(world, NO))
    is_told = "too much" in said and not world.effects
    return "the model is told why, not who" if is_told else said


def edit(world: World) -> str:
    answer(world, {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 3}}})
    return "the edited call runs" if paid(world) == [3] else str(paid(world))


def external(world: World) -> str:
    said = told(answer(world, {"type": "respond", "message": "frames=240"}))
    return "it stands for the call" if said == "frames=240" and not world.effects else said


def all_three(world: World) -> str:
    answer(world, YES, scenario="three")
    return "each runs once" if paid(world) == [1, 2, 3] else str(paid(world))


def flip(world: World) -> str:
    answer(world, NO)
    return (
        "the first holds; the second is ignored without a word" if paid(world) == [10] else str(paid(world))
    )


def unknown(world: World) -> str:
    made = graph(world)
    go_on(made, {"0" * 32: YES})
    return "ignored without a word" if ids(made) == kept(world) and not world.effects else "noticed"


def new_input(world: World) -> str:
    graph(world).invoke(given(7), CONFIG)
    answer(world, YES)
    is_gone = not world.effects and kept(world) != ids(graph(world))
    return "the old question is gone without a word" if is_gone else str(paid(world))


class Three(TypedDict):
    results: Annotated[list[Any], operator.add]


def three_nodes(world: World) -> Any:
    """Three nodes at a time, each of which does something, asks, and pays."""

    def node(n: int, _: Any) -> dict[str, Any]:
        world.effect("before", n, "")
        if interrupt(n) == "yes":
            world.effect("pay", n, "")
        return {"results": [n]}

    made = StateGraph(Three)
    for n in (1, 2, 3):
        made.add_node(f"node{n}", partial(node, n))
        made.add_edge(START, f"node{n}")
        made.add_edge(f"node{n}", END)
    return made.compile(checkpointer=saver(world))


def one_of_three(world: World) -> str:
    made = three_nodes(world)
    (second,) = [one.id for one in made.get_state(CONFIG).interrupts if one.value == 2]
    go_on(made, {second: "yes"})
    ran = [one.given for one in world.effects if one.what == "pay"]
    begun = sorted(one.given for one in world.effects if one.what == "before")
    is_so = (ran, begun) == ([2], [1, 1, 2, 2, 3, 3]) and len(ids(made)) == 2
    return "each runs when it is answered; the others begin anew" if is_so else f"{ran} {begun}"


def nested_answers(world: World) -> str:
    made = nested(world)
    values = {one.id: one.value for one in made.get_state(CONFIG).interrupts}
    assert {one["tool_call_id"] for one in values.values()} == {"call-1"}
    go_on(made, {id: YES if one["args"] == {"amount": 1} else NO for id, one in values.items()})
    return "two questions with ids of their own" if paid(world) == [1] else str(paid(world))


def other_tools(world: World) -> str:
    """A graph whose node has another name: the thread is stored, what it waits in is not there."""
    made = simple(given_back, saver(world), name="other")
    done = go_on(made, dict.fromkeys(kept(world), "yes"))
    is_dropped = not world.effects and not done["results"] and not ids(made)
    return "the call is dropped with a line in the log" if is_dropped else str(done)


def years_later(world: World) -> str:
    with time_machine.travel(datetime.now(UTC) + timedelta(days=3650)):
        answer(world, YES)
    return "no deadline: ten years later it runs" if paid(world) == [10] else "expired"


def without_state(world: World) -> str:
    for path in world.folder.glob("threads.sqlite*"):
        path.unlink()
    return tried(lambda: answer(world, YES))


def changed(world: World) -> str:
    """Whoever can write to the thread."""
    change(world, CONFIG["configurable"]["thread_id"], 99)
    answer(world, YES)
    made = graph(world)
    (new,) = made.get_state(CONFIG).interrupts
    is_new = not world.effects and new.id not in kept(world) and new.value["args"] == {"amount": 99}
    return "the changed ones are asked about anew" if is_new else f"{paid(world)} {new}"


def asks_twice(_: Any) -> dict[str, Any]:
    return {"results": [interrupt("the first"), interrupt("the second")]}


def first(world: World) -> str:
    """The answer to the first question; the second time this is a client that repeats itself."""
    done = go_on(simple(asks_twice, saver(world)), dict.fromkeys(kept(world), "yes"))
    taken = done.get("results") == ["yes", "yes"]
    return "the late answer is taken for the next question" if taken else "asks the second"


def batched(world: World, decisions: list[Any]) -> str:
    made = graph(world, mode="batched")
    return tried(lambda: go_on(made, {one: {"decisions": decisions} for one in kept(world)}))


def good(world: World) -> str:
    word = batched(world, [YES])
    is_refused = word == "refused: ValueError" and not world.effects
    return "stored; the right answer is refused after it" if is_refused else word


def pause_swallow(world: World) -> str:
    made = simple(partial(swallows, world), saver(world))
    done = made.invoke({"results": []}, CONFIG)
    return "goes on without an answer" if done["results"] == [None] and not ids(made) else "paused"


def unserializable(world: World) -> str:
    made = simple(partial(asks, {"made": lambda: 1}), saver(world))
    return tried(lambda: made.invoke({"results": []}, CONFIG, durability="sync"))


PHASES: Final[dict[str, Callable[[World], str]]] = {
    made.__name__: made
    for made in (
        pause, approve, repeat, again_after_kill, reject, edit, external, all_three, flip, unknown, new_input,
        one_of_three, nested_answers, other_tools, years_later, without_state, changed, first, good,
        pause_swallow, unserializable,
    )
} | {
    "pause_two": lambda world: begin(world, simple(asks_twice, saver(world)), {"results": []}),
    "pause_three": lambda world: begin(world, graph(world, "three"), given()),
    "pause_three_nodes": lambda world: begin(world, three_nodes(world), {"results": []}),
    "pause_nested": lambda world: begin(world, nested(world), {"results": []}),
    "pause_batched": lambda world: begin(world, graph(world, mode="batched"), given()),
    "misfit": lambda world: batched(world, []),
    "killed": lambda world: forks.killed(lambda: answer(world, YES), world),
    "both": lambda world: forks.race(lambda: answer(world, YES, STRICT), world),
}  # fmt: skip
