"""What the tests of the measures share: one taken at its tiny size, and what must be true of any."""

from pathlib import Path
from typing import Final

from benchmarks import results, tables
from benchmarks.measures import LONG, SHORT, Found, How

README: Final = Path(results.__file__).with_name("README.md").read_text(encoding="utf-8")


def taken(name: str, runs: Path | None = None) -> Found:
    """A measure at its tiny size. Everything runs for real, nothing was lost, and the page tells what it means."""
    said: list[str] = []
    found = (SHORT | LONG)[name](How(1, said.append, tiny=True, runs=runs))
    assert said
    assert (found.missing, found.doubled) == (0, 0)
    assert results.faults({"series": found.series, "details": found.details}) == []
    assert tables.measures_table(found.measures)
    for measure, one in found.measures.items():
        assert 0 < one["low"] <= one.get("ratio", one.get("value")) <= one["high"], measure
        assert f"`{measure}`" in README, f"{measure} is not explained"
    for series in found.series.values():
        assert tables.series_table(series)
        for variant, figures in series["variants"].items():
            if variant.startswith("broker"):
                assert figures["facts"]["history_entries"]["low"] >= 4
    for details in found.details.values():
        assert tables.details_table(details)
    return found
