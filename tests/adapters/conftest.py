"""The suite runs where the frameworks are: `BROKER_TEST_ADAPTER=langgraph pytest tests/adapters` in `.envs/langgraph`.

Elsewhere only what needs no framework is collected. The results of a whole run go to `.envs/results/`, with the ids
of the processes of each case; `tests/tools/adapters.py` makes the page of them.
"""

import json
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import pytest

from broker import AsyncBroker
from broker.testing import RunningServer, ServerProcess, ServerSource
from tests.worker.fleet import QUICK, ROOT

from .cases import CASES, Subject, tried
from .child import subject_named
from .stage import ME, Stage
from .world import World

HERE = ("test_contract.py", "test_missing.py", "test_page.py")
"""What is collected in the project's own environment."""
ADAPTER = os.environ.get("BROKER_TEST_ADAPTER", "")
"""The adapter under test; none in the project's own environment."""
HAS_SUBJECT = (Path(__file__).parent / "subjects" / f"{ADAPTER}.py").exists()
HAS_PAGE = any(
    f"<!-- adapter: {ADAPTER} -->" in page.read_text() for page in (ROOT / "docs" / "howto").glob("*.md")
)
"""Other pages are read where the project's own are, or by tests of their own."""
RESULTS = ROOT / ".envs" / "results"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    name = collection_path.name
    if collection_path.parent != Path(__file__).parent or not name.startswith("test_"):
        return None
    if not ADAPTER:
        return name not in HERE
    if name in ("test_contract.py", "test_page.py"):
        return True
    if name == "test_cases.py":
        return not HAS_SUBJECT or not tried(the_subject())
    if name == "test_alone.py":
        return not HAS_SUBJECT or not the_subject().ALONE
    if name == "test_docs.py":
        return not HAS_PAGE
    return name.startswith("test_of_") and not name.startswith((f"test_of_{ADAPTER}.", f"test_of_{ADAPTER}_"))


@pytest.fixture(scope="session")
def adapter() -> str:
    """The name of the adapter under test."""
    return ADAPTER


def the_subject() -> Subject:
    """The subject under test."""
    return subject_named(ADAPTER)


@pytest.fixture(scope="session")
def subject() -> Subject:
    return the_subject()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Takes out the cases that the subject has no way for: a test of its own shows why."""
    for one in items:
        one.add_marker(pytest.mark.timeout(300))
    if HAS_SUBJECT:
        without = {f"test_{case}" for case in CASES if case not in tried(the_subject())}
        items[:] = [
            one for one in items if one.path.name != "test_cases.py" or one.name.split("[")[0] not in without
        ]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    async with AsyncBroker(server.url, namespace=namespace, settings=QUICK, by=ME) as broker:
        yield broker


@pytest.fixture(scope="session")
def jobs_server(server_source: ServerSource) -> Generator[ServerProcess]:
    """A job system's own server, with a port: Celery does not read the URL of a socket file that others read."""
    assert server_source.binary is not None
    with ServerProcess(server_source.binary, port=0) as process:
        yield process


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A case is played on each of the subject's systems that it is named for, where there are several."""
    known = getattr(the_subject(), "SYSTEMS", {}) if HAS_SUBJECT else {}
    case = metafunc.function.__name__.removeprefix("test_")
    systems = [name for name, cases in known.items() if cases is None or case in cases]
    if "stage" in metafunc.fixturenames and systems:
        metafunc.parametrize("stage", systems, indirect=True)


@pytest.fixture
def stage(
    adapter: str, broker: AsyncBroker, server: RunningServer, namespace: str, world: World,
    request: pytest.FixtureRequest,
) -> Generator[Stage]:  # fmt: skip
    """Nobody works yet. Afterwards the case is on record with the processes that played it."""
    with ExitStack() as stack:
        system = getattr(request, "param", None)
        options = {}
        if system is not None:
            options = {"system": system, "jobs": request.getfixturevalue("jobs_server").tcp_url}
        stage = Stage(adapter, broker, server.url, namespace, world, stack, options=options)
        yield stage
    if request.node.get_closest_marker("cannot") is None:
        note(request, request.node.name.removeprefix("test_").partition("[")[0], "broker", stage.pids)
    request.node.user_properties.append(("stage", stage.pids))


@pytest.fixture
def site(
    server: RunningServer, namespace: str, world: World, request: pytest.FixtureRequest
) -> Generator[Callable[..., Any]]:
    """Starts processes that serve the agent over AG-UI. Afterwards the case is on record with them."""
    from .agui_client import Site  # noqa: PLC0415 - its packages are only where AG-UI is under test

    pids: list[int] = []
    with ExitStack() as stack:

        def start(*, url: str = server.url, **options: Any) -> Site:
            found = Site(url, namespace, {"folder": str(world.folder)} | options)
            stack.callback(found.kill)
            pids.append(found.pid)
            return found

        yield start
    if request.node.get_closest_marker("cannot") is None:
        note(request, request.node.name.removeprefix("test_").partition("[")[0], "broker", pids)
    request.node.user_properties.append(("stage", pids))


@pytest.fixture(autouse=True)
def what_cannot_be(request: pytest.FixtureRequest) -> Generator[None]:
    """A test of what a framework itself does is on record for each case that it stands for."""
    yield
    pids = dict(request.node.user_properties).get("stage", [os.getpid()])
    for mark in request.node.iter_markers("cannot"):
        note(request, mark.args[0], "broker", pids)


@pytest.fixture
def played(request: pytest.FixtureRequest) -> Generator[list[int]]:
    """The ids of the processes of a case without the broker, to be filled."""
    pids: list[int] = []
    yield pids
    note(request, request.node.name.partition("[")[2].rstrip("]"), "alone", pids)


def note(request: pytest.FixtureRequest, case: str, way: str, pids: list[int]) -> None:
    """Puts a case on record, with the processes that played it."""
    request.node.user_properties.append(("played", (case, way, pids)))


_found: dict[str, dict[str, list[int]]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called for every test, in the process that gathers the results."""
    for name, value in report.user_properties:
        if name == "played" and report.when == "teardown":
            case, way, pids = cast("tuple[str, str, list[int]]", value)
            _found.setdefault(case, {}).setdefault(way, []).extend(pids)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Writes down what a whole run has shown."""
    config = session.config
    if not HAS_SUBJECT or exitstatus or config.getoption("-k") or hasattr(config, "workerinput"):
        return
    subject = the_subject()
    RESULTS.mkdir(parents=True, exist_ok=True)
    versions = {name: version(name) for name in subject.PACKAGES}
    record = {
        "versions": versions,
        "cannot": dict(subject.CANNOT),
        "alone": {case: alone.word for case, alone in subject.ALONE.items()},
        "cases": dict(sorted(_found.items())),
    }
    (RESULTS / f"{ADAPTER}.json").write_text(json.dumps(record, indent=1) + "\n")
