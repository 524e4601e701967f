from collections.abc import AsyncGenerator, Generator

import pytest

from broker import AsyncBroker, Principal
from broker.testing import RunningServer
from tests.clock import MOVABLE, Clock

ME = Principal.local("me")


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker, None]:
    """A broker of a new namespace, acting as `me`."""
    async with AsyncBroker(server.url, namespace=namespace, by=ME) as broker:
        yield broker


@pytest.fixture
def clock(server: RunningServer, namespace: str) -> Generator[Clock, None, None]:
    """The clock of the namespace of `timed`."""
    clock = Clock(server.url, namespace)
    yield clock
    clock.close()


@pytest.fixture
async def timed(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker, None]:
    """A broker whose time is moved by `clock`."""
    async with AsyncBroker(server.url, namespace=namespace, by=ME, rendering=MOVABLE) as broker:
        yield broker
