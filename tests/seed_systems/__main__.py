"""Runs the tests of the rows and prints, last, how many rows they showed."""

import sys
from pathlib import Path

import pytest

from .checklist import Checklist, rows

if __name__ == "__main__":
    checklist = Checklist()
    code = pytest.main(
        ["-q", "-m", "row", "-p", "no:randomly", str(Path(__file__).parents[1])], plugins=[checklist]
    )
    shown = checklist.shown()
    for row in rows():
        if row not in shown:
            sys.stdout.write(f"not shown: {row} {checklist.tests.get(row, 'has no test')}\n")
    sys.stdout.write(f"{len(shown)} of {len(rows())} rows\n")
    sys.exit(code or len(shown) != len(rows()))
