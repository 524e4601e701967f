"""Results as a picture: throughput, costs and latency of all variants, with the spread of the rounds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .tables import number

PANELS: Final = (
    ("lifecycle", "per_s", "Lifecycles per second", "more is better"),
    ("lifecycle", "server_us", "Server CPU per lifecycle, µs", "less is better"),
    ("lifecycle", "python_us", "Python CPU per lifecycle, µs", "less is better"),
    ("latency", "p50_ms", "Answer to resume, median, ms", "less is better"),
    ("latency", "p99_ms", "Answer to resume, 99th percentile, ms", "less is better"),
)
COLORS: Final = {"broker": "#2563a8"}
OTHERS: Final = "#9aa3ad"


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Writes the picture as SVG, text as text, the same bytes for the same results."""
    wanted = [panel for panel in PANELS if panel[0] in results["series"]]
    if not wanted:
        return
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "results", "font.size": 9})
    heights = [len(results["series"][series]["variants"]) + 0.8 for series, *_ in wanted]
    figure = Figure(figsize=(7.5, 0.42 * sum(heights) + 0.3 * len(wanted)), layout="constrained")
    axes = figure.subplots(len(wanted), 1, height_ratios=heights, squeeze=False)
    for one, (series, figure_name, title, better) in zip(axes[:, 0], wanted, strict=True):
        _bars(one, results["series"][series]["variants"], figure_name)
        one.set_title(f"{title} ({better})", loc="left", fontsize=9)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _bars(axes: Axes, variants: Mapping[str, Any], figure: str) -> None:
    names = list(variants)
    medians = [variants[name][figure]["median"] for name in names]
    below = [variants[name][figure]["median"] - variants[name][figure]["low"] for name in names]
    above = [variants[name][figure]["high"] - variants[name][figure]["median"] for name in names]
    colors = [COLORS.get(name, OTHERS) for name in names]
    axes.barh(names, medians, color=colors, xerr=[below, above], error_kw={"ecolor": "#444", "capsize": 3})
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.spines[["top", "right"]].set_visible(False)
    furthest = max(m + more for m, more in zip(medians, above, strict=True))
    axes.set_xlim(right=furthest * 1.12 or 1)
    for place, (median, more) in enumerate(zip(medians, above, strict=True)):
        axes.annotate(number(median), (median + more + furthest * 0.01, place), va="center", fontsize=8)
