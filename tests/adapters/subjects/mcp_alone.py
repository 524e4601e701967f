"""What a client and a server of MCP do in the cases without the broker. Each phase is a process with both in it."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import mcp
import time_machine
from mcp import types
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity

from tests.adapters import forks
from tests.adapters.world import World

from .mcp import SECRET, Bank, Note

TEN: Final = {"amount": 10}
YES: Final = {"action": "accept", "content": {}}
NO: Final = {"action": "decline"}
YEARS: Final = timedelta(days=3650)


def paid(world: World) -> list[Any]:
    return sorted(one.given for one in world.effects)


async def _never(_context: Any, _params: Any) -> types.ElicitResult:
    raise AssertionError("nobody is asked in the middle of a call")


async def _call(app: MCPServer, tool: str, given: dict[str, Any], **more: Any) -> Any:
    async with mcp.Client(app, elicitation_callback=_never) as client:
        return await client.session.call_tool(tool, given, allow_input_required=True, **more)


def ask(world: World, tool: str = "pay", given: Any = None, app: Any = None) -> str:
    """The client keeps the server's state, and what it is asked, in a file."""
    asked = asyncio.run(_call(app or Bank(world).app, tool, given or (TEN if tool != "three" else {})))
    keep(world, asked)
    return "pauses: it is a result, and nothing is raised" if is_paused(asked) else "ended"


def is_paused(result: Any) -> bool:
    return isinstance(result, types.InputRequiredResult)


def keep(world: World, asked: Any) -> None:
    (world.folder / "state.json").write_text(
        json.dumps([list(asked.input_requests or {}), asked.request_state])
    )


def kept(world: World) -> tuple[list[str], str]:
    keys, state = json.loads((world.folder / "state.json").read_text())
    return keys, state


def answer(
    world: World, said: dict[str, Any], *, tool: str = "pay", given: Any = TEN, key: str = "", app: Any = None
) -> Any:
    """What comes of one answer to every question (or to one key), sent with the state that was kept."""
    keys, state = kept(world)
    answers = {one: types.ElicitResult.model_validate(said) for one in ([key] if key else keys)}
    more = {"input_responses": answers, "request_state": state}
    return asyncio.run(_call(app or Bank(world).app, tool, given, **more))


def text(result: Any) -> str:
    return str(result.content[0].text)


def tried(work: Callable[[], Any]) -> str:
    """What it is told where it is refused."""
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - its name is the word
        cause = error
        while isinstance(cause, ExceptionGroup):  # what leaves a client's block
            cause = cause.exceptions[0]
        return f"refused: {cause.message if isinstance(cause, mcp.MCPError) else type(cause).__name__}"
    if is_paused(result):
        return "asked again"
    return "refused: an error of the tool" if result.is_error else text(result)


def accept(world: World) -> str:
    answer(world, YES)
    return {1: "runs once", 2: "runs twice"}[len(world.effects)]


def again_after_kill(world: World) -> str:
    answer(world, YES)
    first, second = world.effects
    assert first.pid != second.pid
    return "runs again, if the client keeps its state and the answer"


def decline(world: World) -> str:
    said = text(answer(world, NO | {"_meta": {"reason": "too much"}}))
    return "a bare no: it has no reason" if said == "not paid: decline" and not world.effects else said


def edit(world: World) -> str:
    return tried(lambda: answer(world, YES, given={"amount": 3}))


def external(world: World) -> str:
    """The server says that there is no result yet; the client can only ask again."""
    _, state = kept(world)
    app = Bank(world).app
    again = asyncio.run(_call(app, "external", TEN, request_state=state))
    return "the client asks until it is there" if is_paused(again) and not kept(world)[0] else text(again)


def all_three(world: World) -> str:
    answer(world, YES, tool="three", given={})
    return "each runs once" if paid(world) == [1, 2, 3] else str(paid(world))


def shop(world: World) -> MCPServer:
    """A server with a tool that asks two things."""

    async def first(amount: int) -> Elicit[Note]:
        return Elicit(f"Pay {amount}?", Note)

    async def second(amount: int) -> Elicit[Note]:
        return Elicit(f"Really {amount}?", Note)

    async def buy(
        amount: int,
        one: Annotated[ElicitationResult[Note], Resolve(first)],
        two: Annotated[ElicitationResult[Note], Resolve(second)],
    ) -> str:
        world.effect("pay", amount, "")
        return f"{one.action} {two.action}"

    app = MCPServer("shop", request_state_security=RequestStateSecurity(keys=[SECRET]), log_level="CRITICAL")
    app.add_tool(buy)
    return app


