"""Medians, spreads and percentiles: few numbers, all of them shown."""

import math
import statistics
from collections.abc import Sequence
from typing import TypedDict


class Summary(TypedDict):
    """One figure over the rounds: its median, how far it went, and every value in order."""

    median: float
    low: float
    high: float
    values: list[float]


def summary(values: Sequence[float]) -> Summary:
    """The summary of at least one value."""
    kept = [rounded(value) for value in values]
    return {"median": rounded(statistics.median(kept)), "low": min(kept), "high": max(kept), "values": kept}


def ratios(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """Round by round, the first beside the second; a round whose second is nothing gives no ratio."""
    return [value / other for value, other in zip(values, others, strict=True) if other]


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part (0 to 1) of the values does not exceed."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * part) - 1)]


def rounded(value: float) -> float:
    """Four digits that count: more would be noise."""
    if value == 0 or not math.isfinite(value):
        return 0.0
    return round(value, 3 - math.floor(math.log10(abs(value))))
