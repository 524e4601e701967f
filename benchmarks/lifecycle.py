"""Throughput and cost of one interrupt lifecycle: a process pauses a run, a second approves, a third goes on with it.

As many at once as the closed loop allows. The floor for costs is `redis-syncb`, for throughput of plain concurrent
calls `redis-aio`: the same concurrency, no batching either.
"""

from typing import Any, Final

from .harness import Say
from .job import Plan
from .series import Series, measure

FLOOR: Final = "redis-syncb"
LIKE: Final = "redis-aio"

SERIES: Final = Series(
    name="lifecycle",
    floor=FLOOR,
    figures=("per_s", "server_us", "python_us"),
    plans={FLOOR: Plan(5000, warm_up=512), LIKE: Plan(1200), "broker": Plan(2000, warm_up=256)},
)


def tiny() -> Series:
    """The same with so few lifecycles that it says nothing, to see that everything runs."""
    plans = {name: Plan(12, warm_up=4, batch=8, concurrency=4) for name in SERIES.plans}
    return Series(SERIES.name, SERIES.floor, SERIES.figures, plans)


def run(series: Series, rounds: int, say: Say) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures of all variants, and the measures."""
    figures, trials = series.run(rounds, say)
    return figures, {
        "call_throughput": measure(trials, "per_s", LIKE),
        "server_cpu": measure(trials, "server_us", FLOOR),
        "python_cpu": measure(trials, "python_us", FLOOR),
    }
