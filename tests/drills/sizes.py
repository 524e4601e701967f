"""How big a drill is, a pytest plugin: `--drills full` (or BROKER_TEST_DRILLS=full) for the size of a fleet."""

import os
from typing import TypeVar

import pytest

T = TypeVar("T")


class Size:
    """Chooses between the everyday size of a drill and the full one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, short: T, full: T) -> T:
        return full if self.name == "full" else short


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--drills",
        choices=("short", "full"),
        default=os.environ.get("BROKER_TEST_DRILLS", "short"),
        help="the size of the tests marked drill: a few seconds each, or that of a fleet",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "drill: has a full size too, with --drills full")


@pytest.fixture(scope="session")
def size(pytestconfig: pytest.Config) -> Size:
    """`size(short, full)`: the value for the size of this test run."""
    return Size(str(pytestconfig.getoption("--drills")))
