"""The pytest plugin: `testbed`, in a namespace of a server that lives as long as the test run. Imports pytest.

Installed with the extra `testing`; nothing has to be configured. BROKER_TEST_URL names another server to use.
"""

from collections.abc import Generator

import pytest

from .discovery import RunningServer, find_servers, running
from .leaks import remove_namespaces
from .testbed import Testbed


@pytest.fixture(scope="session")
def broker_server() -> Generator[RunningServer]:
    """A throw-away server of this test run (each worker of pytest-xdist has its own)."""
    found = find_servers(containers=False)
    usable = [source for source in found if not source.missing]
    if not usable:
        pytest.fail("no server to test against: " + "; ".join(map(str, found)), pytrace=False)
    with running(usable[0]) as server:
        yield server


@pytest.fixture
def testbed(broker_server: RunningServer) -> Generator[Testbed]:
    """A place to try agents in: a namespace of this test's own. Nothing of it is left afterwards."""
    with Testbed(broker_server.url) as made:
        yield made
        remove_namespaces(broker_server.url, [made.namespace])
