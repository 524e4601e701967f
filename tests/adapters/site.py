"""Serves an agent over AG-UI: `python -m tests.adapters.site URL NAMESPACE OPTIONS`; prints its port."""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from broker import AnswerKind, AsyncBroker, Principal, Run, current_call, gated
from broker.adapters import agui
from tests.worker.fleet import QUICK, report

from .child import AGENT
from .world import World

URL, NAMESPACE = sys.argv[1:3]
OPTIONS: dict[str, Any] = json.loads(sys.argv[3])
WORLD = World(Path(OPTIONS["folder"]), OPTIONS)


@gated(offers=(AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT, AnswerKind.CANCEL))
async def pay(amount: int) -> str:
    WORLD.effect("pay", amount, current_call().key)
    return f"paid {amount}"


async def payer(run: Run[Any]) -> list[str]:
    """Pays each amount that the client's state names, and says so as it goes."""
    agui.emit({"type": "TEXT_MESSAGE_CHUNK", "messageId": f"m{run.attempt}", "delta": "One moment. "})
    wanted = enumerate(run.input["state"]["amounts"])
    calls = [
        {"id": f"call-{place}", "name": "pay", "arguments": {"amount": amount}} for place, amount in wanted
    ]
    return [one["content"] for one in await run.calls(calls, [pay])]


async def signed_in(request: Request) -> Principal:
    name = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not name:
        raise HTTPException(401)
    return Principal(id=name, verified=True)


async def main() -> None:
    broker = AsyncBroker(URL, namespace=NAMESPACE, settings=QUICK)
    handler = None if OPTIONS.get("only_listens") else payer
    endpoint = agui.Endpoint(broker, AGENT, handler, who=signed_in)
    app = Starlette(routes=[Route("/agent", endpoint, methods=["POST"])])
    listener = socket.create_server(("127.0.0.1", 0))
    report(json.dumps({"pid": os.getpid(), "port": listener.getsockname()[1]}))
    try:
        await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve([listener])
    finally:
        await endpoint.aclose()
        await broker.aclose()


if __name__ == "__main__":
    asyncio.run(main())
