"""Google's ADK in the suite: agents on the recipe of docs/howto/google-adk.md, read from the page."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from google.adk.agents import BaseAgent, LlmAgent, ParallelAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai.types import Content, FunctionCall, Part

from broker import Run
from broker.adapters import Finished
from tests.adapters.cases import Alone, Handler
from tests.adapters.world import World
from tests.recipes.kitchen import recipe

PACKAGES = ("google-adk",)
CANNOT: Mapping[str, str] = {}
ALONE: Mapping[str, Alone] = {}
PAGE: Final = recipe("google-adk", "adk_runs")
for late in ("flows.llm_flows.auto_flow", "workflow._workflow", "workflow._llm_agent_wrapper"):
    import_module(f"google.adk.{late}")  # at its first run otherwise: three seconds for each child

Call = tuple[str, dict[str, Any], str]
GIVEN: Final = {"amount": "given"}
"""Arguments that are those of the run's input."""
PAY: Final[Call] = ("pay", GIVEN, "c1")
HAND_ON: Final = [("transfer_to_agent", {"agent_name": "cashier"}, "t1")]
TURNS: Final[dict[str, tuple[list[Call], ...]]] = {
    "in_a_row": ([PAY], [("pay", GIVEN, "c2")]),
    "three": ([("pay", {"amount": amount}, f"c{amount}") for amount in (1, 2, 3)],),
    "looks_then": ([PAY], [("look", {}, "c2")]),
    "mixed": ([("look", {}, "c0"), PAY, ("render", {"scene": "sea"}, "c2")],),
    "jobs": ([("render", {"scene": scene}, scene) for scene in ("sea", "sky")],),
    "handed_on": ([PAY],),
    "jobs_handed_on": ([("render", {"scene": "sea"}, "c1")], [("render", {"scene": "sky"}, "c2")]),
    "external": ([("render", {"scene": "sea"}, "c1")],),
    "bare": ([("close", {}, "c1")],),
    "unserializable": ([("odd", {}, "c1")],),
    "invalid": ([("render", {}, "c1")],),
    "large": ([("big", {}, "c1")],),
}


class Script(BaseLlm):
    """Makes the calls of each turn in order, by what it is shown, and then says what they came to.

    Each time that it is asked is a line of `log`.
    """

    model: str = "script"
    turns: tuple[list[Call], ...] = ()
    is_silent: bool = False

    log: Path

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False,  # noqa: ARG002, FBT001, FBT002 - as its base has it
    ) -> AsyncGenerator[LlmResponse]:  # fmt: skip
        with self.log.open("a") as file:
            file.write("asked\n")
        parts = [part for content in llm_request.contents for part in content.parts or []]
        said = [part.function_response.response for part in parts if part.function_response]
        results = [one.get("result", one.get("error", one)) for one in said]
        given = json.loads(next(part.text for part in parts if part.text))
        begins = 0
        for turn in self.turns:
            if len(results) == begins:
                calls = [
                    FunctionCall(name=name, args=given if args == GIVEN else args, id=call_id)
                    for name, args, call_id in turn
                ]
                yield answer(Part(text="One moment."), *[Part(function_call=call) for call in calls])
                return
            begins += len(turn)
        yield answer(*[] if self.is_silent else [Part(text=json.dumps(results) + "\n")])


def answer(*parts: Part) -> LlmResponse:
    """What the model says."""
    return LlmResponse(content=Content(role="model", parts=list(parts)))


def tools_of(world: World) -> dict[str, Any]:
    """The tools of the scenarios. `pay` is asked about, `render` is a job elsewhere."""

    def pay(amount: int, tool_context: ToolContext) -> str:
        """Pays."""
        world.effect("pay", amount, tool_context.tool_confirmation.payload["key"])
        return f"paid {amount}"

    def look() -> str:
        """Is not asked about."""
        world.effect("look", None, "")
        return "seen"

    def render(scene: str) -> None:
        """Begins a job."""
        world.effect("render", scene, "")

    def close(tool_context: ToolContext) -> str:
        """Takes no arguments."""
        world.effect("close", None, tool_context.tool_confirmation.payload["key"])
        return "closed"

    def odd(tool_context: ToolContext) -> str:
        """Asks, and puts into the session what cannot be stored."""
        tool_context.state["function"] = print
        tool_context.request_confirmation(hint="odd?")
        return "asked"

    def big(tool_context: ToolContext) -> str:
        """Asks with more than can be stored."""
        tool_context.request_confirmation(payload="x" * 20_000_000)
        return "asked"

    return {
        "pay": FunctionTool(pay, require_confirmation=True), "look": FunctionTool(look), "big": FunctionTool(big),
        "odd": FunctionTool(odd),
        "render": LongRunningFunctionTool(render), "close": FunctionTool(close, require_confirmation=True),
    }  # fmt: skip


def agent_of(scenario: str, world: World) -> BaseAgent:
    """The agent of a scenario."""
    tools = tools_of(world)

    def one(name: str, *turns: list[Call], some: Sequence[str] = tuple(tools), **more: Any) -> LlmAgent:
        script = Script(turns=turns, is_silent=scenario == "silent", log=world.folder / "model")
        return LlmAgent(name=name, model=script, tools=[tools[tool] for tool in some], **more)

    match scenario:
        case "nested":
            inner = [one(f"inner{amount}", [("pay", {"amount": amount}, "c1")]) for amount in (1, 2)]
            return ParallelAgent(name="payer", sub_agents=inner)
        case "handed_on" | "jobs_handed_on":
            inside = one("cashier", *TURNS[scenario])
            return one("payer", HAND_ON, some=(), sub_agents=[inside])
        case _:
            return one("payer", *TURNS.get(scenario, ([PAY],)))


class Payer(PAGE.ResumableAdk):  # type: ignore[name-defined]
    """The page's, whose result is the list that its script says."""

    async def start(self, given: Any) -> Any:
        return await super().start(json.dumps(given))

    async def segment(self, *given: Any) -> Any:
        came = await super().segment(*given)
        if not isinstance(came, Finished):
            return came
        return Finished([one for line in came.result.splitlines() for one in json.loads(line)])


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
    release = "2" if world.options.get("changed") else "1"
    found = Payer(agent_of(scenario, world), release, expires_in=deadline)
    return Swallowing(found) if scenario == "swallow" else found
