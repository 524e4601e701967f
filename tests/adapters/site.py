"""Serves an agent over AG-UI: `python -m tests.adapters.site URL NAMESPACE OPTIONS`; prints its port."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from broker import AnswerKind, AsyncBroker, Principal, Run, current_call, gated
from broker.adapters import agui
from broker.testing import await_until
from tests.worker.fleet import QUICK, report

from .child import AGENT
from .world import PATIENCE, World

URL, NAMESPACE = sys.argv[1:3]
OPTIONS: dict[str, Any] = json.loads(sys.argv[3])
WORLD = World(Path(OPTIONS["folder"]), OPTIONS)


@gated(offers=(AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT, AnswerKind.CANCEL))
async def pay(amount: int) -> str:
    WORLD.effect("pay", amount, current_call().key)
    return f"paid {amount}"


async def may_go_on() -> bool:
    return not (WORLD.folder / "wait").exists()


async def payer(run: Run[Any]) -> list[str]:
    """Pays each amount that the client's state names, and says so as it goes."""
    agui.emit({"type": "TEXT_MESSAGE_CHUNK", "messageId": f"m{run.attempt}", "delta": "One moment. "})
    await await_until(may_go_on, PATIENCE, what="the test lets go")
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

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await endpoint.aclose()
        await broker.aclose()

    app = Starlette(routes=[Route("/agent", endpoint, methods=["POST"])], lifespan=lifespan)
    listener = socket.create_server(("127.0.0.1", 0))
    report(json.dumps({"pid": os.getpid(), "port": listener.getsockname()[1]}))
    await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve([listener])


if __name__ == "__main__":
    asyncio.run(main())
