"""A gateway on a port of its own, and callers of it."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from broker import AsyncBroker, Principal, PrincipalKind
from broker.core.access import ApiRole
from broker.gateway import GatewaySettings, create_app
from broker.testing import await_until


@dataclass
class Site:
    """A gateway that serves, and the broker behind it."""

    broker: AsyncBroker
    url: str

    async def key(
        self,
        who: str = "ada",
        role: ApiRole = ApiRole.REVIEWER,
        *,
        kind: str = "person",
        groups: tuple[str, ...] = (),
    ) -> str:
        """A new key's text."""
        principal = Principal(id=who, kind=PrincipalKind.read(kind), groups=groups)
        return (await self.broker.keys.create(principal, role)).text

    def client(self, key: str | None = None) -> httpx.AsyncClient:
        """A client with that key, or without any."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=20)


@asynccontextmanager
async def serving(
    broker: AsyncBroker,
    *,
    settings: GatewaySettings | None = None,
    install: Callable[[FastAPI], None] = lambda _: None,
    **options: Any,
) -> AsyncGenerator[Site]:
    """A gateway of a broker on a free port of this machine, until the block ends."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        app = create_app(broker, settings=settings, **options)
        install(app)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", server_header=False))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await await_until(lambda: server.started or task.done())
            yield Site(broker, f"http://127.0.0.1:{listening.getsockname()[1]}")
        finally:
            server.should_exit = True
            await task
