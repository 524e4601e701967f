"""The contest as one table, and a line for each who could not run."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.tables import number, spread, table

from .catalogue import RATE
from .contest import last_line

FIGURES: Final = {
    "per_s": "lifecycles/s",
    "server_us": "server CPU µs",
    "python_us": "Python CPU µs",
    "p50_ms": f"p50 ms at {RATE:.0f}/s",
}
NOTHING: Final = "-"


def report(results: Mapping[str, Any]) -> str:
    """Everything, in the order of the catalogue."""
    variants = results["variants"]
    headings = ["variant", "durable"]
    for name in FIGURES.values():
        headings += [name, "ratio"]
    rows = [_row(name, figures) for name, figures in variants.items()]
    parts = [_head(results), table([*headings, "missing", "doubled", "by hand"], rows)]
    if absent := [f"{name}: cannot run: {last_line(f['cannot_run'])}" for name, f in _absent(variants)]:
        parts.append("\n".join(absent))
    parts.append("\n".join(_packages(variants)))
    return "\n\n".join(parts)


def _head(results: Mapping[str, Any]) -> str:
    about, load = results["machine"], results["load"]
    return (
        f"{about['processor']}, {about['cores']} cores, {about['memory_gib']} GiB, {about['system']}; "
        f"Python {results['python']}; {results['made_at']}; load {load['before']} before, {load['after']} after; "
        f"{results['rounds']} rounds, floor {results['floor']}, median (lowest-highest)"
    )


def _row(name: str, figures: Mapping[str, Any]) -> list[str]:
    row = [name, figures["durable"]]
    if "cannot_run" in figures:
        return [*row, "cannot run", *[NOTHING] * (2 * len(FIGURES) + 1), figures["by_hand"] or NOTHING]
    for figure in FIGURES:
        row += [spread(figures[figure]), number(figures[figure]["ratio"]["median"])]
    return [*row, str(figures["missing"]), str(figures["doubled"]), figures["by_hand"] or NOTHING]


def _absent(variants: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((name, figures) for name, figures in variants.items() if "cannot_run" in figures)


def _packages(variants: Mapping[str, Any]) -> Iterator[str]:
    for name, figures in variants.items():
        if "cannot_run" not in figures:
            made = [f"{package} {version}" for package, version in figures["versions"].items()]
            yield f"{name}: {', '.join([*made, 'on ' + figures['server']])}"
