"""Two results beside one another: what changed, and whether the rounds of one reach into those of the other."""

from collections.abc import Iterator, Mapping
from typing import Any

from .stats import Summary
from .tables import HEADINGS, number, spread, table

Row = list[str]


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """A table for each thing that both have. Ratios to the floor come first: they survive another machine."""
    parts = [_differences(old, new)]
    if rows := list(_measures(old, new)):
        parts.append(table(["measure", "old", "new", "new/old", "spreads"], rows))
    if rows := list(_series(old, new)):
        parts.append(table(["series: variant, figure", "old", "new", "new/old", "spreads"], rows))
    if rows := list(_micro(old, new)):
        parts.append(table(["micro", "old µs", "new µs", "new/old"], rows))
    return "\n\n".join(part for part in parts if part)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What is not the same about the two, so that nobody compares two machines unaware."""
    lines = []
    for part in ("machine", "versions"):
        for name in old[part] | new[part]:
            was, now = old[part].get(name), new[part].get(name)
            if was != now:
                lines.append(f"{part}: {name} was {was}, is {now}")
    return "\n".join(lines)


def _measures(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Row]:
    for name, was in old["measures"].items():
        now = new["measures"].get(name)
        if now is not None:
            yield [name, *_cells(_summary(was), _summary(now))]


def _summary(measure: Mapping[str, Any]) -> Summary:
    median = measure.get("ratio", measure.get("value", 0.0))
    return {"median": median, "low": measure["low"], "high": measure["high"], "values": []}


def _series(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Row]:
    for name, series in old["series"].items():
        for variant, found in series["variants"].items():
            other = new["series"].get(name, {"variants": {}})["variants"].get(variant)
            if other is None:
                continue
            for figure in HEADINGS:
                if figure in found and figure in other:
                    yield [f"{name}: {variant}, {HEADINGS[figure]}", *_cells(found[figure], other[figure])]


def _micro(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Row]:
    if "micro" not in old or "micro" not in new:
        return
    pairs = [(name, us, new["micro"]["codec_us"].get(name)) for name, us in old["micro"]["codec_us"].items()]
    for name, cost in old["micro"]["operations"].items():
        other = new["micro"]["operations"].get(name, {})
        pairs += [(f"{name}: {side}", cost[side], other.get(side)) for side in ("client_us", "server_us")]
    for name, was, now in pairs:
        if now is not None:
            yield [name, number(was), number(now), _ratio(was, now)]


def _cells(was: Summary, now: Summary) -> Row:
    apart = now["low"] > was["high"] or now["high"] < was["low"]
    return [
        spread(was),
        spread(now),
        _ratio(was["median"], now["median"]),
        "apart" if apart else "overlap",
    ]


def _ratio(was: float, now: float) -> str:
    return number(now / was) if was else "-"
