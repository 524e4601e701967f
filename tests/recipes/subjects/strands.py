"""Strands in the suite: agents on the recipe of docs/howto/strands.md, read from the page."""

import json
from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from typing import Any, Final

from strands import Agent, ToolContext, tool
from strands.hooks import BeforeToolCallEvent
from strands.models import Model

from broker import Run
from broker.adapters import Finished
from tests.adapters.cases import Alone, Handler
from tests.adapters.world import World
from tests.recipes.kitchen import recipe

PACKAGES = ("strands-agents",)
CANNOT: Mapping[str, str] = {}
ALONE: Mapping[str, Alone] = {}
PAGE: Final = recipe("strands", "strands_runs")

REASONS: Final[dict[str, Any]] = {"much": "x" * 20_000_000, "code": print}
Call = tuple[str, dict[str, Any], str]
GIVEN: Final = {"amount": "given"}
"""Arguments that are those of the run's input."""
PAY: Final[Call] = ("pay", GIVEN, "c1")
TURNS: Final[dict[str, tuple[list[Call], ...]]] = {
    "in_a_row": ([PAY], [PAY]),
    "three": ([("pay", {"amount": amount}, f"c{amount}") for amount in (1, 2, 3)],),
    "mixed": ([("look", {}, "c1"), ("pay", {"amount": 10}, "c2"), ("ask", {"about": "colour"}, "c3")],),
    "external": ([("ask", {"about": "frames"}, "c1")],),
    "unreadable": ([("first", {"input": '{"amount": 1}'}, "o1")],),
    "question": ([("ask", {"about": "colour"}, "c1")],),
    "large": ([("ask", {"about": "much"}, "c1")],),
    "unserializable": ([("ask", {"about": "code"}, "c1")],),
    "nested": ([("first", {"input": '{"amount": 1}'}, "o1"), ("second", {"input": '{"amount": 2}'}, "o2")],),
}


class Script(Model):
    """Makes the calls of each turn in order, by what it is shown, and then says what they came to."""

    def __init__(self, *turns: list[Call]) -> None:
        self.turns = turns

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> None: ...

    def structured_output(self, *_: Any, **__: Any) -> Any: ...

    async def stream(self, messages: list[Any], *_: Any, **__: Any) -> AsyncGenerator[dict[str, Any]]:
        parts = [part for message in messages for part in message["content"]]
        results = [part["toolResult"]["content"][0] for part in parts if "toolResult" in part]
        outputs = [one["text"] if "text" in one else one["json"]["said"] for one in results]
        given = json.loads(parts[0]["text"])
        yield {"messageStart": {"role": "assistant"}}
        begins = 0
        for turn in self.turns:
            if len(outputs) == begins:
                for name, arguments, call_id in turn:
                    said = json.dumps(given if arguments == GIVEN else arguments)
                    yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": call_id}}}}
                    yield {"contentBlockDelta": {"delta": {"toolUse": {"input": said}}}}
                    yield {"contentBlockStop": {}}
                yield {"messageStop": {"stopReason": "tool_use"}}
                return
            begins += len(turn)
        yield {"contentBlockDelta": {"delta": {"text": json.dumps(outputs)}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def agent_of(scenario: str, world: World) -> Agent:
    """A new agent of a scenario, with the page's gate before `pay`."""

    @tool(context=True)
    def pay(amount: int, tool_context: ToolContext) -> str:
        """Pays."""
        key = tool_context.invocation_state[tool_context.tool_use["toolUseId"]]
        world.effect("pay", amount, key)
        return f"paid {amount}"

    @tool
    def look() -> str:
        """Is not asked about."""
        world.effect("look", None, "")
        return "seen"

    @tool(context=True)
    def ask(about: str, tool_context: ToolContext) -> dict[str, Any]:
        """Asks a person."""
        said = tool_context.interrupt("question", REASONS.get(about, about))
        return {"status": "success", "content": [{"json": {"said": said["refused"] or said["value"]}}]}

    def gate(event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == "pay":
            PAGE.gate(event)

    def one(name: str, *turns: list[Call], tools: list[Any]) -> Agent:
        return Agent(Script(*turns), name=name, tools=tools, hooks=[gate], callback_handler=None)

    tools = [pay, look, ask]
    if scenario in ("nested", "unreadable"):
        preserves = scenario == "unreadable"
        inner = [one(name, [PAY], tools=[pay]) for name in ("first", "second")]
        tools = [agent.as_tool(preserve_context=preserves) for agent in inner]
    if world.options.get("changed"):
        tools.append(tool(lambda more: more, name="another", description="Another."))
    return one("payer", *TURNS.get(scenario, ([PAY],)), tools=tools)


class Payer(PAGE.ResumableStrands):  # type: ignore[name-defined]
    """The page's, whose result is the list that its script says."""

    async def segment(self, *given: Any) -> Any:
        came = await super().segment(*given)
        return Finished(json.loads(came.result)) if isinstance(came, Finished) else came


class Swallowing:
    """A handler that lets no exception out."""

    def __init__(self, inner: Payer) -> None:
        self._inner = inner
        self.builds = inner.builds

    async def __call__(self, run: Run[Any]) -> Any:
        try:
            return await self._inner(run)
        except Exception as error:  # noqa: BLE001 - that is the case
            return [str(error)]


def handler(scenario: str, world: World) -> Handler:
    """What a worker is given for the agent."""
    deadline = timedelta(seconds=world.options.get("seconds", 3600))
    found = Payer(lambda: agent_of(scenario, world), "payer", expires_in=deadline)
    return Swallowing(found) if scenario == "swallow" else found
