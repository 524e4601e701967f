from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker.testing import ServerProcess, ServerSource

from . import holding
from .holding import HoldableServer
from .sources import waiting


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is loaded before a server to stop its fsync."""
    return holding.build(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def start_holdable(shim: Path, tmp_path: Path) -> Generator[Callable[[ServerSource, str], HoldableServer]]:
    """Starts a server of this source, with this `appendfsync`, whose fsync can be held."""
    with ExitStack() as stack:

        def start(source: ServerSource, policy: str) -> HoldableServer:
            assert source.binary is not None
            made = HoldableServer(shim, source.binary, tmp_path, {"appendfsync": policy})
            stack.enter_context(made.process)
            return made

        yield start


@pytest.fixture
def waiting_server(start_server: Callable[..., ServerProcess]) -> ServerProcess:
    """A server of the family whose WAITAOF follows the fsync, one second apart."""
    return start_server({"appendfsync": "everysec"}, program=waiting().binary)
