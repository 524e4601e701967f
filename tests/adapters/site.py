"""Serves an agent over AG-UI: `python -m tests.adapters.site URL NAMESPACE OPTIONS`; prints its port."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from broker import (
    AnswerKind,
    AsyncBroker,
    CallFailed,
    Pending,
    Principal,
    Run,
    current_call,
    gated,
    long_running,
)
from broker.adapters import agui
from broker.testing import await_until
from tests.worker.fleet import QUICK, report

from .child import AGENT
from .world import PATIENCE, World

URL, NAMESPACE = sys.argv[1:3]
OPTIONS: dict[str, Any] = json.loads(sys.argv[3])
WORLD = World(Path(OPTIONS["folder"]), OPTIONS)


@gated(
    offers=(AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT, AnswerKind.CANCEL),
    expires_in=timedelta(seconds=OPTIONS.get("seconds", 3600)),
)
async def pay(amount: int) -> str:
    WORLD.effect("pay", amount, current_call().key)
    return f"paid {amount}"


@gated(offers=(AnswerKind.APPROVE, AnswerKind.REJECT))
async def pay_or_not(amount: int) -> str:
    return await pay(amount)


@gated(offers=(AnswerKind.RESPOND,))
async def ask(about: str) -> str:
    raise AssertionError(about)  # the client answers it


@long_running
async def render(frames: int) -> Pending:
    return Pending(handle=f"job-{frames}")


async def may_go_on() -> bool:
    return not (WORLD.folder / "wait").exists()


async def payer(run: Run[Any]) -> list[Any]:
    """Pays each amount that the client's state names, and says so as it goes."""
    agui.emit({"type": "TEXT_MESSAGE_CHUNK", "messageId": f"m{run.attempt}", "delta": "One moment. "})
    await await_until(may_go_on, PATIENCE, what="the test lets go")
    fee = OPTIONS.get("fee", 0)
    wanted = enumerate(run.input["state"]["amounts"])
    calls = [
        {"id": f"call-{place}", "name": "pay", "arguments": {"amount": amount + fee}}
        for place, amount in wanted
    ]
    return [one["content"] for one in await run.calls(calls, [pay])]


async def in_a_row(run: Run[Any]) -> list[Any]:
    return [await run.call(pay, {"amount": amount}) for amount in run.input["state"]["amounts"]]


async def nested(run: Run[Any]) -> list[Any]:
    """Two agents inside of this one at the same time, each of which makes the same call."""

    async def inner() -> Any:
        try:
            return await run.call(pay, {"amount": 10})
        except CallFailed as failed:
            return str(failed)

    return list(await asyncio.gather(inner(), inner()))


async def swallows(run: Run[Any]) -> list[Any]:
    try:
        return await payer(run)
    except BaseException:  # noqa: BLE001 - that is the case
        return ["swallowed"]


def one_call(tool: Any, arguments: dict[str, Any]) -> Any:
    """An agent that makes one call."""

    async def agent(run: Run[Any]) -> Any:
        return await run.call(tool, arguments)

    return agent


AGENTS: dict[str, Any] = {
    "pay": payer,
    "in_a_row": in_a_row,
    "nested": nested,
    "swallow": swallows,
    "yes_or_no": one_call(pay_or_not, {"amount": 10}),
    "question": one_call(ask, {"about": "colour"}),
    "external": one_call(render, {"frames": 240}),
    "large": one_call(pay, {"amount": "x" * 2_000_000}),
    "unserializable": one_call(pay, {"amount": print}),
    "unreadable": one_call(pay, {"amount": "\ud800"}),
}


async def signed_in(request: Request) -> Principal:
    name = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not name:
        raise HTTPException(401)
    return Principal(id=name, verified=True)


async def main() -> None:
    broker = AsyncBroker(URL, namespace=NAMESPACE, settings=QUICK)
    handler = None if OPTIONS.get("only_listens") else AGENTS[OPTIONS.get("scenario", "pay")]
    endpoint = agui.Endpoint(broker, AGENT, handler, who=signed_in, build=OPTIONS.get("build"))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with broker, endpoint:
            yield

    app = Starlette(routes=[Route("/agent", endpoint, methods=["POST"])], lifespan=lifespan)
    listener = socket.create_server(("127.0.0.1", 0))
    report(json.dumps({"pid": os.getpid(), "port": listener.getsockname()[1]}))
    await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve([listener])


if __name__ == "__main__":
    asyncio.run(main())
