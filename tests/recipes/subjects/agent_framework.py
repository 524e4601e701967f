"""Microsoft Agent Framework in the suite: agents on the recipe of docs/howto/agent-framework.md, read from the page."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    register_state_type,
    tool,
)

from tests.adapters.cases import Alone, Handler
from tests.adapters.world import World
from tests.recipes.kitchen import recipe

PACKAGES = ("agent-framework-core",)
CANNOT: Mapping[str, str] = {}
ALONE: Mapping[str, Alone] = {}
PAGE: Final = recipe("agent-framework", "resumable_agent")

Call = tuple[str, dict[str, Any], str]
GIVEN: Final = {"amount": "given"}
"""Arguments that are those of the run's input."""
PAY: Final[Call] = ("pay", GIVEN, "c1")
TURNS: Final[dict[str, tuple[list[Call], ...]]] = {
    "in_a_row": ([PAY], [("pay", GIVEN, "c2")]),
    "same_id": ([PAY], [PAY]),
    "three": ([("pay", {"amount": amount}, f"c{amount}") for amount in (1, 2, 3)],),
    "twins": ([("pay", {"amount": amount}, "c1") for amount in (1, 2)],),
    "mixed": ([("look", {}, "c1"), ("pay", {"amount": 10}, "c2"), ("render", {}, "c3")],),
    "external": ([("render", GIVEN, "c1")],),
    "large": ([("fill", {"what": "bulk"}, "c0")], [PAY]),
    "unserializable": ([("fill", {"what": "function"}, "c0")], [PAY]),
    "unreadable": ([("fill", {"what": "sealed"}, "c0")], [PAY]),
}
RENDER: Final = FunctionTool(
    name="render", description="Done elsewhere.", func=None,
    input_model={"type": "object", "properties": {"amount": {"type": "integer"}}},
)  # fmt: skip


class Script(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Makes the calls of each turn in order, by what it is shown, and then says what they came to."""

    def __init__(self, world: World, *turns: list[Call]) -> None:
        super().__init__()
        self.world = world
        self.turns = turns

    async def _inner_get_response(self, *, messages: list[Message], **_: Any) -> ChatResponse[Any]:
        given = next((one.text for one in messages if one.role == "user"), "")
        contents = [one for message in messages for one in message.contents]
        results = [one.result for one in contents if one.type == "function_result"]
        begins = 0
        for turn in self.turns:
            if len(results) == begins:
                return said(*(call(given, *one) for one in turn))
            begins += len(turn)
        self._fail_once()
        return said(Content.from_text(json.dumps(results)))

    def _fail_once(self) -> None:
        """Where the test wants it, the model is away after the calls of the first attempt."""
        away = self.world.folder / "away"
        if away.exists():
            away.unlink()
            raise ConnectionError("the model is away")


def said(*contents: Content) -> ChatResponse[Any]:
    return ChatResponse(messages=[Message("assistant", list(contents))])


def call(given: str, name: str, arguments: dict[str, Any], call_id: str) -> Content:
    asked = json.loads(given) if arguments == GIVEN else arguments
    return Content.from_function_call(call_id, name, arguments=asked)


class Sealed:
    """A state of the application that can be written and not read."""


def unseal(_: Mapping[str, Any]) -> Sealed:
    raise ValueError("sealed")


register_state_type(Sealed, type_id="tests.sealed", encoder=lambda _: {}, decoder=unseal)
FILLING: Final[dict[str, Callable[[], Any]]] = {
    "bulk": lambda: "x" * 20_000_000,
    "function": lambda: print,
    "sealed": Sealed,
}


def agent_of(scenario: str, world: World) -> Agent:
    @tool(approval_mode="always_require")
    def pay(amount: int, ctx: FunctionInvocationContext) -> str:
        """Pays."""
        world.effect("pay", amount, ctx.kwargs["key"])
        return f"paid {amount}"

    @tool
    def look(ctx: FunctionInvocationContext) -> str:
        """Looks."""
        world.effect("look", None, ctx.kwargs["key"])
        return "looked"

    @tool
    def fill(what: str, ctx: FunctionInvocationContext) -> str:
        """Puts something into the session."""
        ctx.session.state["filled"] = FILLING[what]()
        return "filled"

    tools = [pay, look, fill, RENDER]
    if world.options.get("changed"):
        tools.append(tool(lambda: "more", name="another"))
    return Agent(client=Script(world, *TURNS.get(scenario, ([PAY],))), name="payer", tools=tools)


class Listed:
    """A worker's handler whose input is JSON and whose result is a list, as the suite has them."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.builds = inner.builds

    async def __call__(self, run: Any) -> Any:
        run.input = json.dumps(run.input)
        return json.loads(await self._inner(run))


class Swallowing(Listed):
    """One that lets no exception out."""

    async def __call__(self, run: Any) -> Any:
        try:
            return await super().__call__(run)
        except Exception as error:  # noqa: BLE001 - that is the case
            return [str(error)]


def handler(scenario: str, world: World) -> Handler:
    """What a worker is given for the agent."""
    within = timedelta(seconds=world.options.get("seconds", 3600))
    made = PAGE.ResumableAgent(agent_of(scenario, world), expires_in=within)
    return Swallowing(made) if scenario == "swallow" else Listed(made)


def alone(case: str, phase: str, world: World) -> str:
    """The recipes have no column of their own."""
    raise NotImplementedError(f"{case}, {phase}, {world}")
