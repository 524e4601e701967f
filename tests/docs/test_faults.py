"""The page of faults and the tests name the same ids."""

import re

from tests.docs.pages import ROOT, text_of

ROW = re.compile(r"^\| (R\d\d) \|", re.MULTILINE)
NAME = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
ID = re.compile(r"(?<![^_])R\d\d(?![^_])")


def test_every_fault_on_the_page_is_shown_and_every_one_shown_is_on_the_page() -> None:
    rows = ROW.findall(text_of("docs/reference/faults.md"))
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    shown = {found for name in NAME.findall(tests) for found in ID.findall(name)}
    assert sorted(rows) == sorted(shown)
