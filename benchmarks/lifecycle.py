"""Throughput and cost of one interrupt lifecycle: a process pauses a run, a second approves, a third goes on with it.

As many at once as the closed loop allows. The floor for batches and for costs is `redis-syncb`, for plain concurrent
calls `redis-aio` at the same concurrency: no batching either.
"""

from typing import Any, Final

from .harness import Say
from .job import Plan
from .series import Series, measure

FLOOR: Final = "redis-syncb"
LIKE: Final = "redis-aio"
BATCH: Final = "broker-batch"
MANY: Final = 256

SERIES: Final = Series(
    name="lifecycle",
    floor=FLOOR,
    figures=("per_s", "server_us", "python_us"),
    plans={
        FLOOR: Plan(6000, warm_up=512),
        LIKE: Plan(2000),
        f"{LIKE}:{MANY}": Plan(2000, concurrency=MANY),
        BATCH: Plan(4000, warm_up=512),
        "broker": Plan(2500, warm_up=256),
        f"broker:{MANY}": Plan(2500, warm_up=512, concurrency=MANY),
    },
)


def tiny() -> Series:
    """The same with so few lifecycles that it says nothing, to see that everything runs."""
    plans = {name: Plan(12, warm_up=4, batch=8, concurrency=4) for name in SERIES.plans}
    return Series(SERIES.name, SERIES.floor, SERIES.figures, plans)


def run(series: Series, rounds: int, say: Say) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures of all variants, and the measures."""
    figures, trials = series.run(rounds, say)
    return figures, {
        "batch_throughput": measure(trials, "per_s", FLOOR, BATCH),
        "call_throughput": measure(trials, "per_s", LIKE),
        f"call_throughput_{MANY}": measure(trials, "per_s", f"{LIKE}:{MANY}", f"broker:{MANY}"),
        "server_cpu": measure(trials, "server_us", FLOOR, BATCH),
        "python_cpu": measure(trials, "python_us", FLOOR, BATCH),
        "server_cpu_of_calls": measure(trials, "server_us", FLOOR),
        "python_cpu_of_calls": measure(trials, "python_us", FLOOR),
    }
