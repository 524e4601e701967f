"""The servers of the test run, a pytest plugin: real ones, one per source and test worker, with a leak check.

`server` is the default one. A test marked `every_server` runs on each server found, when the run is started with
`--servers all` (or BROKER_TEST_SERVERS=all). BROKER_TEST_REQUIRE names, with commas, sources or versions that must
be there (`redis-server,valkey-8.1,docker`): a run in which one is missing fails.
"""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from functools import cache
from itertools import count
from pathlib import Path
from secrets import token_hex

import pytest
import redis

from broker.embedded.flags import Setting
from broker.testing import (
    FaultProxy,
    RunningServer,
    ServerProcess,
    ServerSource,
    find_servers,
    leaked_keys,
    remove_namespaces,
    running,
)

sources = cache(find_servers)


def wanted() -> list[str]:
    """What BROKER_TEST_REQUIRE names."""
    return [name for name in os.environ.get("BROKER_TEST_REQUIRE", "").replace(",", " ").split() if name]


def asks_for_all(config: pytest.Config) -> bool:
    return bool(config.getoption("--servers") == "all")


def known(config: pytest.Config) -> tuple[ServerSource, ...]:
    """Every source; a container engine is asked only when one may be used."""
    return sources(containers=asks_for_all(config) or "docker" in wanted())


def default(config: pytest.Config) -> ServerSource:
    found = [source for source in known(config) if not source.missing]
    if not found:
        raise pytest.UsageError("no server to test against: " + "; ".join(map(str, known(config))))
    return found[0]


def missing_though_required(found: tuple[ServerSource, ...], names: list[str]) -> list[str]:
    """One line for each of `names` that no source has as its name or as the beginning of its id."""
    lines = []
    for name in names:
        fits = [source for source in found if source.name == name or source.id.startswith(name)]
        if not [source for source in fits if not source.missing]:
            lines.append(f"{name} is required and missing" + "".join(f" ({s.missing})" for s in fits))
    return lines


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--servers",
        choices=("default", "all"),
        default=os.environ.get("BROKER_TEST_SERVERS", "default"),
        help="run the tests marked every_server on the default server or on all that are found",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "every_server: runs on each server found, with --servers all")
    config.addinivalue_line("markers", "server_config(settings): configuration of this test's own_server")
    faults = missing_though_required(known(config), wanted())
    if faults:
        raise pytest.UsageError("; ".join(faults))


def pytest_report_header(config: pytest.Config) -> list[str]:
    every = [f"servers: {source}" for source in known(config)]
    return [f"default server: {default(config)}", *every]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server_source" not in metafunc.fixturenames or not asks_for_all(metafunc.config):
        return
    if metafunc.definition.get_closest_marker("every_server") is None:
        return
    found = [source for source in known(metafunc.config) if not source.missing]
    if "own_server" in metafunc.fixturenames or "start_server" in metafunc.fixturenames:
        found = [source for source in found if source.binary]
    ids = [source.id for source in found]
    metafunc.parametrize("server_source", found, ids=ids, indirect=True, scope="session")


@pytest.fixture(scope="session")
def server_pool() -> Generator[Callable[[ServerSource], RunningServer]]:
    """Servers of the whole run, each started when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def get(source: ServerSource) -> RunningServer:
            return stack.enter_context(running(source))

        yield get


@pytest.fixture(scope="session")
def server_source(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> ServerSource:
    """Where this test's server comes from."""
    chosen = getattr(request, "param", None)
    return chosen if isinstance(chosen, ServerSource) else default(pytestconfig)


@pytest.fixture(scope="session")
def server(
    server_source: ServerSource, server_pool: Callable[[ServerSource], RunningServer]
) -> RunningServer:
    """A server shared by the tests of this worker: never kill, pause or configure it."""
    return server_pool(server_source)


@pytest.fixture
def start_server(
    server_source: ServerSource, pytestconfig: pytest.Config
) -> Generator[Callable[..., ServerProcess]]:
    """Starts servers of this test's own: `start_server({"maxmemory": "4mb"}, port=0)`."""
    binary = server_source.binary or next(s.binary for s in known(pytestconfig) if s.binary)
    with ExitStack() as stack:

        def start(
            config: Mapping[str, Setting] | None = None,
            *,
            port: int | None = None,
            program: Path | None = None,
        ) -> ServerProcess:
            return stack.enter_context(ServerProcess(program or binary, config, port=port))

        yield start


@pytest.fixture
def own_server(request: pytest.FixtureRequest, start_server: Callable[..., ServerProcess]) -> ServerProcess:
    """A server of this test's own, to kill, pause, fill and configure; `server_config` sets it up."""
    marker = request.node.get_closest_marker("server_config")
    return start_server(marker.args[0] if marker else None)


@pytest.fixture
def used_namespaces() -> list[str]:
    """The namespaces this test was given."""
    return []


@pytest.fixture
def new_namespace(used_namespaces: list[str]) -> Callable[[], str]:
    """Gives a name that no other test uses, at each call another one."""
    base, number = f"t-{token_hex(6)}", count(1)

    def new() -> str:
        used_namespaces.append(f"{base}-{next(number)}")
        return used_namespaces[-1]

    return new


@pytest.fixture
def namespace(new_namespace: Callable[[], str]) -> str:
    """The name of a namespace that no other test uses. Nothing is on the server yet."""
    return new_namespace()


@pytest.fixture
def proxy(server: RunningServer) -> Generator[FaultProxy]:
    """A proxy before the shared server, that loses replies, cuts, delays, hangs and refuses."""
    with FaultProxy(server.url) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def nothing_leaks(request: pytest.FixtureRequest, used_namespaces: list[str]) -> Generator[None]:
    """Afterwards every key of the shared server is in a namespace of this test, and none expires by itself."""
    if "server" not in request.fixturenames:
        yield
        return
    server = request.getfixturevalue("server")  # before any client, so that this ends after them
    yield
    with redis.Redis.from_url(server.url, protocol=2, legacy_responses=True) as client:
        found = leaked_keys(client, used_namespaces)
        if server.source.url:  # somebody else's: what is not ours is not looked at, and stays
            found = [line for line in found if "is in no namespace" not in line]
            remove_namespaces(server.url, used_namespaces)
        else:
            client.flushall()
    assert found == []
