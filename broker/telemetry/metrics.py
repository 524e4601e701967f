"""The one table of metrics: what each counts, in which unit, and by which labels; and what an observer counts.

Where the numbers go is a `Meter`: Prometheus (`prometheus.py`) or OpenTelemetry (`otel.py`). Labels have few values:
operations, outcomes, queues, agents, routes. Ids, names of people and anything that was said are never among them.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from . import Observation, Silent


class Sort(StrEnum):
    """How a metric behaves: it only grows, it is a level now, or it counts values by their size."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, by its name in Prometheus. `buckets` are upper bounds in its unit."""

    name: str
    sort: Sort
    says: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    buckets: tuple[float, ...] = ()


MINUTE, HOUR, DAY = 60, 3600, 86400
WAITS: Final = (1, 5, 15, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, DAY, 3 * DAY, 7 * DAY)
CALLS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

UP = Metric("broker_up", Sort.GAUGE, "1 while the server of the namespace can be read, else 0")
OPEN = Metric("broker_open_interrupts", Sort.GAUGE, "Interrupts that wait for an answer")
OLDEST = Metric("broker_oldest_open_seconds", Sort.GAUGE, "Age of the open interrupt that has waited longest, "
                "0 where none is open", unit="s")  # fmt: skip
READY = Metric(
    "broker_ready_runs", Sort.GAUGE, "Runs that are ready and that no worker has taken", ("queue", "agent")
)
BACKLOG = Metric("broker_backlog_age_seconds", Sort.GAUGE, "How long the run of a queue that is next has been ready, "
                 "0 where none is", ("queue",), "s")  # fmt: skip
LEASES = Metric(
    "broker_leased_runs", Sort.GAUGE, "Runs that living workers hold, as they last said", ("queue",)
)
WORKERS = Metric(
    "broker_workers", Sort.GAUGE, "Workers that said within two leases that they are there", ("queue",)
)
DEAD = Metric(
    "broker_dead_runs", Sort.GAUGE, "Runs that failed too often and that an operator has to send back"
)

ANSWERS = Metric("broker_answers_total", Sort.COUNTER, "Answers that this process has sent, by what became of them "
                 "(accepted, already_decided, expired ...)", ("outcome",))  # fmt: skip
DECISION = Metric("broker_decision_seconds", Sort.HISTOGRAM, "From the question to the answer that counted, of answers "
                  "that this process has sent", unit="s", buckets=WAITS)  # fmt: skip
EXPIRED = Metric(
    "broker_expired_total", Sort.COUNTER, "Interrupts whose deadline this process has carried out"
)
UNDURABLE = Metric("broker_durability_misses_total", Sort.COUNTER, "Changes of this process that happened and did not "
                   "reach the durability class of the namespace in time", ("operation",))  # fmt: skip
OPERATIONS = Metric("broker_operations_total", Sort.COUNTER, "Items of script calls that this process has sent, by "
                    "operation and outcome, or the word for the error", ("operation", "outcome"))  # fmt: skip
OPERATION_SECONDS = Metric("broker_operation_seconds", Sort.HISTOGRAM, "How long script calls of this process took",
                           ("operation",), "s", CALLS)  # fmt: skip

REQUESTS = Metric("broker_http_requests_total", Sort.COUNTER, "Requests that this gateway has answered",
                  ("method", "route", "code"))  # fmt: skip
REQUEST_SECONDS = Metric("broker_http_request_seconds", Sort.HISTOGRAM, "How long requests to this gateway took to the "
                         "last byte; streams of events are not counted", ("method", "route"), "s", CALLS)  # fmt: skip
IN_FLIGHT = Metric("broker_http_requests_in_flight", Sort.GAUGE, "Requests that this gateway is answering now, open "
                   "streams of events among them")  # fmt: skip

GAUGES: Final = (UP, OPEN, OLDEST, READY, BACKLOG, LEASES, WORKERS, DEAD)
"""What a namespace holds: every process that reads it tells the same."""
COUNTED: Final = (ANSWERS, DECISION, EXPIRED, UNDURABLE, OPERATIONS, OPERATION_SECONDS)
"""What one process has done: summed over all of them it is the whole."""
HTTP: Final = (REQUESTS, REQUEST_SECONDS, IN_FLIGHT)
"""What one gateway has done."""
METRICS: Final = (*GAUGES, *COUNTED, *HTTP)


class Meter(Protocol):
    """Where the numbers go. Labels are given in the order of the metric's."""

    def add(self, metric: Metric, amount: float, /, *labels: str) -> None:
        """Adds to a counter, or to a gauge that goes up and down."""

    def observe(self, metric: Metric, value: float, /, *labels: str) -> None:
        """Counts one value in a histogram."""


class Counting(Silent):
    """An observer that counts what its process does."""

    def __init__(self, meter: Meter) -> None:
        self.meter: Meter = meter

    def told(self, calls: Sequence[Observation], /) -> None:
        """Counts the items of a call."""
        meter = self.meter
        for call in calls:
            outcome = call.outcome or call.error or "done"
            meter.add(OPERATIONS, 1, call.op, outcome)
            if call.is_undurable:
                meter.add(UNDURABLE, 1, call.op)
            if call.op == "answer":
                meter.add(ANSWERS, 1, outcome)
                if outcome == "accepted" and call.asked_at is not None:
                    meter.observe(DECISION, max(time.time() - call.asked_at, 0.0))
            elif call.op == "expire" and outcome == "done":
                meter.add(EXPIRED, 1)
        if calls and calls[0].t_return is not None:
            meter.observe(OPERATION_SECONDS, (calls[0].t_return - calls[0].t_call) / 1e9, calls[0].op)
