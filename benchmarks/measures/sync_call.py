"""`sync_call`: the blocking client, one call after the other, beside blocking redis-py by hand that does the same."""

from typing import Final

from benchmarks.job import Plan
from benchmarks.series import Series, measure

from .how import Found, How

FLOOR: Final = "redis-sync1"
NAME: Final = "sync_call"


def run(how: How) -> Found:
    """Lifecycles a second, three processes, each with one call under way at most."""
    plan = how.plan(Plan(800, warm_up=100), Plan(12, warm_up=4))
    series = Series(
        NAME, FLOOR, ("per_s", "server_us", "python_us"), dict.fromkeys((FLOOR, "broker-sync"), plan)
    )
    figures, trials = series.run(how.rounds, how.say)
    return Found({NAME: measure(trials, "per_s", FLOOR, "broker-sync")}, {NAME: figures})
