"""The table of faults names tests that are there."""

import ast
from pathlib import Path

import pytest

from .rows import ROWS

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("row", ROWS)
def test_every_row_is_shown_by_a_test(row: str) -> None:
    """Off: the test is renamed or removed."""
    file, _, name = ROWS[row].partition("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert name in {one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
