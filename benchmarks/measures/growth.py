"""`growth_100k`, `growth_1m`: time of a lifecycle while so many other questions are open, beside none.

The others wait in a queue of their own and have no state. They are made once, through batches, and stay for all rounds;
nobody has looked at them, so the sweeper has them all on its list of those to ring for.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Final

from benchmarks.harness import Trial, TrialFailed, player, server, trial_on
from benchmarks.job import Plan, load, told
from benchmarks.series import Series, measure, value
from benchmarks.variants.broker_calls import NAMESPACE, question
from broker import Broker, Principal, Suspension
from broker.testing import ServerProcess

from .how import Found, How

NONE: Final = "broker-batch"
MAKERS: Final = 2
AT_ONCE: Final = 500
PATIENCE_SECONDS: Final = 3600.0


def to_100k(how: How) -> Found:
    """With a hundred thousand others."""
    return _grown(how, "growth_100k", how.size(100_000, 200))


def to_1m(how: How) -> Found:
    """With a million others."""
    return _grown(how, "growth_1m", how.size(1_000_000, 300))


def _grown(how: How, name: str, others: int) -> Found:
    full = f"{NONE}:{name.rpartition('_')[2]}"
    plan = how.plan(Plan(3000, warm_up=512), Plan(12, warm_up=4, batch=8))
    series = Series(name, NONE, ("time_us", "server_us", "python_us"), {NONE: plan, full: plan})
    with server() as empty, server() as crowded:
        load(NONE).prepare(crowded.tcp_url)
        seconds = fill(crowded.tcp_url, others)
        how.say(f"{name}: {others:,} others were opened in {seconds:.0f} s")
        figures, trials = series.run(how.rounds, how.say, _on({NONE: empty, full: crowded}))
        still = _still_open(crowded.tcp_url)
    if still != others:
        raise TrialFailed(f"of {others} other questions {still} are open at the end")
    measures = {
        name: measure(trials, "time_us", NONE, full),
        f"{name}_server_cpu": measure(trials, "server_us", NONE, full),
        f"{name}_opened_per_s": value([others / seconds], "opened a second"),
    }
    return Found(measures, {name: figures})


def _on(servers: dict[str, ServerProcess]) -> Callable[[str, Plan], Trial]:
    """Trials on servers that stay; each has lifecycles of its own."""
    count = 0

    def do(variant: str, plan: Plan) -> Trial:
        nonlocal count
        count += 1
        return trial_on(servers[variant], variant, replace(plan, mark=f"{count}-"))

    return do


def _still_open(url: str) -> int:
    with Broker(url, namespace=NAMESPACE) as broker:
        return broker.fleet().open


def fill(url: str, count: int) -> float:
    """Opens so many questions, in two processes, and says how many seconds that took."""
    began = time.monotonic()
    makers = [player("fill", opens, url, range(place, count, MAKERS)) for place in range(min(MAKERS, count))]
    try:
        for maker in makers:
            if not maker.check(PATIENCE_SECONDS):
                raise TrialFailed(f"{count} questions were not opened in {PATIENCE_SECONDS:g} s")
    finally:
        for maker in makers:
            maker.end()
    return time.monotonic() - began


def opens(url: str, numbers: range, pipe: Connection) -> None:
    """One of the processes that open questions."""
    with told(pipe), Broker(url, namespace=NAMESPACE, by=Principal.local("agent")) as broker:
        for first in range(0, len(numbers), AT_ONCE):
            outcomes = broker.batch.suspend([_other(n) for n in numbers[first : first + AT_ONCE]])
            if not all(one.ok for one in outcomes):
                raise RuntimeError("a question was not opened")


def _other(number: int) -> Suspension:
    return Suspension(
        agent="others",
        session=f"other-{number}",
        queue="others",
        interrupts=[question(number)],
        key="open",
    )
