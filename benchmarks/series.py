"""Rounds of trials as figures: every variant's medians and spreads, and its ratios to the floor of the same round."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from .harness import Say, Trial, rounds, trial
from .job import ROLES, Plan
from .stats import Summary, percentile, ratios, summary

Figure = Callable[[Trial], float]

FIGURES: Final[Mapping[str, Figure]] = {
    "per_s": lambda one: one.per_s,
    "time_us": lambda one: 1e6 / one.per_s if one.per_s else 0.0,
    "server_us": lambda one: one.server_us,
    "python_us": lambda one: one.all_python_us,
    "p50_ms": lambda one: percentile(one.waits_ms, 0.5) if one.waits_ms else 0.0,
    "p99_ms": lambda one: percentile(one.waits_ms, 0.99) if one.waits_ms else 0.0,
}
"""Name -> what it is of one trial."""


@dataclass(frozen=True, slots=True)
class Series:
    """One measurement: its plan for each variant, the floor, and which figures it is about."""

    name: str
    floor: str
    figures: tuple[str, ...]
    plans: dict[str, Plan]

    def run(
        self, count: int, say: Say, do: Callable[[str, Plan], Trial] = trial
    ) -> tuple[dict[str, Any], dict[str, list[Trial]]]:
        """So many interleaved rounds: the figures for the results file, and the trials behind them."""
        say(f"{self.name}: {count} x {', '.join(self.plans)}")
        trials = rounds(self.plans, count, say, do)
        return {
            "floor": self.floor,
            "rounds": count,
            "plans": {name: asdict(plan) for name, plan in self.plans.items()},
            "variants": {name: self._of(found, trials[self.floor]) for name, found in trials.items()},
        }, trials

    def _of(self, trials: list[Trial], floor: list[Trial]) -> dict[str, Any]:
        found: dict[str, Any] = {name: self._summary(trials, FIGURES[name]) for name in self.figures}
        if "python_us" in self.figures:
            found["python_us_by_role"] = {
                role: self._summary(trials, lambda one, role=role: one.python_us[role])  # type: ignore[misc]
                for role in ROLES
            }
        found["ratio_to_floor"] = {
            name: summary(between(trials, floor, name) or [0.0]) for name in self.figures
        }
        found["missing"] = sum(one.missing for one in trials)
        found["doubled"] = sum(one.doubled for one in trials)
        found["facts"] = {
            name: self._summary(trials, lambda one, name=name: one.facts[name])  # type: ignore[misc]
            for name in trials[0].facts
        }
        return found

    @staticmethod
    def _summary(trials: list[Trial], figure: Figure) -> Summary:
        return summary([figure(one) for one in trials])


def between(trials: list[Trial], others: list[Trial], figure: str) -> list[float]:
    """A figure of some trials beside the same of others, round by round."""
    read = FIGURES[figure]
    return ratios([read(one) for one in trials], [read(one) for one in others])


def measure(trials: dict[str, list[Trial]], figure: str, against: str, of: str = "broker") -> dict[str, Any]:
    """What one variant has of a figure beside another one: the measures that releases are compared by."""
    return ratio(between(trials[of], trials[against], figure), against)


def ratio(values: list[float], against: str) -> dict[str, Any]:
    """A measure that is a ratio, from those of the rounds."""
    found = summary(values or [0.0])
    return {"ratio": found["median"], "low": found["low"], "high": found["high"], "against": against}


def value(values: list[float], unit: str) -> dict[str, Any]:
    """A measure that stands for itself, from its values in the rounds."""
    found = summary(values or [0.0])
    return {"value": found["median"], "low": found["low"], "high": found["high"], "unit": unit}
