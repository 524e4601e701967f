"""`fleet_1000`: what a thousand workers on the queue, nearly all idle, cost the lifecycles that pass them.

All know the agent, so each run may go to any of them. They are whole workers, with their leases, heartbeats, bells and
sweepers, 250 in each of four processes. What they cost when nothing happens is in `server_cpu` too.
"""

from dataclasses import replace
from typing import Final

from benchmarks.job import Plan
from benchmarks.series import Series, measure

from .how import Found, How

NAME: Final = "fleet_1000"
ONE: Final = "broker"
MANY: Final = "broker:fleet"
PROCESSES: Final = 4


def run(how: How) -> Found:
    """Server processor time of a lifecycle, and answer to resume, at 50 pauses a second."""
    plan = how.plan(Plan(400, warm_up=50, rate=50, seconds=60), Plan(6, warm_up=2, rate=50, concurrency=4))
    crowd = replace(
        plan, resumers=how.size(PROCESSES, 2), workers=how.size(1000, 8) // how.size(PROCESSES, 2)
    )
    series = Series(
        NAME, ONE, ("per_s", "server_us", "python_us", "p50_ms", "p99_ms"), {ONE: plan, MANY: crowd}
    )
    figures, trials = series.run(how.rounds, how.say)
    measures = {
        f"{NAME}_server_cpu": measure(trials, "server_us", ONE, MANY),
        f"{NAME}_p99": measure(trials, "p99_ms", ONE, MANY),
    }
    return Found(measures, {NAME: figures})
