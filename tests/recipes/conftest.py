"""A recipe runs where its framework is: `BROKER_TEST_RECIPE=strands pytest tests/recipes` in `.envs/recipe-strands`.

`test_of_NAME.py` is what is collected there, with the reading of its page (`test_docs.py`); nothing is in the project's
own environment. A recipe's agents are a subject of the adapters' suite: its tests take the cases from there.
"""

import os
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker import AsyncBroker
from broker.testing import RunningServer
from tests.adapters.cases import Subject
from tests.adapters.child import subject_named
from tests.adapters.stage import ME, Stage
from tests.adapters.world import World
from tests.worker.fleet import QUICK

RECIPE = os.environ.get("BROKER_TEST_RECIPE", "")
"""The recipe under test; none in the project's own environment."""
SUBJECT = f"tests.recipes.subjects.{RECIPE}"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    name = collection_path.name
    if name.startswith("test_of_"):
        return name != f"test_of_{RECIPE}.py"
    return not RECIPE if name == "test_docs.py" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for one in items:
        if one.path.parent == Path(__file__).parent:
            one.add_marker(pytest.mark.timeout(300))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    async with AsyncBroker(server.url, namespace=namespace, settings=QUICK, by=ME) as broker:
        yield broker


@pytest.fixture(scope="session")
def subject() -> Subject:
    return subject_named(SUBJECT)


@pytest.fixture
def stage(broker: AsyncBroker, server: RunningServer, namespace: str, world: World) -> Generator[Stage]:
    """Nobody works yet. Workers are processes of the recipe's agents."""
    with ExitStack() as stack:
        yield Stage(SUBJECT, broker, server.url, namespace, world, stack)
