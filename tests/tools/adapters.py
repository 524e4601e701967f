"""Write docs/reference/adapters.json, and the tables of adapters.md, from what the suite of the adapters has shown.

    make test-adapters && .venv/bin/python -m tests.tools.adapters

An adapter that was not run keeps its column. The ids of the processes stay in `.envs/results/`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.adapters.cases import CASES
from tests.tools.reference import table

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = ROOT / ".envs" / "results"
FILE: Final = ROOT / "docs" / "reference" / "adapters.json"
PAGE: Final = FILE.with_suffix(".md")

_PART: Final = re.compile(r"(<!-- written by tests/tools/adapters.py -->\n).*?(?=<!-- end -->)", re.DOTALL)

Columns = dict[str, dict[str, Any]]


def shown(record: dict[str, Any]) -> dict[str, Any]:
    """One adapter's column, from the record of a run of the suite."""
    cases: dict[str, dict[str, str]] = {}
    for case in CASES:
        played = record["cases"].get(case, {})
        cell = {"broker": record["cannot"].get(case) or CASES[case][1]} if "broker" in played else {}
        if "alone" in played:
            cell["alone"] = record["alone"][case]
        if cell:
            cases[case] = cell
    return {"versions": record["versions"], "cannot": sorted(record["cannot"]), "cases": cases}


def columns() -> Columns:
    """Every adapter's column: those that were run since, and those of the file."""
    known: Columns = json.loads(FILE.read_text()) if FILE.exists() else {}
    for path in sorted(RESULTS.glob("*.json")):
        known[path.stem] = shown(json.loads(path.read_text()))
    return dict(sorted(known.items()))


def page(text: str, found: Columns) -> str:
    """The page with its tables as they should be."""
    alone = {
        name: column
        for name, column in found.items()
        if any("alone" in cell for cell in column["cases"].values())
    }
    parts = (
        "### With the broker\n\n",
        table(("case", "what comes of it", *_heads(found)), _rows(found, "broker")),
        "\n### Alone\n\n",
        table(("case", *_heads(alone)), _rows(alone, "alone")),
    )
    return _PART.sub(lambda part: part[1] + "\n" + "".join(parts) + "\n", text)


def _heads(found: Columns) -> tuple[str, ...]:
    """The adapters' names, each with its package's version; with all packages where none of them has that name."""
    heads: list[str] = []
    for name, column in found.items():
        first, *_ = versions = column["versions"]
        of_that_name = name.replace("_", "") in first.replace("-", "")
        said = versions[first] if of_that_name else ", ".join(map(" ".join, versions.items()))
        heads.append(f"{name} {said}")
    return tuple(heads)


def _rows(found: Columns, way: str) -> Iterator[tuple[str, ...]]:
    for case, (title, promise) in CASES.items():
        cells = [column["cases"].get(case, {}).get(way, "") for column in found.values()]
        if way == "broker":
            lacking = [case in column["cannot"] for column in found.values()]
            yield (
                title,
                promise,
                *(
                    f"no: {cell}" if lacks else "yes" if cell else ""
                    for cell, lacks in zip(cells, lacking, strict=True)
                ),
            )
        elif any(cells):
            yield title, *cells


def main() -> None:
    """Writes both."""
    found = columns()
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    print(f"{len(found)} adapters: {', '.join(found)}")


if __name__ == "__main__":
    main()
