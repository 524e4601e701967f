"""The vocabulary: `state`, never `status`; and no module whose name says nothing about what is in it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EMPTY_NAMES = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}

# `broker status` is a command of the CLI, and AG-UI's resume entries have a `status`.
FOREIGN = {"cli", "agui"}
MODULES = [
    path
    for path in sorted((ROOT / "broker").rglob("*.py"))
    if FOREIGN.isdisjoint(path.relative_to(ROOT).with_suffix("").parts)
]


def defined(tree: ast.AST) -> Iterator[str]:
    """Names that a module gives to things of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_state_is_called_a_state(path: Path) -> None:
    names = defined(ast.parse(path.read_text(encoding="utf-8")))
    assert [name for name in names if "status" in name.lower()] == []


def test_every_module_is_named_after_what_is_in_it() -> None:
    paths = [path for folder in ("broker", "tests") for path in (ROOT / folder).rglob("*.py")]
    assert [str(path) for path in paths if path.stem.strip("_") in EMPTY_NAMES] == []
