import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from broker import AsyncBroker, Principal, Worker
from broker.testing import RunningServer

from .fleet import QUICK, Agents

Handlers = dict[str, Callable[[Any], Any]]


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    """A broker of a new namespace whose settings are quick."""
    async with AsyncBroker(
        server.url, namespace=namespace, settings=QUICK, by=Principal.local("me")
    ) as broker:
        yield broker


@pytest.fixture
async def serve(server: RunningServer, namespace: str) -> AsyncGenerator[Callable[..., Worker]]:
    """Starts workers in this process: `serve(support=handler)`. They are stopped at the end."""
    serving: list[tuple[Worker, asyncio.Task[None]]] = []

    def start(*, options: dict[str, Any] | None = None, **handlers: Callable[[Any], Any]) -> Worker:
        given: dict[str, Any] = {"namespace": namespace, "settings": QUICK} | (options or {})
        worker = Worker(given.pop("url", server.url), **given)
        for name, handler in handlers.items():
            worker.add(name, handler)
        serving.append((worker, asyncio.create_task(worker.serve())))
        return worker

    yield start
    for worker, _ in serving:
        worker.stop()
        worker.stop()
    await asyncio.gather(*(task for _, task in serving))


@pytest.fixture
def agents(server: RunningServer, namespace: str) -> Generator[Callable[..., Agents]]:
    """Starts worker processes: `agents(name="one", concurrency=2)`. What is left of them is killed at the end."""
    with ExitStack() as stack:

        def start(**options: Any) -> Agents:
            given = {"url": server.url, "namespace": namespace} | options
            return stack.enter_context(closing(Agents(given.pop("url"), given.pop("namespace"), **given)))

        yield start
