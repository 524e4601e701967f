"""What an agent behind AG-UI does without the broker: one of Pydantic AI, behind that package's own `AGUIAdapter`.

The protocol is only the wire: who serves the agent has to keep its conversation, here in a file. Each phase is a
process that gets one request.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import time_machine
from ag_ui.core import RunAgentInput, UserMessage
from pydantic_ai import Agent, DeferredToolRequests, ModelMessagesTypeAdapter, RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai.ui.ag_ui import AGUIAdapter

from tests.adapters import forks
from tests.adapters.world import World

YES: Final = {"approved": True}
NO: Final = {"approved": False, "reason": "too much"}
YEARS: Final = timedelta(days=3650)


def model(*amounts: int, tool: str) -> FunctionModel:
    """A model that asks for these payments, and then says what the calls came to."""

    async def stream(messages: Sequence[Any], _: Any) -> AsyncIterator[Any]:
        parts = [part for message in messages for part in message.parts]
        came = [part.content for part in parts if isinstance(part, ToolReturnPart)]
        if came:
            yield json.dumps(came)
            return
        yield {
            n: DeltaToolCall(tool, json.dumps({"amount": amount}), tool_call_id=f"c{n}")
            for n, amount in enumerate(amounts, 1)
        }

    return FunctionModel(stream_function=stream)


def agent(
    world: World, amounts: Sequence[int] = (10,), *, tool: str = "pay", name: str = "pay"
) -> Agent[Any, Any]:
    render = ToolDefinition(name="render", parameters_json_schema={"type": "object"})
    made: Agent[Any, Any] = Agent(
        model(*amounts, tool=tool), output_type=[str, DeferredToolRequests],
        toolsets=[ExternalToolset([render])] if tool == "render" else [],
    )  # fmt: skip

    def pay(amount: int) -> str:
        world.effect("pay", amount, "none")
        return f"paid {amount}"

    made.tool_plain(pay, name=name, requires_approval=True)
    return made


async def _post(made: Agent[Any, Any], history: Any, given: dict[str, Any]) -> tuple[list[Any], Any]:
    asked = RunAgentInput.model_validate({"threadId": "t", "runId": "r", "messages": [], "state": None,
                                          "tools": [], "context": [], "forwardedProps": None} | given)  # fmt: skip
    ended: list[Any] = []
    stream = AGUIAdapter(made, run_input=asked).run_stream(message_history=history, on_complete=ended.append)
    events = [json.loads(one.model_dump_json(by_alias=True)) async for one in stream]
    return events, ended[0].all_messages() if ended else None


def post(
    world: World, made: Agent[Any, Any] | None = None, *, is_new: bool = False, **given: Any
) -> list[Any]:
    """The events of one request; what the conversation came to is in the file afterwards, where nothing failed."""
    kept = world.folder / "history"
    history = (
        ModelMessagesTypeAdapter.validate_json(kept.read_bytes()) if kept.exists() and not is_new else None
    )
    events, messages = asyncio.run(_post(made or agent(world), history, given))
    if history is None and messages is not None:
        kept.write_bytes(ModelMessagesTypeAdapter.dump_json(messages))
        (world.folder / "asked").write_text(json.dumps((events[-1].get("outcome") or {}).get("interrupts")))
    return events


def ask(world: World, amounts: Sequence[int] = (10,), tool: str = "pay") -> str:
    message = UserMessage(id="m1", content="go").model_dump(by_alias=True)
    events = post(world, agent(world, amounts, tool=tool), messages=[message])
    outcome = events[-1]["outcome"]["type"]
    return "pauses: it is an event, and nothing is raised" if outcome == "interrupt" else f"ended: {outcome}"


def ids(world: World) -> list[str]:
    return [one["id"] for one in json.loads((world.folder / "asked").read_text())]


def entry(name: str, payload: Any) -> dict[str, Any]:
    return {"interruptId": name, "status": "resolved", "payload": payload}


def answer(world: World, payload: Any, names: Sequence[str] = (), made: Any = None) -> list[Any]:
    """The events after one answer to each of these questions, or all."""
    return post(world, made, runId="r2", resume=[entry(name, payload) for name in names or ids(world)])


def said(events: list[Any]) -> str:
    """What the model has said, or that the run was refused."""
    if events[-1]["type"] == "RUN_ERROR":
        return "refused: RUN_ERROR"
    return "".join(one["delta"] for one in events if one["type"] == "TEXT_MESSAGE_CONTENT")


def paid(world: World) -> list[Any]:
    return sorted(one.given for one in world.effects)


def accept(world: World) -> str:
    answer(world, YES)
    return {1: "runs once", 2: "runs twice"}.get(len(world.effects), "does not run")


def again_after_kill(world: World) -> str:
    answer(world, YES)
    first, second = world.effects
    assert first.pid != second.pid
    return "runs again, if somebody keeps the conversation and the answer"


def decline(world: World) -> str:
    told = said(answer(world, NO))
    return "the model is told why, not who" if told == '["too much"]' and not world.effects else told


def edit(world: World) -> str:
    answer(world, YES | {"editedArgs": {"amount": 3}})
    return "the edited call runs" if paid(world) == [3] else str(paid(world))


def ask_external(world: World) -> str:
    return ask(world, tool="render")


def external(world: World) -> str:
    """A client that made the call itself sends the whole conversation, with the result in it."""
    call = {"id": "c1", "type": "function", "function": {"name": "render", "arguments": '{"amount": 10}'}}
    messages = [
        {"id": "m1", "role": "user", "content": "go"},
        {"id": "m2", "role": "assistant", "toolCalls": [call]},
        {"id": "m3", "role": "tool", "toolCallId": "c1", "content": "frames=240"},
    ]
    told = said(post(world, agent(world, tool="render"), is_new=True, runId="r2", messages=messages))
    return "it stands for the call, as a message" if "frames=240" in told else told


def all_three(world: World) -> str:
    answer(world, YES, made=agent(world, (1, 2, 3)))
    return "each runs once" if paid(world) == [1, 2, 3] else str(paid(world))


def one_of_three(world: World) -> str:
    told = said(answer(world, YES, ids(world)[:1], agent(world, (1, 2, 3))))
    return told if not world.effects else str(paid(world))


def flip(world: World) -> str:
    told = said(answer(world, NO))
    is_both = (told, paid(world)) == ('["too much"]', [10])
    return "both are taken: it ran, and is told not to have" if is_both else told


def late(world: World) -> str:
    answer(world, YES)
    return "it runs, after the run has ended with a no" if paid(world) == [10] else str(paid(world))


def misfit(world: World) -> str:
    told = said(answer(world, {"approved": "yes"}))
    return told if not world.effects else str(paid(world))


def unknown(world: World) -> str:
    told = said(answer(world, YES, ["int-nobody"]))
    return told if not world.effects else str(paid(world))


def new_input(world: World) -> str:
    """A new message for a thread that waits, without a word about its question."""
    message = UserMessage(id="m2", content="never mind").model_dump(by_alias=True)
    told = said(post(world, runId="r2", messages=[message]))
    is_closed = "interrupted" in told and not world.effects
    return "the model is told that the call was interrupted" if is_closed else told


def nested(world: World) -> str:
    """An agent in a tool of the one that is served."""
    inner, asked = agent(world), []
    outer: Agent[Any, Any] = Agent(model(1, tool="ask"), output_type=[str, DeferredToolRequests])

    @outer.tool_plain
    async def ask(amount: int) -> str:
        async with inner.run_stream("go") as found:
            asked.append(await found.get_output())
        return f"asked {amount}"

    message = UserMessage(id="m1", content="go").model_dump(by_alias=True)
    events = post(world, outer, messages=[message])
    is_lost = isinstance(asked[0], DeferredToolRequests) and events[-1]["outcome"]["type"] == "success"
    return "the outer run ends; the client is not asked" if is_lost else str(events[-1])


def other_tools(world: World) -> str:
    told = said(answer(world, YES, made=agent(world, name="refund")))
    is_told = "Unknown tool" in told and not world.effects
    return "the model is told that there is no such tool" if is_told else told


def years_later(world: World) -> str:
    with time_machine.travel(datetime.now(UTC) + YEARS):
        answer(world, YES)
    return "no deadline: ten years later it runs" if paid(world) == [10] else "expired"


def without_state(world: World) -> str:
    (world.folder / "history").unlink()
    told = said(answer(world, YES))
    return told if not world.effects else str(paid(world))


def unserializable(world: World) -> str:
    made = agent(world)

    @made.tool(name="pay2")
    def pay(ctx: RunContext[Any], amount: int) -> str:
        raise ApprovalRequired(metadata={"function": print, "amount": amount, "call": ctx.tool_call_id})

    message = UserMessage(id="m1", content="go").model_dump(by_alias=True)
    with made.override(model=model(1, tool="pay2")):
        try:
            events = post(world, made, messages=[message])
        except Exception as error:  # noqa: BLE001 - its name is the word
            return f"refused: {type(error).__name__}"
    return said(events) or events[-1]["outcome"]["type"]


def changed(world: World) -> str:
    """Whoever can write the stored conversation decides what was approved."""
    kept = world.folder / "history"
    kept.write_text(kept.read_text().replace('\\"amount\\": 10', '\\"amount\\": 99'))
    answer(world, YES)
    return f"runs with {'the changed ones' if paid(world) == [99] else paid(world)}"


PHASES: Final[dict[str, Callable[[World], str]]] = {
    made.__name__: made
    for made in (
        ask, accept, again_after_kill, decline, edit, ask_external, external, all_three, one_of_three, flip, late,
        misfit, unknown, new_input, nested, other_tools, years_later, without_state, unserializable, changed,
    )
} | {
    "ask_three": lambda world: ask(world, (1, 2, 3)),
    "killed": lambda world: forks.killed(lambda: answer(world, YES), world),
    "both": lambda world: forks.race(lambda: answer(world, YES), world),
}  # fmt: skip


def alone(_: str, phase: str, world: World) -> str:
    """One phase of a case."""
    return PHASES[phase](world)
