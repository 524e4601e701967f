from collections.abc import Generator

import pytest

from broker.store.scripts import Rendering
from broker.testing import RunningServer

from .world import MOVED_CLOCK, World


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
