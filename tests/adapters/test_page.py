"""The page of the adapters is that of the recorded results, and every framework has its column."""

import json

from tests.tools.adapters import FILE, PAGE, ROOT, page

from .cases import CASES

SUBJECTS = sorted(path.stem for path in (ROOT / "tests/adapters/subjects").glob("[a-z]*.py"))


def test_the_tables_are_those_of_the_results() -> None:
    assert page(PAGE.read_text(), json.loads(FILE.read_text())) == PAGE.read_text()


def test_every_case_is_a_row_of_every_adapter() -> None:
    """A case without a test, with the broker or as the framework's own behaviour, would be a hole in the table."""
    found = json.loads(FILE.read_text())
    whole = {name: column for name, column in found.items() if len(column["cases"]) > len(CASES) // 2}
    holes = {
        name: [case for case in CASES if "broker" not in column["cases"].get(case, {})]
        for name, column in whole.items()
    }
    assert holes == {name: [] for name in whole}


def test_every_row_of_a_framework_alone_is_whole() -> None:
    """What one framework was shown to do alone, each other one was shown too; plain functions do not pause alone."""
    found = json.loads(FILE.read_text())
    alone = {
        name: {case for case, cell in column["cases"].items() if "alone" in cell}
        for name, column in found.items()
    }
    rows = set().union(*alone.values())
    assert len(rows) > len(CASES) // 2
    holes = {name: rows - cases for name, cases in alone.items() if rows - cases}
    assert holes == {"functions": rows}


def test_every_subject_has_its_column() -> None:
    found = json.loads(FILE.read_text())
    assert {name for name in SUBJECTS if not name.endswith("_alone")} <= set(found)
