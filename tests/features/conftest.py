from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from broker import AsyncBroker, Sweeper
from broker.testing import RunningServer
from tests.clients.asking import ADA
from tests.clock import MOVABLE, Clock
from tests.worker.conftest import serve
from tests.worker.fleet import QUICK

__all__ = ["serve"]


@pytest.fixture
async def connect(server: RunningServer, namespace: str) -> AsyncGenerator[Callable[..., Any]]:
    """A broker of the same namespace for each call of it, as another process has one."""
    async with AsyncExitStack() as stack:

        async def connected(**options: Any) -> AsyncBroker:
            given: dict[str, Any] = {"namespace": namespace, "settings": QUICK} | options
            return await stack.enter_async_context(AsyncBroker(server.url, **given))

        yield connected


@pytest.fixture
async def broker(connect: Callable[..., Any]) -> AsyncBroker:
    """A broker of a new namespace, acting as Ada. Its time is moved by `clock`."""
    made: AsyncBroker = await connect(by=ADA, rendering=MOVABLE)
    return made


@pytest.fixture
def clock(server: RunningServer, namespace: str) -> Generator[Clock]:
    clock = Clock(server.url, namespace)
    yield clock
    clock.close()


@pytest.fixture
def sweep(broker: AsyncBroker) -> Callable[[], Awaitable[object]]:
    """Does what time asks for, as the one sweeper of the namespace."""
    sweeper = Sweeper(broker)
    return lambda: sweeper.sweep(broker._link.space.partition(0))
