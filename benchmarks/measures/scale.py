"""`scale_out`: lifecycles a second with a second process of each role, beside one of each. More cores help more."""

from dataclasses import replace
from typing import Final

from benchmarks.job import Plan
from benchmarks.series import Series, measure

from .how import Found, How

NAME: Final = "scale_out"
ONE: Final = "broker"
TWO: Final = "broker:2"


def run(how: How) -> Found:
    """The plain calls of the front door: followers share the bells, workers the runs."""
    plan = how.plan(Plan(2500, warm_up=256), Plan(12, warm_up=4, concurrency=4))
    plans = {ONE: plan, TWO: replace(plan, pairs=2)}
    floor = how.plan(Plan(6000, warm_up=512), Plan(12, warm_up=4, batch=8))
    plans |= {"redis-syncb": floor, "redis-syncb:2": replace(floor, pairs=2)}
    series = Series(NAME, ONE, ("per_s", "server_us", "python_us"), plans)
    figures, trials = series.run(how.rounds, how.say)
    measures = {
        NAME: measure(trials, "per_s", ONE, TWO),
        f"{NAME}_of_floor": measure(trials, "per_s", "redis-syncb", "redis-syncb:2"),
    }
    return Found(measures, {NAME: figures})
