"""A server of MCP over standard input, in a process: `python -m tests.adapters.bank URL NAMESPACE OPTIONS`."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel

from broker import AsyncBroker
from broker.adapters import effect_key
from broker.adapters.mcp import SingleUse
from tests.worker.fleet import QUICK

from .world import World

URL, NAMESPACE = sys.argv[1:3]
OPTIONS: dict[str, Any] = json.loads(sys.argv[3])
WORLD = World(Path(OPTIONS["folder"]), OPTIONS)


class Order(BaseModel):
    amount: int


async def ask(account: str) -> Elicit[Order]:
    return Elicit(f"How much of {account}?", Order)


async def pay(account: str, order: Annotated[ElicitationResult[Order], Resolve(ask)]) -> str:
    """Pays what somebody says."""
    if order.action != "accept":
        return f"not paid: {order.action}"
    key = effect_key(account) if OPTIONS.get("once") else ""
    WORLD.effect(account, order.data.amount, key)
    return f"paid {order.data.amount} of {account}"


async def pay_live(account: str, ctx: Context) -> str:
    """The same, asked in the middle of the call, as on the older versions of the protocol."""
    order = await ctx.elicit(f"How much of {account}?", Order)
    if order.action != "accept":
        return f"not paid: {order.action}"
    sure = await ctx.elicit(f"Really {order.data.amount}?", Order)
    if sure.action != "accept":
        return f"not paid: {sure.action}"
    WORLD.effect(account, sure.data.amount, "")
    return f"paid {sure.data.amount} of {account}"


def main() -> None:
    once = [SingleUse(AsyncBroker(URL, namespace=NAMESPACE, settings=QUICK))] if OPTIONS.get("once") else []
    security = RequestStateSecurity(keys=["one key for all of the bank's processes"], ttl=86_400)
    app = MCPServer("bank", request_state_security=security, middleware=once, log_level="CRITICAL")
    app.add_tool(pay)
    app.add_tool(pay_live)
    app.run("stdio")


if __name__ == "__main__":
    main()
