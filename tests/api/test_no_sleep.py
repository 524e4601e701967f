"""Tests wait for facts, never for time: a sleep is too short on a busy machine, too long on a quiet one."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SLEEPERS = {"anyio", "asyncio", "asyncio.tasks", "gevent", "time", "trio"}


def sleeps(source: str) -> Iterator[int]:
    """Lines that name the sleep of one of the modules, called or not, under whatever name it was imported."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name] = alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in SLEEPERS:
            if any(alias.name in {"sleep", "*"} for alias in node.names):
                yield node.lineno
        elif isinstance(node, ast.Attribute) and node.attr.startswith("sleep"):
            name = ast.unparse(node.value)
            if modules.get(name, name) in SLEEPERS:
                yield node.lineno


def test_no_test_sleeps() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line in sleeps(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(1)",
        "import time as t\nt.sleep(1)",
        "from time import sleep",
        "from asyncio import sleep as nap",
        "import asyncio\nawait_me = asyncio.sleep",
        "import asyncio\nasync def f(): await asyncio.sleep(0.1)",
        "import anyio\nasync def f(): await anyio.sleep_until(3)",
        "from time import *",
    ],
)
def test_every_way_of_sleeping_is_noticed(source: str) -> None:
    assert list(sleeps(source))


def test_other_sleeps_are_none_of_its_business() -> None:
    assert not list(sleeps("class Cat:\n    def sleep(self): ...\nCat().sleep()\nfrom time import monotonic"))
