"""The OpenAI Agents SDK in the suite: its scenarios, and what it does without the broker."""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

from agents import (
    Agent,
    AgentOutputSchema,
    Model,
    ModelResponse,
    ModelSettings,
    ModelTracing,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext

from broker.adapters.openai_agents import brokered, effect_key, resumable

from ..cases import Alone, Handler
from ..world import World

set_tracing_disabled(True)

PACKAGES = ("openai-agents",)
CANNOT: Mapping[str, str] = {}

Call = tuple[str, dict[str, Any], str]
GIVEN: Final = {"amount": "given"}
"""Arguments that are those of the run's input."""


class Stub(Model):
    """A model that makes the calls of each turn in order, by what it is shown, and then says what they came to."""

    def __init__(self, *turns: list[Call]) -> None:
        self._turns = turns

    async def get_response(self, *_: Any, input: Any, **__: Any) -> Any:  # noqa: A002
        items = [{"content": input}] if isinstance(input, str) else input
        outputs = [one["output"] for one in items if one.get("type") == "function_call_output"]
        begins = 0
        for turn in self._turns:
            if len(outputs) == begins:
                return _response(
                    function_call(
                        name, _read(items[0]["content"]) if given == GIVEN else given, call_id=call_id
                    )
                    for name, given, call_id in turn
                )
            begins += len(turn)
        return _response([assistant_message(json.dumps({"response": [_read(one) for one in outputs]}))])

    async def stream_response(self, _: Any, input: Any, *__: Any, **___: Any) -> Any:  # noqa: A002
        turn = await self.get_response(input=input)
        async for event in ScriptedModel([turn.output]).stream_response(
            None, "", ModelSettings(), [], None, [], ModelTracing.DISABLED,
            previous_response_id=None, conversation_id=None, prompt=None,
        ):  # fmt: skip
            yield event


def _response(items: Iterable[Any]) -> Any:
    return ModelResponse(output=list(items), usage=Usage(), response_id=None)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def payer(world: World) -> Any:
    """The gated tool."""

    @function_tool
    def pay(ctx: ToolContext[Any], amount: int) -> str:
        world.effect("pay", amount, effect_key(ctx))
        return f"paid {amount}"

    return pay


@function_tool
def render(amount: int) -> str:
    raise AssertionError(amount)  # it runs elsewhere


@function_tool
def ask(about: str) -> str:
    raise AssertionError(about)  # a person answers it


PAY: Final[Call] = ("pay", GIVEN, "c1")
TURNS: Final[dict[str, tuple[list[Call], ...]]] = {
    "in_a_row": ([PAY], [("pay", GIVEN, "c2")]),
    "three": ([("pay", {"amount": amount}, f"c{amount}") for amount in (1, 2, 3)],),
    "external": ([("render", GIVEN, "c1")],),
    "question": ([("ask", {"about": "colour"}, "q1")],),
    "nested": ([("ask1", {"input": "x"}, "o1"), ("ask2", {"input": "x"}, "o2")],),
}


def tools_of(scenario: str, pay: Any) -> list[Any]:
    match scenario:
        case "external":
            return [brokered(render, asks="completion")]
        case "question":
            return [brokered(ask, asks="question")]
        case "nested":
            inner = [
                Agent(name=f"inner{n}", tools=[pay], model=Stub([("pay", {"amount": n}, "i1")]))
                for n in (1, 2)
            ]
            return [one.as_tool(f"ask{n}", "asks") for n, one in enumerate(inner, 1)]
        case _:
            return [pay]


def agent_of(scenario: str, pay: Any, *more: Any) -> Any:
    output = AgentOutputSchema(list[Any], strict_json_schema=False)
    model = Stub(*TURNS.get(scenario, ([PAY],)))
    return Agent(name="payer", tools=[*tools_of(scenario, pay), *more], model=model, output_type=output)


class Opaque:
    """A context that is no mapping."""


def unreadable(_: Any) -> Any:
    raise ValueError("this context cannot be read back")


def handler(scenario: str, world: World) -> Handler:
    """What a worker is given for the agent."""
    more = [ask] if world.options.get("changed") else []
    question = {"expires_in": timedelta(seconds=world.options.get("seconds", 3600))}
    options: dict[str, Any] = {}
    match scenario:
        case "large":
            options["context"] = lambda _: {"blob": "x" * 20_000_000}
        case "unserializable":
            options["context"] = lambda _: {"function": print}
        case "unreadable":
            options = {
                "context": lambda _: Opaque(),
                "context_serializer": lambda _: {},
                "context_deserializer": unreadable,
            }
        case _:
            pass
    found = resumable(agent_of(scenario, brokered(payer(world)), *more), question=question, **options)
    return Swallowing(found) if scenario == "swallow" else found


class Swallowing:
    """A handler that lets no exception out."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.builds = inner.builds

    async def __call__(self, run: Any) -> Any:
        try:
            return await self._inner(run)
        except Exception as error:  # noqa: BLE001 - that is the case
            return [str(error)]


ALONE: Mapping[str, Alone] = {
    "approve": Alone(("pause", "approve"), "runs once"),
    "reject": Alone(("pause", "reject"), "the model is told why, not who"),
    "edit": Alone(("pause", "edit"), "refused: ModelBehaviorError"),
    "external": Alone(("pause", "external"), "only as the words of a no"),
    "three_at_once": Alone(("pause_three", "all_three"), "each runs once"),
    "three_one_by_one": Alone(("pause_three", "one_of_three"), "each runs when it is answered"),
    "duplicate": Alone(("pause", "approve", "approve"), "runs twice"),
    "flipped": Alone(("pause", "approve", "flip"), "both are taken: it ran, and is told not to have"),
    "late": Alone(("pause", "reject", "late"), "it runs, after the run has ended with a no"),
    "unknown_id": Alone(("pause", "unknown"), "ignored without a word"),
    "wrong_shape": Alone(("pause", "misfit"), "refused: AttributeError"),
    "race": Alone(("pause", "both"), "runs twice"),
    "killed": Alone(
        ("pause", "killed", "again_after_kill"), "runs again, if somebody keeps the state and the answer"
    ),
    "new_input": Alone(("pause", "new_input"), "both go on: the old question can still be answered"),
    "nested": Alone(("pause_nested", "nested"), "two questions, told apart by the agents' names"),
    "other_build": Alone(("pause", "other_name"), "refused: UserError"),
    "expired": Alone(("pause", "years_later"), "no deadline: ten years later it runs"),
    "restart_empty": Alone(("pause", "without_state"), "refused: UserError"),
    "unserializable": Alone(("unserializable",), "lost without an error; strict, refused: UserError"),
    "changed_arguments": Alone(("pause", "changed"), "refused: ModelBehaviorError"),
    "swallowed": Alone(("pause",), "pauses: it is a result, and nothing is raised"),
}


def alone(case: str, phase: str, world: World) -> str:
    """One phase of a case without the broker."""
    word: str = import_module("tests.adapters.subjects.openai_agents_alone").alone(case, phase, world)
    return word
