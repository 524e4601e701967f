"""LangGraph with LangChain's middleware for people in the loop, over SQLite. The model is a stub; the rest is real."""

import json
import operator
import sqlite3
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Final, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime, tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from broker import Interrupt
from broker.adapters.langgraph import Resumable, effect_key, resumable
from broker.errors import UnknownId
from tests.adapters.cases import Alone
from tests.adapters.child import AGENT
from tests.adapters.world import World

PACKAGES = ("langgraph", "langchain", "langgraph-checkpoint-sqlite")
CANNOT = {
    "swallowed": "`interrupt` raises an `Exception`: a node that catches it goes on without an answer",
}
ALONE = {
    "approve": Alone(("pause", "approve"), "runs once"),
    "reject": Alone(("pause", "reject"), "the model is told why, not who"),
    "edit": Alone(("pause", "edit"), "the edited call runs"),
    "external": Alone(("pause", "external"), "it stands for the call"),
    "three_at_once": Alone(("pause_three", "all_three"), "each runs once"),
    "three_one_by_one": Alone(
        ("pause_three_nodes", "one_of_three"), "each runs when it is answered; the others begin anew"
    ),
    "duplicate": Alone(("pause", "approve", "repeat"), "runs once; the second is ignored without a word"),
    "flipped": Alone(("pause", "approve", "flip"), "the first holds; the second is ignored without a word"),
    "late": Alone(("pause_two", "first", "first"), "the late answer is taken for the next question"),
    "unknown_id": Alone(("pause", "unknown"), "ignored without a word"),
    "wrong_shape": Alone(("pause_batched", "misfit", "good"), "stored; the right answer is refused after it"),
    "race": Alone(("pause", "both"), "runs twice"),
    "killed": Alone(("pause", "killed", "again_after_kill"), "runs again, if somebody keeps the answer"),
    "new_input": Alone(("pause", "new_input"), "the old question is gone without a word"),
    "nested": Alone(("pause_nested", "nested_answers"), "two questions with ids of their own"),
    "other_build": Alone(("pause", "other_tools"), "the call is dropped with a line in the log"),
    "expired": Alone(("pause", "years_later"), "no deadline: ten years later it runs"),
    "restart_empty": Alone(("pause", "without_state"), "refused: ValueError"),
    "unserializable": Alone(("unserializable",), "refused: TypeError"),
    "changed_arguments": Alone(("pause", "changed"), "the changed ones are asked about anew"),
    "swallowed": Alone(("pause_swallow",), "goes on without an answer"),
}
SCENARIOS: Final[dict[str, list[list[int]]]] = {
    "pay": [[0]], "in_a_row": [[0], [0]], "three": [[1, 2, 3]], "external": [[0]],
}  # fmt: skip
"""By scenario, the amounts that the model asks for in each turn; 0 stands for that of the input."""


