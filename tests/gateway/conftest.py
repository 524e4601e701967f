from collections.abc import AsyncGenerator

import pytest

from broker import AsyncBroker
from broker.testing import RunningServer

from .site import Site, serving


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    async with AsyncBroker(server.url, namespace=namespace) as broker:
        yield broker


@pytest.fixture
async def site(broker: AsyncBroker) -> AsyncGenerator[Site]:
    async with serving(broker) as site:
        yield site
