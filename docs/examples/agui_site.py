"""A site of two processes serves an agent over AG-UI; one is killed after the effect, the other one ends the run.

`python agui_site.py` does it all. The broker's embedded server is used where `BROKER_URL` names none.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from broker import AsyncBroker, Principal, Run, Settings, gated
from broker.adapters import agui

SETTINGS = Settings(lease=timedelta(seconds=2), sweep_every=timedelta(milliseconds=200))
NAMESPACE = "example-agui"


@gated
async def cancel_reservation(id: str) -> str:
    """Runs once, whatever happens to the process."""
    return f"cancelled {id}"


async def airline(run: Run[Any]) -> str:
    """The agent. The first process that gets past the call is killed before it has told anybody."""
    said = await run.call(cancel_reservation, {"id": run.input["state"]["id"]}, call_id="call_1")
    if run.attempt == 1:
        print("killed:", os.getpid(), flush=True)
        os.kill(os.getpid(), 9)
    print("ended:", os.getpid(), flush=True)
    return f"{said}, says the agent"


async def signed_in(request: Request) -> Principal:
    """Stands for your sign-in."""
    return Principal(id=request.headers["x-user"], verified=True)


async def serve(port: int) -> None:
    """One process of the site."""
    broker = AsyncBroker(namespace=NAMESPACE, settings=SETTINGS)
    endpoint = agui.Endpoint(broker, "airline", airline, who=signed_in)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await endpoint.aclose()
        await broker.aclose()

    app = Starlette(routes=[Route("/agent", endpoint, methods=["POST"])], lifespan=lifespan)
    await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve([socket.socket(fileno=port)])


async def post(client: httpx.AsyncClient, run_id: str, **given: Any) -> Any:
    """The last event of a run."""
    body = {"threadId": "th_1", "runId": run_id, "messages": []} | given
    came = await client.post("/agent", json=body, headers={"x-user": "ada"}, timeout=60)
    return json.loads([line[6:] for line in came.text.splitlines() if line.startswith("data: ")][-1])


async def main() -> None:
    """Starts the site, asks for a run, and answers it; when its process is killed, it sends the same to the other."""
    sites = []
    for _ in range(2):
        listener = socket.create_server(("127.0.0.1", 0))
        process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, str(listener.fileno()), pass_fds=[listener.fileno()]
        )
        host, port = listener.getsockname()
        sites.append((process, listener, httpx.AsyncClient(base_url=f"http://{host}:{port}")))
    (_, one, first), (_, _, second) = sites
    paused = await post(first, "run_1", state={"id": "R7"})
    asked = paused["outcome"]["interrupts"][0]
    print("asked:", asked["metadata"]["toolCall"]["args"], flush=True)
    one.close()  # it is the process's alone now
    answer = {"interruptId": asked["id"], "status": "resolved", "payload": {"approved": True}}
    try:
        await post(first, "run_2", resume=[answer])
    except httpx.HTTPError:
        print((await post(second, "run_2", resume=[answer]))["result"])
    for process, _, client in sites:
        await client.aclose()
        if process.returncode is None:
            process.terminate()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])) if len(sys.argv) > 1 else main())
