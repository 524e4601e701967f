"""How long an approved run waits: from just before the answer is sent until the run goes on in the other process.

At 50 pauses a second, so that nothing queues: what is measured is the path, not the load. Where fewer lifecycles a
second come out, the machine was too busy for the rate, and the times are those of a queue.
"""

from typing import Any, Final

from .harness import Say
from .job import Plan
from .series import Series, measure

FLOOR: Final = "redis-syncb"
RATE: Final = 50.0

SERIES: Final = Series(
    name="latency",
    floor=FLOOR,
    figures=("per_s", "p50_ms", "p99_ms", "server_us", "python_us"),
    plans={name: Plan(120, warm_up=15, rate=RATE) for name in (FLOOR, "broker")},
)


def tiny() -> Series:
    """The same with so few lifecycles that it says nothing, to see that everything runs."""
    plans = {name: Plan(6, warm_up=2, rate=RATE, concurrency=4) for name in SERIES.plans}
    return Series(SERIES.name, SERIES.floor, SERIES.figures, plans)


def run(series: Series, rounds: int, say: Say) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures of all variants, and the measures."""
    figures, trials = series.run(rounds, say)
    return figures, {
        "resume_latency_p50": measure(trials, "p50_ms", FLOOR),
        "resume_latency_p99": measure(trials, "p99_ms", FLOOR),
    }
