"""`durable_throughput`, `durable_latency_p50`: every effect on the disk before anybody is told.

The server syncs each write (`appendfsync always`); the namespace then has the class `fsynced` by itself. Throughput is
that of the batches, beside the floor of the same round that syncs once a second and may lose that second. The time from
answer to resume is that of plain calls at 50 pauses a second, beside one bare SET on such a server.
"""

import time
from dataclasses import replace
from typing import Any, Final

import redis

from benchmarks import workload
from benchmarks.harness import Trial, server, trial
from benchmarks.job import Plan
from benchmarks.series import FIGURES, Series, measure, ratio
from benchmarks.stats import percentile, ratios
from broker import Broker

from .how import Found, How, summaries

NAME: Final = "durable"
FLOOR: Final = "redis-syncb"
ALWAYS: Final = "always"
BATCH: Final = "broker-batch:always"
RATED: Final = "broker:always at 50/s"
SETS: Final = 100
PAUSE_SECONDS: Final = 0.02


def run(how: How) -> Found:
    """Rounds of: the floor as it is, the floor and the broker with every write synced, the broker at a rate, SET."""
    floor = how.plan(Plan(6000, warm_up=512), Plan(12, warm_up=4, batch=8))
    batch = how.plan(Plan(3000, warm_up=512, appendfsync=ALWAYS), Plan(12, 4, batch=8, appendfsync=ALWAYS))
    rated = how.plan(
        Plan(120, warm_up=15, rate=50, appendfsync=ALWAYS), Plan(6, 2, rate=50, appendfsync=ALWAYS)
    )
    series = Series(
        NAME,
        FLOOR,
        ("per_s", "server_us", "python_us", "p50_ms"),
        {FLOOR: floor, f"{FLOOR}:{ALWAYS}": replace(floor, appendfsync=ALWAYS), BATCH: batch, RATED: rated},
    )
    _check_class()
    sets: list[dict[str, float]] = []

    def do(variant: str, plan: Plan) -> Trial:
        if variant == RATED:  # in the same minute
            sets.append(_bare_sets(how.size(SETS, 5)))
        return trial(variant, plan)

    figures, trials = series.run(how.rounds, how.say, do)
    waits = [FIGURES["p50_ms"](one) for one in trials[RATED]]
    measures: dict[str, Any] = {
        "durable_throughput": measure(trials, "per_s", FLOOR, BATCH),
        "durable_latency_p50": ratio(ratios(waits, [one["p50 ms"] for one in sets]), "one SET"),
    }
    return Found(measures, {NAME: figures}, {f"{NAME}: one SET": summaries({"redis-set": sets})})


def _check_class() -> None:
    """Raises where a namespace on such a server would promise less: then nothing here is what it says."""
    with server(ALWAYS) as one, Broker(one.tcp_url, namespace="durable") as broker:
        reached = broker.start("nobody", session="session-0").durability
    if str(reached) != "fsynced":
        raise RuntimeError(f"the class is {reached}")


def _bare_sets(count: int) -> dict[str, float]:
    """What one SET of the bytes of a decision takes on a server that syncs every write, milliseconds."""
    with server(ALWAYS) as one, redis.Redis.from_url(one.tcp_url) as client:
        client.ping()
        took = []
        for number in range(count):
            time.sleep(PAUSE_SECONDS)
            began = time.monotonic()
            client.set(f"decision:{number}", workload.dumps(workload.decision(number)))
            took.append((time.monotonic() - began) * 1e3)
    return {"p50 ms": percentile(took, 0.5), "p99 ms": percentile(took, 0.99)}
