"""The page of guarantees names every promise of the design, and tests that are there and about it."""

import re
from pathlib import Path

from tests.docs.pages import ROOT, text_of

PAGE = "docs/reference/guarantees.md"
ROW = re.compile(r"^\| (P\d+) \|(?P<rest>.+)$", re.MULTILINE)


def rows(page: str) -> dict[str, str]:
    """The rows of a page's table of promises, by their number."""
    return {found[1]: found["rest"] for found in ROW.finditer(text_of(page))}


def cites(path: Path, word: str) -> bool:
    """Whether a test, or one of a folder of tests, says that it is about this."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    pattern = re.compile(rf"(?:\b|_){word}(?:\b|_)", re.IGNORECASE)
    return any(pattern.search(file.read_text(encoding="utf-8")) for file in files)


def test_it_has_the_promises_of_the_design() -> None:
    assert list(rows(PAGE)) == list(rows("docs/design.md")) == [f"P{n}" for n in range(1, 16)]


def test_what_is_named_shows_it() -> None:
    for promise, rest in rows(PAGE).items():
        named = [ROOT / name for name in re.findall(r"`(tests/[\w/.]+)`", rest)]
        assert named
        assert [path for path in named if not path.exists()] == []
        assert any(cites(path, promise) for path in named), promise


def test_rows_are_in_the_tests_that_are_named_with_them() -> None:
    found = re.findall(r"`(tests/[\w/.]+)` \(([A-Z\d, ]+)\)", text_of(PAGE))
    assert found
    for name, ids in found:
        assert [one for one in ids.split(", ") if not cites(ROOT / name, one)] == []
