"""The metrics in a registry of Prometheus. Needs `prometheus-client`, which the extra `gateway` brings.

observer = Counting(PrometheusMeter(REGISTRY))
start_http_server(9100)
worker = Worker(url, observer=observer)
"""

from collections.abc import Sequence
from importlib.util import find_spec

from ..errors import MissingExtra

if find_spec("prometheus_client") is None:
    raise MissingExtra("gateway", "The metrics of Prometheus")

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from .metrics import COUNTED, Counting, Metric, Sort

__all__ = ["Counting", "PrometheusMeter"]


class PrometheusMeter:
    """Counts into a registry; the metrics of one process are made once for it."""

    def __init__(self, registry: CollectorRegistry, metrics: Sequence[Metric] = COUNTED) -> None:
        self.registry: CollectorRegistry = registry
        self._counters = {one: _counter(one, registry) for one in metrics if one.sort is not Sort.HISTOGRAM}
        self._histograms = {
            one: Histogram(one.name, one.says, one.labels, buckets=one.buckets, registry=registry)
            for one in metrics
            if one.sort is Sort.HISTOGRAM
        }

    def add(self, metric: Metric, amount: float, /, *labels: str) -> None:
        """Adds to a counter or a gauge."""
        found = self._counters[metric]
        (found.labels(*labels) if labels else found).inc(amount)

    def observe(self, metric: Metric, value: float, /, *labels: str) -> None:
        """Counts one value in a histogram."""
        found = self._histograms[metric]
        (found.labels(*labels) if labels else found).observe(value)


def _counter(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge:
    kind = Counter if metric.sort is Sort.COUNTER else Gauge
    return kind(metric.name, metric.says, metric.labels, registry=registry)
