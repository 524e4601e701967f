import logging
from collections.abc import AsyncGenerator, Generator

import pytest

from broker import AsyncBroker
from broker.store.scripts import Rendering
from broker.testing import RunningServer

from .refusing import CANARY, Setting
from .world import ANN, MOVED_CLOCK, World


@pytest.fixture
def rendering() -> Rendering:
    """How the scripts are rendered: whole, with the clock that tests move."""
    return MOVED_CLOCK


@pytest.fixture
def world(server: RunningServer, namespace: str, rendering: Rendering) -> Generator[World]:
    """An empty namespace on the shared server, driven script by script."""
    made = World(server.url, namespace, rendering)
    yield made
    made.close()


@pytest.fixture
async def setting(
    server: RunningServer, namespace: str, world: World, caplog: pytest.LogCaptureFixture
) -> AsyncGenerator[Setting]:
    """Runs to be refused things about, through the front door. Afterwards no log at any level holds the canary."""
    with caplog.at_level(logging.DEBUG):
        async with AsyncBroker(server.url, namespace=namespace, by=ANN, patience=2) as broker:
            made = Setting(broker, world)
            await made.prepare()
            yield made
    assert CANARY not in caplog.text
    assert not any(CANARY in repr(record.args) for record in caplog.records)
