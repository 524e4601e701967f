"""The rows of docs/reference/seed-systems.md, and the tests that say they show them."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "seed-systems.md"
COUNTS = {"E": 20, "S": 24, "A": 28, "G": 38, "X": 13}


def rows() -> list[str]:
    """The ids of the page, in its order."""
    return re.findall(r"^\| ([ESAGX]\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


class Checklist:
    """A pytest plugin that notes which tests are marked with a row, and which of them passed."""

    def __init__(self) -> None:
        self.tests: defaultdict[str, list[str]] = defaultdict(list)
        self.passed: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers("row"):
                for row in mark.args:
                    self.tests[row].append(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    def shown(self) -> list[str]:
        """Rows of the page with a test, all of whose tests passed."""
        return [row for row in rows() if self.tests.get(row) and self.passed.issuperset(self.tests[row])]
