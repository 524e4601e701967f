"""Results for people: tables in Markdown, readable as they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from .stats import Summary

HEADINGS: Final = {
    "per_s": "lifecycles/s",
    "time_us": "µs a lifecycle",
    "server_us": "server CPU µs",
    "python_us": "Python CPU µs",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
}
OPERATION: Final = {
    "client_us": "client CPU µs",
    "server_us": "server CPU µs",
    "script_us": "script µs",
    "commands_us": "of it commands",
    "overhead_us": "of it overhead",
    "reads_us": "reads µs",
    "commands": "commands in script",
    "reads": "reads",
}


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with aligned columns, numbers to the right."""
    lines = [list(headings), *[list(row) for row in rows]]
    widths = [max(len(line[n]) for line in lines) for n in range(len(headings))]
    shown = ["| " + " | ".join(_padded(line, widths)) + " |" for line in lines]
    rule = "|" + "|".join("-" * (w + 1) + ":" if n else "-" * (w + 2) for n, w in enumerate(widths)) + "|"
    return "\n".join([shown[0], rule, *shown[1:]])


def _padded(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for n, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        yield cell.rjust(width) if n else cell.ljust(width)


def number(value: float) -> str:
    """A number with as many digits as say something."""
    if abs(value) >= 100:  # noqa: PLR2004
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"  # noqa: PLR2004


def spread(one: Summary) -> str:
    """A median with the lowest and the highest of the rounds."""
    return f"{number(one['median'])} ({number(one['low'])}-{number(one['high'])})"


def series_table(series: Mapping[str, Any]) -> str:
    """One row for each variant: figures, and their ratios to the floor of the same round."""
    variants = series["variants"]
    figures = [name for name in HEADINGS if name in next(iter(variants.values()))]
    headings = ["variant"] + [each for name in figures for each in (HEADINGS[name], "ratio")]
    headings += ["missing", "doubled"]
    rows = []
    for name, found in variants.items():
        row = [name]
        for figure in figures:
            row += [spread(found[figure]), number(found["ratio_to_floor"][figure]["median"])]
        rows.append([*row, str(found["missing"]), str(found["doubled"])])
    return table(headings, rows)


def roles_table(series: Mapping[str, Any]) -> str:
    """The Python processor time by process."""
    variants = series["variants"]
    roles = list(next(iter(variants.values()))["python_us_by_role"])
    rows = [
        [name, *[spread(found["python_us_by_role"][role]) for role in roles]]
        for name, found in variants.items()
    ]
    return table(["Python CPU µs", *roles], rows)


def measures_table(measures: Mapping[str, Any]) -> str:
    """What the broker is compared by."""
    rows = [[name, said(m), f"{number(m['low'])}-{number(m['high'])}"] for name, m in measures.items()]
    return table(["measure", "median", "spread"], rows)


def said(measure: Mapping[str, Any]) -> str:
    """A measure in words: a ratio to something, or a value with its unit."""
    if "ratio" in measure:
        return f"{number(measure['ratio'])} x {measure['against']}"
    return f"{number(measure['value'])} {measure['unit']}"


def details_table(details: Mapping[str, Mapping[str, Summary]]) -> str:
    """One row for each variant of a measure that is no series of lifecycles."""
    figures = list(dict.fromkeys(name for one in details.values() for name in one))
    rows = [
        [variant, *[spread(one[name]) if name in one else "-" for name in figures]]
        for variant, one in details.items()
    ]
    return table(["variant", *figures], rows)


def report(results: Mapping[str, Any]) -> str:
    """Everything, in the order it was measured."""
    about, made = results["machine"], results["versions"]
    head = (
        f"{about['processor']}, {about['cores']} cores, {about['memory_gib']} GiB, {about['system']}; "
        f"Python {made['python']}, redis-py {made['redis']}, {made['server']}; {results['made_at']}"
    )
    if load := results.get("load"):
        head += f"; load {load['before']} before, {load['after']} after"
    parts = [head]
    for name, series in results["series"].items():
        parts.append(f"{name}: {series['rounds']} rounds, floor {series['floor']}, median (lowest-highest)")
        parts.append(series_table(series))
        if name == "lifecycle":
            parts.append(roles_table(series))
    for name, details in results.get("details", {}).items():
        parts += [f"{name}: median (lowest-highest)", details_table(details)]
    parts += [f"{name}: left out, {why}" for name, why in results.get("skipped", {}).items()]
    parts += [f"{name}: failed, {why}" for name, why in results.get("failed", {}).items()]
    if counts := results.get("counts"):
        parts.append(f"all in all: {counts['missing']} resumes missing, {counts['doubled']} doubled")
    if results["measures"]:
        parts.append(measures_table(results["measures"]))
    if "micro" in results:
        parts += _micro(results["micro"])
    return "\n\n".join(parts)


def _micro(micro: Mapping[str, Any]) -> list[str]:
    size = micro["state_bytes"]
    codec = table(["codec", "µs"], [[name, number(us)] for name, us in micro["codec_us"].items()])
    rows = [
        [name, *[number(cost[field]) for field in OPERATION]] for name, cost in micro["operations"].items()
    ]
    return [
        f"micro: best of the repeats; a state of {size['json']:,} bytes as JSON is stored in {size['stored']:,}",
        codec,
        table(["operation", *OPERATION.values()], rows),
    ]