def one_of_two(world: World) -> str:
    """Both are asked at once; the state of the answer to one carries it."""
    keys, _ = kept(world)
    asked = answer(world, YES, tool="buy", key=keys[0], app=shop(world))
    before = paid(world)
    keep(world, asked)
    left, _ = kept(world)
    said = text(answer(world, NO, tool="buy", app=shop(world)))
    is_so = (before, left, paid(world)) == ([], keys[1:], [10]) and said == "accept decline"
    return "taken one by one; it runs after the last" if is_so else f"{before} {left} {said}"


def flip(world: World) -> str:
    said = text(answer(world, NO))
    is_both = (said, paid(world)) == ("not paid: decline", [10])
    return "both are taken: it ran, and is told not to have" if is_both else said


def late(world: World) -> str:
    answer(world, YES)
    return "it runs, after the run has ended with a no" if paid(world) == [10] else str(paid(world))


def misfit(world: World) -> str:
    return tried(lambda: answer(world, {"action": "accept", "content": {"note": ["many"]}}))


def new_input(world: World) -> str:
    """Another call: the first one's state stays good."""
    first = asyncio.run(_call(Bank(world).app, "pay", {"amount": 7}))
    assert is_paused(first)
    answer(world, YES)
    return "both go on: the old question can still be answered" if paid(world) == [10] else str(paid(world))


def two_calls(world: World) -> str:
    """Two calls of a tool: their questions have one key, and the states are bound to the arguments."""
    ask(world)
    key = kept(world)[0]
    assert tried(lambda: answer(world, YES, given={"amount": 11})).startswith("refused")
    ask(world, given={"amount": 11})
    answer(world, YES, given={"amount": 11})
    same = kept(world)[0] == key
    return (
        "one key for both; their states tell them apart" if same and paid(world) == [11] else str(paid(world))
    )


def renamed(world: World) -> MCPServer:
    """A server whose function that asks has another name."""

    async def asks(amount: int) -> Elicit[Note]:
        return Elicit(f"Pay {amount}?", Note)

    async def pay(amount: int, ctx: Context, ok: Annotated[ElicitationResult[Note], Resolve(asks)]) -> str:
        del ctx
        world.effect("pay", amount, "")
        return f"{ok.action}"

    app = MCPServer("bank", request_state_security=RequestStateSecurity(keys=[SECRET]), log_level="CRITICAL")
    app.add_tool(pay)
    return app


def years_later(world: World) -> str:
    """A state lives for as long as its server has said: here for a day."""
    with time_machine.travel(datetime.now(UTC) + YEARS):
        return tried(lambda: answer(world, YES))


def new_key(world: World) -> str:
    """A server that was told no key makes one when it starts."""
    fresh = Bank(world).app
    fresh._lowlevel_server.middleware[:] = MCPServer("bank")._lowlevel_server.middleware
    return tried(lambda: answer(world, YES, app=fresh))


def unserializable(world: World) -> str:
    return tried(lambda: asyncio.run(_call(Bank(world).app, "pay", {"amount": print})))


PHASES: Final[dict[str, Callable[[World], str]]] = {
    made.__name__: made
    for made in (
        ask, accept, again_after_kill, decline, edit, external, all_three, one_of_two, flip, late, misfit,
        new_input, two_calls, years_later, new_key, unserializable,
    )
} | {
    "ask_external": lambda world: ask(world, "external"),
    "ask_three": lambda world: ask(world, "three"),
    "ask_two": lambda world: ask(world, "buy", app=shop(world)),
    "unknown": lambda world: tried(lambda: answer(world, YES, key="nobody-asked")),
    "other_name": lambda world: tried(lambda: answer(world, YES, app=renamed(world))),
    "changed": lambda world: tried(lambda: answer(world, YES, given={"amount": 99})),
    "killed": lambda world: forks.killed(lambda: answer(world, YES), world),
    "both": lambda world: forks.race(lambda: answer(world, YES), world),
}  # fmt: skip


def alone(_: str, phase: str, world: World) -> str:
    """One phase of a case."""
    return PHASES[phase](world)
