from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest

from broker import AsyncBroker, Principal
from broker.testing import RunningServer
from tests.clock import MOVABLE, Clock


@pytest.fixture
def clock(server: RunningServer, namespace: str) -> Generator[Clock]:
    """The clock of the namespace of `timed`."""
    clock = Clock(server.url, namespace)
    yield clock
    clock.close()


@pytest.fixture
async def timed(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    """A broker whose time is moved by `clock`: where the agent runs."""
    async with AsyncBroker(
        server.url, namespace=namespace, by=Principal.local("me"), rendering=MOVABLE
    ) as broker:
        yield broker


@pytest.fixture
async def host(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    """Another client of the same namespace: who answers."""
    async with AsyncBroker(
        server.url, namespace=namespace, by=Principal.local("host"), rendering=MOVABLE
    ) as broker:
        yield broker


CHECKPOINT: dict[str, Any] = {
    "iteration": 2,
    "transcript": [{"role": "user", "parts": [{"text": "pay"}]}],
    "snapshot": [1, 2, 255],
    "call": {"call_id": 7, "tool": "wire_transfer", "args": {"amount": 40}},
    "disposition": {"kind": "awaiting_confirmation"},
    "tool_roster": ["lookup", "wire_transfer"],
}


@pytest.fixture
def wire() -> dict[str, Any]:
    """A checkpoint as ADK-Rust writes it."""
    return {**CHECKPOINT, "call": dict(CHECKPOINT["call"])}
