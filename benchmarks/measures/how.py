"""How a measure is taken, and what it gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness import Say
from benchmarks.job import Plan
from benchmarks.stats import Summary, summary


@dataclass(frozen=True, slots=True)
class How:
    """What was asked for."""

    rounds: int
    say: Say
    tiny: bool = False
    """So few of everything that it says nothing: to see that it runs."""
    runs: Path | None = None
    """Recorded runs, one a line, for the measure that wants them."""

    def size(self, full: int, tiny: int) -> int:
        """One of two sizes."""
        return tiny if self.tiny else full

    def plan(self, full: Plan, tiny: Plan) -> Plan:
        """One of two plans."""
        return tiny if self.tiny else full


@dataclass(slots=True)
class Found:
    """What a measure came to; each part is named as it will be in the results file."""

    measures: dict[str, Any] = field(default_factory=dict)
    series: dict[str, Any] = field(default_factory=dict)
    """Those that are trials of lifecycles."""
    details: dict[str, dict[str, dict[str, Summary]]] = field(default_factory=dict)
    """For the others: measure -> variant -> figure."""
    missing: int = 0
    """Waiters and runs that were never woken or taken up, where no series counts them."""
    doubled: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    """Measure -> why it was left out."""


Measure = Callable[[How], Found]


def summaries(rounds: Mapping[str, list[dict[str, float]]]) -> dict[str, dict[str, Summary]]:
    """Variant -> figure -> its summary, from the figures of each round."""
    return {
        variant: {name: summary([one[name] for one in found]) for name in found[0]}
        for variant, found in rounds.items()
    }
