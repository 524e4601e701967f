# Generated from tests/clients/_async/conftest.py by tests/tools/unasync.py (make sync): do not edit.
from collections.abc import Generator

import pytest

from broker import Broker, Principal
from broker.testing import RunningServer
from tests.clock import MOVABLE, Clock

ME = Principal.local("me")


@pytest.fixture
def broker(server: RunningServer, namespace: str) -> Generator[Broker, None, None]:
    """A broker of a new namespace, acting as `me`."""
    with Broker(server.url, namespace=namespace, by=ME) as broker:
        yield broker


@pytest.fixture
def clock(server: RunningServer, namespace: str) -> Generator[Clock, None, None]:
    """The clock of the namespace of `timed`."""
    clock = Clock(server.url, namespace)
    yield clock
    clock.close()


@pytest.fixture
def timed(server: RunningServer, namespace: str) -> Generator[Broker, None, None]:
    """A broker whose time is moved by `clock`."""
    with Broker(server.url, namespace=namespace, by=ME, rendering=MOVABLE) as broker:
        yield broker
