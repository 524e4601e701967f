"""A tool of an MCP server asks; whoever called it is killed, and another one goes on with the answer.

`python mcp_calls.py` does it all. The broker's embedded server is used where `BROKER_URL` names none.
"""

import asyncio
import os
import sys
from datetime import timedelta
from typing import Annotated, Any

from mcp import Client, StdioServerParameters
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel

from broker import AsyncBroker, Principal, Respond, Run, RunRecord, Settings, Worker
from broker.adapters.mcp import Tools

SETTINGS = Settings(lease=timedelta(seconds=2), sweep_every=timedelta(milliseconds=200))
NAMESPACE = "example-mcp"


class Order(BaseModel):
    """What the bank asks for."""

    amount: int


async def ask(account: str) -> Elicit[Order]:
    """The bank's question."""
    return Elicit(f"How much of {account}?", Order)


async def pay(account: str, order: Annotated[ElicitationResult[Order], Resolve(ask)]) -> str:
    """Pays what somebody has said."""
    return f"paid {order.data.amount} of {account}" if order.action == "accept" else "not paid"


def bank() -> None:
    """The MCP server; each connection has a process of its own, and all of them the key."""
    sealing = RequestStateSecurity(keys=["a key that all processes of the bank share"], ttl=86_400)
    app = MCPServer("bank", request_state_security=sealing)
    app.add_tool(pay)
    app.run("stdio")


SERVER = StdioServerParameters(command=sys.executable, args=[__file__, "bank"])
tools = Tools("bank", lambda elicit: Client(SERVER, elicitation_callback=elicit))


class Caller:
    """Makes the call. The first process that gets past it is killed before it has told anybody."""

    builds = tools.builds

    async def __call__(self, run: Run[Any]) -> str:
        """The call's text, once it has ended."""
        result: Any = await tools(run)
        if run.attempt == 1:
            print("killed:", os.getpid(), flush=True)
            os.kill(os.getpid(), 9)
        print("ended:", os.getpid(), flush=True)
        return str(result["content"][0]["text"])


def worker() -> None:
    """One worker process."""
    one = Worker(namespace=NAMESPACE, settings=SETTINGS)
    one.add("bank", Caller())
    one.run()


async def main() -> None:
    """Starts two workers and a run, answers its question, and waits for its end."""
    async with AsyncBroker(namespace=NAMESPACE, settings=SETTINGS, by=Principal.local("ada")) as broker:
        call = {"tool": "pay", "arguments": {"account": "rent"}}
        started = await broker.start("bank", call, session="s_1")
        workers = [await asyncio.create_subprocess_exec(sys.executable, __file__, "worker") for _ in range(2)]
        async for delivery in broker.inbox.follow("approvals"):
            asked = delivery.record
            print("asked:", asked.interrupt.message, flush=True)
            await broker.inbox.answer(asked.id, Respond(payload={"amount": 3}), seen=asked.digest)
            break
        done = await broker.wait(started.run_id, timeout=60)
        for one in workers:
            if one.returncode is None:
                one.terminate()
        await asyncio.gather(*(one.wait() for one in workers))
        assert isinstance(done, RunRecord)
        print(done.result)


if __name__ == "__main__":
    role = sys.argv[1] if len(sys.argv) > 1 else ""
    {"bank": bank, "worker": worker}.get(role, lambda: asyncio.run(main()))()
