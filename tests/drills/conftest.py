from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from broker import AsyncBroker, Principal
from broker.testing import RunningServer
from tests.worker.fleet import Agents

from .crew import SETTINGS, Crew
from .ledger import Ledger


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    """A broker of a new namespace with the settings of the drills."""
    me = Principal.local("me")
    async with AsyncBroker(server.url, namespace=namespace, settings=SETTINGS, by=me) as broker:
        yield broker


@pytest.fixture
def processes(server: RunningServer, namespace: str) -> Generator[Callable[..., Agents]]:
    """Starts programs: `processes(program="tests.drills.agents.working", ...)`. They are killed at the end."""
    with ExitStack() as stack:

        def start(**options: Any) -> Agents:
            given = {"url": server.url, "namespace": namespace} | options
            return stack.enter_context(closing(Agents(given.pop("url"), given.pop("namespace"), **given)))

        yield start


@pytest.fixture
def crew(broker: AsyncBroker, processes: Callable[..., Agents], tmp_path: Path) -> Crew:
    """Nobody yet; `crew.hire(3)`. Each call takes them a tenth of a second."""
    return Crew(broker, processes, Ledger(tmp_path / "ledger"), pace=0.1)
