"""Pydantic AI in the suite: its scenarios, and what it does without the broker."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any, Final, cast

from pydantic_ai import (
    Agent,
    ApprovalRequired,
    CallDeferred,
    ModelResponse,
    RunContext,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.messages import ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.output import ToolOutput
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from broker.adapters.pydantic_ai import InlineWait, effect_key, resumable

from ..cases import Alone, Handler
from ..world import World

PACKAGES = ("pydantic-ai-slim",)
CANNOT: Mapping[str, str] = {
    "nested": "an agent that a tool runs has a run of its own, whose deferred calls do not reach the outer one",
}

Call = tuple[str, dict[str, Any], str]
GIVEN: Final = {"amount": "given"}
"""Arguments that are those of the run's input."""
OUTPUT: Final = ToolOutput(list[Any])
PAY: Final[Call] = ("pay", GIVEN, "c1")
TURNS: Final[dict[str, tuple[list[Call], ...]]] = {
    "in_a_row": ([PAY], [("pay", GIVEN, "c2")]),
    "three": ([("pay", {"amount": amount}, f"c{amount}") for amount in (1, 2, 3)],),
    "external": ([("render", GIVEN, "c1")],),
    "question": ([("ask", {"about": "colour"}, "q1")],),
}

FIRST: Final = {"unreadable": [TextPart("Let me see.", id=cast("str", 5))]}
"""What a model says before its calls: an id that is no text can be written and not read."""


def model_of(*turns: list[Call], first: Sequence[Any] = ()) -> FunctionModel:
    """A model that makes the calls of each turn in order, by what it is shown, and then says what they came to."""

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        prompt = next(part.content for part in parts if isinstance(part, UserPromptPart))
        outputs = [part.content for part in parts if isinstance(part, ToolReturnPart)]
        begins = 0
        for turn in turns:
            if len(outputs) == begins:
                calls = [
                    ToolCallPart(name, json.loads(prompt) if given == GIVEN else given, call_id)
                    for name, given, call_id in turn
                ]
                return ModelResponse(parts=[*first, *calls])
            begins += len(turn)
        return ModelResponse(
            parts=[ToolCallPart(info.output_tools[0].name, {"response": outputs}, f"out{len(outputs)}")]
        )

    async def stream(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        for place, part in enumerate(answer(messages, info).parts):
            if isinstance(part, ToolCallPart):
                given = json.dumps(part.args)
                yield {place: DeltaToolCall(part.tool_name, given[:4], tool_call_id=part.tool_call_id)}
                yield {place: DeltaToolCall(json_args=given[4:])}

    return FunctionModel(answer, stream_function=stream)


def agent_of(scenario: str, world: World) -> Agent[Any, Any]:
    render = ToolDefinition(name="render", parameters_json_schema={"type": "object"})
    model = model_of(*TURNS.get(scenario, ([PAY],)), first=FIRST.get(scenario, ()))
    agent: Agent[Any, Any] = Agent(
        model, name="payer", output_type=OUTPUT,
        toolsets=[ExternalToolset([render])] if scenario == "external" else [],
    )  # fmt: skip

    @agent.tool(requires_approval=scenario not in ("large", "unserializable", "unreadable"))
    def pay(ctx: RunContext[Any], amount: int) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata=METADATA[scenario]())
        world.effect("pay", amount, effect_key(ctx))
        return f"paid {amount}"

    @agent.tool_plain
    def ask(about: str) -> str:  # noqa: ARG001 - the question itself
        raise CallDeferred(kind="question")

    if world.options.get("changed"):
        agent.tool_plain(lambda more: more, name="another")
    return agent


METADATA: Final[dict[str, Any]] = {
    "large": lambda: {"blob": "x" * 20_000_000},
    "unserializable": lambda: {"function": print},
    "unreadable": dict,
}


def handler(scenario: str, world: World) -> Handler:
    """What a worker is given for the agent."""
    question = {"expires_in": timedelta(seconds=world.options.get("seconds", 3600))}
    waits = [InlineWait(world.options["inline"])] if "inline" in world.options else []
    found = resumable(agent_of(scenario, world), question=question, capabilities=waits)
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
    "edit": Alone(("pause", "edit"), "the edited call runs"),
    "external": Alone(("pause_external", "external"), "it stands for the call"),
    "three_at_once": Alone(("pause_three", "all_three"), "each runs once"),
    "three_one_by_one": Alone(("pause_three", "one_of_three"), "refused: UserError"),
    "duplicate": Alone(("pause", "approve", "approve"), "runs twice"),
    "flipped": Alone(("pause", "approve", "flip"), "both are taken: it ran, and is told not to have"),
    "late": Alone(("pause", "reject", "late"), "it runs, after the run has ended with a no"),
    "unknown_id": Alone(("pause", "unknown"), "refused: UserError"),
    "wrong_shape": Alone(("pause", "misfit"), "the model is told; nobody is asked again"),
    "race": Alone(("pause", "both"), "runs twice"),
    "killed": Alone(
        ("pause", "killed", "again_after_kill"), "runs again, if somebody keeps the state and the answer"
    ),
    "new_input": Alone(("pause", "new_input"), "refused: UserError"),
    "nested": Alone(("nested",), "the outer run ends; its caller is not asked"),
    "other_build": Alone(("pause", "other_tools"), "the model is told that there is no such tool"),
    "expired": Alone(("pause", "years_later"), "no deadline: ten years later it runs"),
    "restart_empty": Alone(("pause", "without_state"), "refused: UserError"),
    "unserializable": Alone(("unserializable",), "refused: PydanticSerializationError"),
    "changed_arguments": Alone(("pause", "changed"), "runs with the changed ones"),
    "swallowed": Alone(("pause",), "pauses: it is a result, and nothing is raised"),
}


def alone(case: str, phase: str, world: World) -> str:
    """One phase of a case without the broker."""
    word: str = import_module("tests.adapters.subjects.pydantic_ai_alone").alone(case, phase, world)
    return word
