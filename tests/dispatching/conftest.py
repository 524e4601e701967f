import asyncio
from collections.abc import AsyncGenerator, Callable, Generator

import pytest

from broker import AsyncBroker, Broker, Principal
from broker.adapters.functions import Dispatcher, Job
from broker.testing import RunningServer
from tests.worker.fleet import QUICK

ME = Principal.local("me")


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    async with AsyncBroker(server.url, namespace=namespace, settings=QUICK, by=ME) as broker:
        yield broker


@pytest.fixture
def blocking(server: RunningServer, namespace: str) -> Generator[Broker]:
    with Broker(server.url, namespace=namespace, settings=QUICK, by=ME) as broker:
        yield broker


@pytest.fixture
def jobs() -> "asyncio.Queue[Job]":
    """A job system: what was handed to it and not taken yet."""
    return asyncio.Queue()


@pytest.fixture
async def dispatch(broker: AsyncBroker) -> AsyncGenerator[Callable[..., Dispatcher]]:
    """Starts dispatchers in this process; they are ended at the end."""
    running: list[asyncio.Task[None]] = []

    def start(**options: object) -> Dispatcher:
        dispatcher = Dispatcher(broker, **options)  # type: ignore[arg-type]
        running.append(asyncio.create_task(dispatcher.run()))
        return dispatcher

    yield start
    for task in running:
        task.cancel()
    ends = await asyncio.gather(*running, return_exceptions=True)
    assert [one for one in ends if not isinstance(one, asyncio.CancelledError)] == []
