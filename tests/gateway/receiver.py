"""An address that webhooks are sent to: a real HTTP server that checks signatures as a receiver does."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from standardwebhooks import Webhook, WebhookVerificationError

from broker.testing import await_until


@dataclass
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def is_signed_with(self, secret: str) -> bool:
        """Whether the convention's own library believes it."""
        try:
            Webhook(secret).verify(self.body, dict(self.headers))
        except WebhookVerificationError:
            return False
        return True


@dataclass
class Receiver:
    """What came, and what is answered: a status, or (status, headers)."""

    url: str
    answer: Callable[[Received], Any] = lambda _: 200
    received: list[Received] = field(default_factory=list)
    held: asyncio.Event | None = None

    def ids(self) -> list[str]:
        return [one.id for one in self.received]


@asynccontextmanager
async def receiving() -> AsyncGenerator[Receiver]:
    """A receiver on a free port of this machine, until the block ends."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        found = Receiver(f"http://127.0.0.1:{listening.getsockname()[1]}")

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                return
            body, more = b"", True
            while more:
                message = await receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            one = Received(scope["path"], headers, body)
            found.received.append(one)
            if found.held is not None:
                await found.held.wait()
            answer = found.answer(one)
            status, more_headers = answer if isinstance(answer, tuple) else (answer, {})
            rows = [(name.encode(), value.encode()) for name, value in more_headers.items()]
            await send({"type": "http.response.start", "status": status, "headers": rows})
            await send({"type": "http.response.body", "body": b""})

        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await await_until(lambda: server.started or task.done())
            yield found
        finally:
            server.should_exit = True
            if found.held is not None:
                found.held.set()
            await task
