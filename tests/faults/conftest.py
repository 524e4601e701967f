from collections.abc import AsyncGenerator, Generator

import pytest
import redis

from broker import AsyncBroker
from broker.store.scripts import Rendering, names
from broker.testing import FaultProxy, RunningServer, ServerProcess
from tests.clock import MOVABLE

from .fleet import working
from .world import World, new_world


@pytest.fixture
def loaded(server: RunningServer) -> RunningServer:
    """The server, knowing every script already: the first reply to a call is its answer."""
    with redis.Redis.from_url(server.url) as client:
        for rendering in (MOVABLE, Rendering()):
            for name in names():
                for oom in (False, True):
                    client.script_load(rendering.script(name, oom=oom).text)
    return server


@pytest.fixture
async def world(loaded: RunningServer, proxy: FaultProxy, namespace: str) -> AsyncGenerator[World]:
    """A world whose faulty broker is behind the proxy."""
    async with new_world(loaded.url, namespace, faulty=proxy.url) as w:
        yield w


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> float:
    """A call is given up after this many seconds."""
    for colour in ("_async", "_sync"):
        monkeypatch.setattr(f"broker.{colour}.link.CALL_SECONDS", 0.3)
    return 0.3


@pytest.fixture
async def fleet(own_server: ServerProcess) -> AsyncGenerator[AsyncBroker]:
    """A broker of a server of its own, with a worker and an approver at work there."""
    async with working(own_server.url) as broker:
        yield broker


@pytest.fixture
def own_client(own_server: ServerProcess) -> Generator[redis.Redis]:
    """Looks at this test's own server."""
    with redis.Redis.from_url(own_server.url, protocol=2, legacy_responses=True) as client:
        yield client
