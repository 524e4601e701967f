"""Runs the marked tests that can run here and prints, last, how many rows they and the page account for.

`--write` fills the last column of the page instead; other words are options of pytest (`-n auto`). Tests of adapters
and recipes are run by `make test-adapters` and `make test-recipes`; here it is only seen that they are there.
"""

import sys

import pytest

from .checklist import ROOT, Row, marked, rows, write


class Outcomes:
    """A pytest plugin that notes which tests passed, and which did something else, by file and name."""

    def __init__(self) -> None:
        self.passed: set[tuple[str, str]] = set()
        self.others: set[tuple[str, str]] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file, _, test = report.nodeid.partition("::")
        if not report.passed:
            self.others.add((file, test.partition("[")[0]))
        elif report.when == "call":
            self.passed.add((file, test.partition("[")[0]))


def run(options: list[str]) -> int:
    """0 where every row that is not open has been accounted for."""
    tests, outcomes = marked(), Outcomes()
    files = sorted({one.file for each in tests.values() for one in each if not one.is_elsewhere})
    code = pytest.main(
        ["-q", "-m", "report", *options, *(str(ROOT / file) for file in files)], plugins=[outcomes]
    )
    passed = outcomes.passed - outcomes.others

    def fault(row: Row) -> str | None:
        """What is missing of a row."""
        if row.state:
            return row.shown if row.state == "open" else None
        missing = [one for one in tests.get(row.id, ()) if not one.is_elsewhere and tuple(one) not in passed]
        return ", ".join(f"{file}::{name} did not pass" for file, name in missing) or None

    faults = {row: found for row in rows() if (found := fault(row))}
    for row, found in faults.items():
        sys.stdout.write(f"{row.id} {found}\n")
    sys.stdout.write(f"{len(rows()) - len(faults)} of {len(rows())} rows\n")
    return code or any(row.state != "open" for row in faults)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        sys.exit(run(sys.argv[1:]))
