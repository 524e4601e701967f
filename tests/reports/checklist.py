"""The rows of docs/reference/reports.md, and the tests that are marked with them, read from their source.

The page is the one list. Its last column says what shows a row: the files of the tests that are marked with its id, or
`open: why`, or `not ours: why`. Marks are read and not collected, since the tests of adapters and recipes can be
imported only where their frameworks are.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "reference" / "reports.md"
COUNTS: Final = {"A": 44, "B": 63}
"""How many rows each part has."""
ELSEWHERE: Final = ("tests/adapters/", "tests/recipes/")
"""Tests that run in environments of their own."""
_ROW: Final = re.compile(r"^\| (?P<id>R[AB]\d+) \|(?P<told>.*)\| (?P<shown>[^|]*) \|$", re.MULTILINE)
_STATE: Final = re.compile(r"(?P<state>open|not ours): \S.*")


class Row(NamedTuple):
    """A report: its id, what is told of it, and what shows it."""

    id: str
    told: str
    shown: str

    @property
    def state(self) -> str | None:
        """`open` or `not ours` where no test shows it."""
        found = _STATE.fullmatch(self.shown)
        return found["state"] if found else None


class Marked(NamedTuple):
    """A test that says that it shows a report."""

    file: str
    name: str

    @property
    def is_elsewhere(self) -> bool:
        return self.file.startswith(ELSEWHERE)


def rows(page: Path = PAGE) -> list[Row]:
    """The rows of the page, in its order."""
    return [Row(*found.groups()) for found in _ROW.finditer(page.read_text(encoding="utf-8"))]


def marked(root: Path = ROOT) -> dict[str, list[Marked]]:
    """The marked tests of each row. What is generated from another test counts once, as that one."""
    found: defaultdict[str, list[Marked]] = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        if "_sync" not in path.parts:
            name = path.relative_to(root).as_posix()
            for test, row in of_source(path.read_text(encoding="utf-8"), name):
                found[row].append(Marked(name, test))
    return dict(found)


def of_source(source: str, name: str) -> Iterator[tuple[str, str]]:
    """Each test of a module with each row that it is marked with. Raises `ValueError` for a mark on nothing."""
    if "mark.report" not in source:
        return
    tree, used = ast.parse(source), 0
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            marks = [mark for each in node.decorator_list for mark in _marks(each)]
            used += len(marks)
            for mark in marks:
                for row in dict.fromkeys(ast.literal_eval(one) for one in mark.args):
                    yield node.name, row
    if used != sum(1 for _ in _marks(tree)):
        raise ValueError(f"{name}: a mark that is no decorator of a test shows nothing")


def _marks(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls of `pytest.mark.report` in a tree, those inside of `pytest.param` too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.report":
            yield node


def shown_by(tests: list[Marked]) -> str:
    """What the last column says of a row with these tests."""
    files = dict.fromkeys(one.file for one in tests)
    return ", ".join(f"`{file}`" for file in files)


def write(page: Path = PAGE) -> None:
    """Fills the last column of every row that has a test."""
    tests = marked()

    def filled(found: re.Match[str]) -> str:
        shown = shown_by(tests[found["id"]]) if found["id"] in tests else found["shown"]
        return f"| {found['id']} |{found['told']}| {shown} |"

    page.write_text(_ROW.sub(filled, page.read_text(encoding="utf-8")), encoding="utf-8")