class Stub(BaseChatModel):
    """A model that asks for the calls of its turns, one turn after the other."""

    turns: list[list[int]]
    tool: str = "pay"
    call_id: str = ""

    @property
    def _llm_type(self) -> str:
        return "stub"

    def bind_tools(self, tools: Any, **_: Any) -> "Stub":
        del tools
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        del stop, run_manager
        last = max(place for place, one in enumerate(messages) if one.type == "human")
        asked = json.loads(messages[last].text or "{}").get("amount", 0)
        turn = sum(one.type == "ai" for one in messages[last:])
        wanted = self.turns[turn] if turn < len(self.turns) else []
        calls = [
            {
                "name": self.tool,
                "args": {"amount": amount or asked},
                "id": self.call_id or f"call-{len(messages)}-{n}",
            }
            for n, amount in enumerate(wanted)
        ]
        message = AIMessage("" if calls else "done", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


class State(TypedDict):
    results: Annotated[list[Any], operator.add]


def saver(world: World) -> Any:
    path = world.folder / "threads.sqlite"
    found = SqliteSaver(sqlite3.connect(path, check_same_thread=False, timeout=30))
    found.setup()
    return found


def key(call_id: str = "") -> str:
    try:
        return effect_key(call_id)
    except UnknownId:  # alone
        return ""


def tools(world: World) -> dict[str, Any]:
    @tool
    def pay(amount: int, runtime: ToolRuntime) -> str:
        """Pays."""
        world.effect("pay", amount, key(runtime.tool_call_id or ""))
        return f"paid {amount}"

    @tool
    def start_job(amount: int) -> str:
        """Has a job done elsewhere."""
        return str(interrupt({"job": amount}))

    @tool
    def refund(amount: int) -> str:
        """Another tool."""
        return f"refunded {amount}"

    return {"pay": pay, "start_job": start_job, "refund": refund}


def agent(world: World, turns: list[list[int]], *names: str, checkpointer: Any = None, **stub: Any) -> Any:
    known = tools(world)
    middleware = HumanInTheLoopMiddleware(
        {"pay": True}, interrupt_mode=world.options.get("mode", "per_call"), edit_notice=""
    )
    return create_agent(
        Stub(turns=turns, **stub), [known[name] for name in names], middleware=[middleware],
        checkpointer=checkpointer,
    )  # fmt: skip


def simple(node: Any, checkpointer: Any, name: str = "node", **options: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node(name, node)
    graph.add_edge(START, name)
    graph.add_edge(name, END)
    return graph.compile(checkpointer=checkpointer, **options)


def same_twice(checkpointer: Any) -> Any:
    """Two nodes, one after the other, that ask the same."""
    graph = StateGraph(State)
    graph.add_node("first", partial(asks, "sure?"))
    graph.add_node("second", partial(asks, "sure?"))
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    graph.add_edge("second", END)
    return graph.compile(checkpointer=checkpointer)


def given_back(_: Any) -> dict[str, Any]:
    return {"results": ["ran"]}


def nested(world: World) -> Any:
    """Two agents in parallel, each with a call of the same id."""

    def inner(state: dict[str, Any]) -> dict[str, Any]:
        made = agent(world, [[state["amount"]]], "pay", call_id="call-1")
        return {"results": said(made.invoke({"messages": [("user", "{}")]}))}

    graph = StateGraph(State)
    graph.add_node("inner", inner)
    graph.add_conditional_edges(START, lambda _: [Send("inner", {"amount": n}) for n in (1, 2)], ["inner"])
    graph.add_edge("inner", END)
    return graph.compile(checkpointer=saver(world))


def said(state: Any) -> list[Any]:
    """What the calls came to."""
    if "messages" not in state:
        return list(state["results"])
    return [one.text for one in state["messages"] if isinstance(one, ToolMessage)]


def swallows(world: World, _: Any) -> dict[str, Any]:
    answer = None
    try:
        answer = interrupt("pay?")
    except Exception:  # noqa: BLE001 - the fault that is shown
        world.effect("caught", None, "")
    return {"results": [answer]}


def asks(what: Any, _: Any) -> dict[str, Any]:
    return {"results": [interrupt(what)]}


class Forgetful(SqliteSaver):
    """A checkpointer that loses what tasks have written, the pause too."""

    def put_writes(self, *_: Any, **__: Any) -> None:
        """Nothing."""


def graph_of(scenario: str, world: World) -> Any:
    names = ("pay", "refund") if world.options.get("changed") else ("pay",)
    made = {
        "nested": lambda: nested(world),
        "external": lambda: agent(world, [[0]], "start_job", checkpointer=saver(world), tool="start_job"),
        "question": lambda: simple(partial(asks, "what?"), saver(world)),
        "large": lambda: simple(partial(asks, "x" * 2_000_000), saver(world)),
        "unserializable": lambda: simple(partial(asks, {"made": lambda: 1}), saver(world)),
        "unreadable": lambda: simple(partial(asks, "what?"), Forgetful(saver(world).conn)),
        "static": lambda: simple(given_back, saver(world), interrupt_before=["node"]),
        "subgraph": lambda: simple(simple(partial(asks, "what?"), None), saver(world)),
        "same_twice": lambda: same_twice(saver(world)),
        "swallow": lambda: simple(partial(swallows, world), saver(world)),
    }
    if scenario in made:
        return made[scenario]()
    return agent(world, SCENARIOS[scenario], *names, checkpointer=saver(world))


class Given:
    """A worker's handler that makes the graph's input of the run's."""

    def __init__(self, of: Resumable, *, messages: bool) -> None:
        self._of = of
        self._messages = messages

    @property
    def builds(self) -> tuple[str, ...]:
        return self._of.resume.builds

    async def __call__(self, run: Any) -> Any:
        if self._messages:
            run.input = {"messages": [{"role": "user", "content": json.dumps(run.input or {})}]}
        else:
            run.input = {"results": []}
        return await self._of.resume(run)


def handler(scenario: str, world: World) -> Any:
    seconds = world.options.get("seconds")

    def ask(question: Interrupt) -> Interrupt:
        within = timedelta(seconds=seconds) if seconds else "default"
        return question.model_copy(update={"expires_in": within})

    graph = graph_of(scenario, world)
    made = resumable(graph, AGENT, ask=ask, result=said)
    return Given(made, messages=scenario in SCENARIOS)


def change(world: World, thread: str, amount: int) -> None:
    """Alters the arguments of the pending call in the thread, behind everybody's back."""
    graph, config = graph_of("pay", world), {"configurable": {"thread_id": thread}}
    last = graph.get_state(config).values["messages"][-1]
    calls = [{**call, "args": {"amount": amount}} for call in last.tool_calls]
    graph.update_state(config, {"messages": [last.model_copy(update={"tool_calls": calls})]})


# Alone -----------------------------------------------------------------------------------------------------------

CONFIG: Final = {"configurable": {"thread_id": "alone"}}


def alone(case: str, phase: str, world: World) -> str:
    """One phase without the broker; the last one's word is what is held against `ALONE`."""
    from tests.adapters.subjects.langgraph_alone import PHASES  # noqa: PLC0415 - it is built on this module

    del case
    return PHASES[phase](world)
