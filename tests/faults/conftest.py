import pytest
import redis

from broker.store.scripts import Rendering, names
from broker.testing import RunningServer


@pytest.fixture
def loaded(server: RunningServer) -> RunningServer:
    """The server, knowing every script already: the first reply to a call is its answer."""
    with redis.Redis.from_url(server.url) as client:
        for name in names():
            for oom in (False, True):
                client.script_load(Rendering().script(name, oom=oom).text)
    return server
