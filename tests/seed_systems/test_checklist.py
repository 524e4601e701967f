"""The checklist cannot lie: every row has a test, every mark names a row."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from .checklist import COUNTS, Checklist, rows


@cache
def collected() -> Checklist:
    checklist = Checklist()
    code = pytest.main(
        [
            "-o",
            "addopts=",
            "--collect-only",
            "-m",
            "row",
            "-p",
            "no:terminal",
            str(Path(__file__).parents[1]),
        ],
        plugins=[checklist],
    )
    assert code == pytest.ExitCode.OK
    return checklist


def test_the_page_has_every_row_once() -> None:
    assert Counter(row[0] for row in rows()) == COUNTS
    assert len(set(rows())) == len(rows())


@pytest.mark.parametrize("row", rows())
def test_a_row_has_a_test(row: str) -> None:
    assert collected().tests.get(row), f"no test is marked row({row!r})"


def test_every_mark_names_a_row() -> None:
    assert set(collected().tests) <= set(rows())
