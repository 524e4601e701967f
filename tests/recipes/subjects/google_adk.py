"""Google's ADK in the suite: agents on the recipe of docs/howto/google-adk.md, read from the page."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
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

Call = tuple[str, dict[str, Any], str]
GIVEN: Final = {"amount": "given"}
"""Arguments that are those of the run's input."""
PAY: Final[Call] = ("pay", GIVEN, "c1")
TURNS: Final[dict[str, tuple[list[Call], ...]]] = {
    "in_a_row": ([PAY], [("pay", GIVEN, "c2")]),
    "three": ([("pay", {"amount": amount}, f"c{amount}") for amount in (1, 2, 3)],),
    "mixed": ([("look", {}, "c0"), PAY, ("render", {"scene": "sea"}, "c2")],),
    "jobs": ([("render", {"scene": scene}, scene) for scene in ("sea", "sky")],),
    "jobs_in_a_row": ([("render", {"scene": "sea"}, "c1")], [("render", {"scene": "sky"}, "c2")]),
    "external": ([("render", {"scene": "sea"}, "c1")],),
    "invalid": ([("render", {}, "c1")],),
    "question": ([("ask", {"about": "colour"}, "c1")],),
    "large": ([("big", {}, "c1")],),
}


class Script(BaseLlm):
    """Makes the calls of each turn in order, by what it is shown, and then says what they came to."""

    model: str = "script"
    turns: tuple[list[Call], ...] = ()
    last: bool = True

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False,
    ) -> AsyncGenerator[LlmResponse]:  # fmt: skip
        parts = [part for content in llm_request.contents for part in content.parts or []]
        said = [part.function_response.response for part in parts if part.function_response]
        results = [one.get("result", one.get("error", one)) for one in said]
        given = json.loads(next(part.text for part in parts if part.text))
        begins = 0
        for turn in self.turns:
            if len(results) == begins:
                yield answer(
                    *(
                        Part(
                            function_call=FunctionCall(
                                name=name, args=given if args == GIVEN else args, id=call_id
                            )
                        )
                        for name, args, call_id in turn
                    )
                )
                return
            begins += len(turn)
        yield answer(*[Part(text=json.dumps(results) + "\n")] * self.last)


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

    def render(scene: str) -> dict[str, str]:
        """Begins a job."""
        world.effect("render", scene, "")
        return {"ticket": "j-1"}

    def ask(about: str) -> None:
        """Asks a person."""

    def big(tool_context: ToolContext) -> str:
        """Asks with more than can be stored."""
        tool_context.request_confirmation(payload="x" * 20_000_000)
        return "asked"

    return {
        "pay": FunctionTool(pay, require_confirmation=True), "look": FunctionTool(look), "big": FunctionTool(big),
        "render": LongRunningFunctionTool(render), "ask": LongRunningFunctionTool(ask),
    }  # fmt: skip


def agent_of(scenario: str, world: World) -> BaseAgent:
    """The agent of a scenario."""
    tools = tools_of(world)
    if scenario == "nested":
        return ParallelAgent(
            name="payer",
            sub_agents=[
                LlmAgent(
                    name=f"inner{amount}",
                    model=Script(turns=([("pay", {"amount": amount}, "c1")],)),
                    tools=[tools["pay"]],
                )
                for amount in (1, 2)
            ],
        )
    subs: Sequence[BaseAgent] = ()
    turns = TURNS.get(scenario, ([PAY],))
    return LlmAgent(name="payer", model=Script(turns=turns), tools=[*tools.values()], sub_agents=[*subs])


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
