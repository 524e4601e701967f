from collections.abc import AsyncGenerator

import pytest

from broker import AsyncBroker, Principal
from broker.testing import RunningServer


@pytest.fixture
def url(server: RunningServer) -> str:
    """Where the server is."""
    return server.url


@pytest.fixture
async def broker(url: str, namespace: str) -> AsyncGenerator[AsyncBroker]:
    """A broker of a namespace of one's own. Where a call names nobody, Ada acts."""
    async with AsyncBroker(url, namespace=namespace, by=Principal.local("ada")) as broker:
        yield broker
