"""The page of reports cannot lie: a row has a test or says why not, and a mark names a row."""

from collections import Counter
from pathlib import Path

import pytest

from .checklist import COUNTS, Row, marked, of_source, rows, shown_by, write

MARKED = marked()


def test_the_page_has_every_row_once() -> None:
    assert Counter(row.id[1] for row in rows()) == COUNTS
    assert len({row.id for row in rows()}) == len(rows())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_what_is_said_to_show_a_row_does(row: Row) -> None:
    """Off: a mark is taken away, or put on another test: `python -m tests.reports --write` says where it is now."""
    if row.state:
        assert row.id not in MARKED, f"{row.id} has a test: say which (python -m tests.reports --write)"
    else:
        assert row.id in MARKED, f"no test is marked report({row.id!r})"
        assert row.shown == shown_by(MARKED[row.id])


def test_every_mark_names_a_row() -> None:
    assert set(MARKED) <= {row.id for row in rows()}


def test_every_row_says_what_was_reported_and_what_happens_here() -> None:
    for row in rows():
        reported, symptom, here = (cell.strip() for cell in row.told.split("|"))
        assert all((reported, symptom, here)), row.id


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.report("RA1")\ndef helper(): ...',
        'pytestmark = pytest.mark.report("RA1")',
        'def test_it():\n    pytest.mark.report("RA1")',
    ],
)
def test_a_mark_that_shows_nothing_is_noticed(source: str) -> None:
    with pytest.raises(ValueError, match="shows nothing"):
        list(of_source(source, "test_x.py"))


def test_marks_of_tests_and_of_their_parameters_are_found() -> None:
    source = (
        '@pytest.mark.report("RA1", "RB2")\n'
        '@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.report("RA3"))])\n'
        "async def test_it(n): ..."
    )
    assert list(of_source(source, "test_x.py")) == [("test_it", row) for row in ("RA1", "RB2", "RA3")]


def test_what_is_written_is_the_files_of_the_tests_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "reports.md"
    known = next(iter(MARKED))
    text = f"| {known} | a | b | c | open: not built |\n| RA999 | a | b | c | open: why |\n"
    page.write_text(text)
    write(page)
    assert [row.shown for row in rows(page)] == [shown_by(MARKED[known]), "open: why"]
