from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from broker import AsyncBroker
from broker.interop import agui
from broker.testing import RunningServer
from tests.clients.asking import ADA
from tests.clock import MOVABLE, Clock


@pytest.fixture
async def connect(server: RunningServer, namespace: str) -> AsyncGenerator[Callable[..., Any]]:
    """A broker of the same namespace for each call of it, as another process has one."""
    async with AsyncExitStack() as stack:

        async def connected(**options: Any) -> AsyncBroker:
            given: dict[str, Any] = {"namespace": namespace, "by": ADA, "rendering": MOVABLE} | options
            return await stack.enter_async_context(AsyncBroker(server.url, **given))

        yield connected


@pytest.fixture
async def broker(connect: Callable[..., Any]) -> AsyncBroker:
    """The producer's: it pauses runs. Its time is moved by `clock`."""
    made: AsyncBroker = await connect()
    return made


@pytest.fixture
async def threads(connect: Callable[..., Any]) -> agui.AsyncThreads:
    """What an endpoint has, with a connection of its own."""
    return agui.AsyncThreads(await connect())


@pytest.fixture
def clock(server: RunningServer, namespace: str) -> Generator[Clock]:
    clock = Clock(server.url, namespace)
    yield clock
    clock.close()
