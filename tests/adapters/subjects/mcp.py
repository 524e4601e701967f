"""A server of MCP whose tools ask before they pay. Each worker has one of its own; they share the key of the states."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib import import_module
from typing import Annotated, Any, Final

import mcp
from mcp import types
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel

from broker import Run
from broker.adapters.mcp import KEY, TOLD, Tools
from broker.core.limits import JSON

from ..cases import Alone, Handler
from ..world import World

PACKAGES = ("mcp",)
CANNOT = {
    "edit": "a state is bound to its arguments; what a form has fields for is changed by its answer",
    "wrong_shape": "the same: answers are forms, held against the form's schema",
    "empty_answers": "answers are flat maps of names and values, or nothing",
    "three_one_by_one": "a form has its own words and no arguments",
    "new_input": "calls of a session know nothing of one another",
    "nested": "a server of MCP has no agents inside",
    "unreadable": "only the server that sealed a state can read it",
    "unserializable": "everything is JSON",
}
ALONE = {
    "approve": Alone(("ask", "accept"), "runs once"),
    "reject": Alone(("ask", "decline"), "a bare no: it has no reason"),
    "edit": Alone(("ask", "edit"), "refused: Invalid or expired requestState"),
    "external": Alone(("ask_external", "external"), "the client asks until it is there"),
    "three_at_once": Alone(("ask_three", "all_three"), "each runs once"),
    "three_one_by_one": Alone(("ask_two", "one_of_two"), "taken one by one; it runs after the last"),
    "duplicate": Alone(("ask", "accept", "accept"), "runs twice"),
    "flipped": Alone(("ask", "accept", "flip"), "both are taken: it ran, and is told not to have"),
    "late": Alone(("ask", "decline", "late"), "it runs, after the run has ended with a no"),
    "unknown_id": Alone(("ask", "unknown"), "asked again"),
    "wrong_shape": Alone(("ask", "misfit"), "refused: an error of the tool"),
    "race": Alone(("ask", "both"), "runs twice"),
    "killed": Alone(
        ("ask", "killed", "again_after_kill"), "runs again, if the client keeps its state and the answer"
    ),
    "new_input": Alone(("ask", "new_input"), "both go on: the old question can still be answered"),
    "nested": Alone(("two_calls",), "one key for both; their states tell them apart"),
    "other_build": Alone(("ask", "other_name"), "asked again"),
    "expired": Alone(("ask", "years_later"), "refused: Invalid or expired requestState"),
    "restart_empty": Alone(("ask", "new_key"), "refused: Invalid or expired requestState"),
    "unserializable": Alone(("unserializable",), "refused: PydanticSerializationError"),
    "changed_arguments": Alone(("ask", "changed"), "refused: Invalid or expired requestState"),
    "swallowed": Alone(("ask",), "pauses: it is a result, and nothing is raised"),
}

SECRET: Final = "one key for all of the bank's processes"
FORM: Final = {"type": "object", "properties": {"note": {"type": "string"}}}


class Note(BaseModel):
    note: str = ""


class Bank:
    """The server's tools."""

    def __init__(self, world: World) -> None:
        self.world = world
        security = RequestStateSecurity(keys=[SECRET], ttl=86_400)
        self.app = MCPServer("bank", request_state_security=security, log_level="CRITICAL")
        for tool in (_pay(world), self.in_a_row, self.three, self.external, self.large):
            self.app.add_tool(tool)

    async def in_a_row(self, amount: int, ctx: Context) -> str | types.InputRequiredResult:
        done = int(ctx.request_state or 0)
        if done and self._may(ctx, "1"):
            self.world.effect("pay", amount, key_of(ctx))
        return asks(done + 1, "1") if done < 2 else f"paid {amount}\npaid {amount}"

    async def three(self, ctx: Context) -> str | types.InputRequiredResult:
        if ctx.request_state is None:
            return asks(1, "1", "2", "3")
        for key in "123":
            if self._may(ctx, key):
                self.world.effect("pay", int(key), f"{key_of(ctx)}/{key}")
        return "\n".join(f"paid {key}" if self._may(ctx, key) else f"not paid: {key}" for key in "123")

    async def external(self, amount: int, ctx: Context) -> str | types.InputRequiredResult:
        del amount, ctx
        return types.InputRequiredResult(request_state="job-7")

    async def large(self, amount: int, ctx: Context) -> str | types.InputRequiredResult:
        del amount, ctx
        return types.InputRequiredResult(request_state="x" * 20_000_000)

    def _may(self, ctx: Context, key: str) -> bool:
        answer = (ctx.input_responses or {})[key]
        assert isinstance(answer, types.ElicitResult)
        is_yes: bool = answer.action == "accept"
        return is_yes


def _pay(world: World) -> Any:
    async def ask(amount: int) -> Elicit[Note]:
        return Elicit(f"Pay {amount}?", Note)

    async def pay(amount: int, ctx: Context, ok: Annotated[ElicitationResult[Note], Resolve(ask)]) -> str:
        if ok.action != "accept":
            return f"not paid: {ok.action}"
        world.effect("pay", amount, key_of(ctx))
        return f"paid {amount}"

    return pay


def key_of(ctx: Context) -> str:
    return str((ctx.request_context.meta or {}).get(KEY, ""))


def asks(state: int, *keys: str) -> types.InputRequiredResult:
    form = types.ElicitRequestFormParams(message="Pay?", requested_schema=FORM)
    request = types.ElicitRequest(params=form)
    return types.InputRequiredResult(input_requests=dict.fromkeys(keys, request), request_state=str(state))


class Payer:
    """The handler: one call of the scenario's tool."""

    def __init__(self, scenario: str, world: World) -> None:
        self._scenario = scenario
        bank = Bank(world).app

        @asynccontextmanager
        async def connect(elicit: Any) -> AsyncIterator[mcp.Client]:
            async with mcp.Client(bank, elicitation_callback=elicit) as client:
                yield client

        seconds = world.options.get("seconds")
        self._tools = Tools(
            "bank", connect, revision="2" if world.options.get("changed") else "1",
            expires_in=timedelta(seconds=seconds) if seconds else "default",
        )  # fmt: skip
        self.builds = self._tools.builds

    async def __call__(self, run: Run[Any]) -> JSON:
        tool = {"swallow": "pay"}.get(self._scenario, self._scenario)
        run.input = {"tool": tool, "arguments": run.input or {}}
        if self._scenario != "swallow":
            return said(await self._tools(run))
        try:
            return said(await self._tools(run))
        except Exception:  # noqa: BLE001 - the case
            return ["swallowed"]


def said(result: Any) -> list[str]:
    """What a model reads of a result."""
    told = result.get("_meta", {}).get(TOLD, [])
    lines: list[str] = result["content"][0]["text"].split("\n")
    return [*lines[:-1], " ".join([lines[-1], *told])]


def handler(scenario: str, world: World) -> Handler:
    return Payer(scenario, world)


def alone(case: str, phase: str, world: World) -> str:
    """One phase of a case without the broker: a client that keeps the state in a file, and a server."""
    word: str = import_module("tests.adapters.subjects.mcp_alone").alone(case, phase, world)
    return word
