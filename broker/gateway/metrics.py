"""The metrics of one gateway, in the text of Prometheus: levels of the namespace, what it has sent, its requests."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from .._async.client import AsyncBroker
from ..core.fields import to_ms
from ..core.fleet import Fleet
from ..errors import BrokerError
from ..telemetry import Together
from ..telemetry.metrics import (
    BACKLOG,
    COUNTED,
    DEAD,
    GAUGES,
    HTTP,
    LEASES,
    OLDEST,
    OPEN,
    READY,
    UP,
    WORKERS,
    Counting,
    Metric,
)
from ..telemetry.prometheus import PrometheusMeter

log: logging.Logger = logging.getLogger("broker.gateway")

READ_SECONDS: Final = 5.0
"""How long a reading of the levels may take before the gateway says that it cannot."""

Level = tuple[Metric, tuple[str, ...], float]


class Metrics:
    """What one gateway tells Prometheus. Levels are read once in `keep` seconds, however often somebody asks."""

    def __init__(self, broker: AsyncBroker, keep: float) -> None:
        self._broker = broker
        self._keep = keep
        self._registry = CollectorRegistry()
        self.meter: PrometheusMeter = PrometheusMeter(self._registry, (*COUNTED, *HTTP))
        self._one = asyncio.Lock()
        self._levels: tuple[float, bytes] | None = None
        link = broker._link  # noqa: SLF001 - the same house
        link.observer = Together(link.observer, Counting(self.meter))

    async def text(self) -> bytes:
        """All of them now, in the text format."""
        async with self._one:
            if self._levels is None or monotonic() - self._levels[0] >= self._keep:
                self._levels = (monotonic(), await self._read())
            return self._levels[1] + generate_latest(self._registry)

    async def _read(self) -> bytes:
        try:
            async with asyncio.timeout(READ_SECONDS):
                fleet = await self._broker.fleet()
        except (BrokerError, TimeoutError) as fault:
            log.warning("the levels cannot be read: %s", getattr(fault, "code", "timeout"))
            return _written((UP,), [(UP, (), 0.0)])
        now_ms = self._broker._link.server_now() // 1000  # noqa: SLF001 - the same house
        return _written(GAUGES, [(UP, (), 1.0), *levels(fleet, now_ms)])


def levels(fleet: Fleet, now_ms: int) -> Iterator[Level]:
    """The levels of a namespace. A queue that is there and empty is told as 0: an alarm that was raised ends."""
    yield OPEN, (), fleet.open
    yield OLDEST, (), (now_ms - to_ms(fleet.oldest)) / 1000 if fleet.oldest else 0.0
    yield DEAD, (), fleet.dead
    ready: dict[tuple[str, ...], int] = {}
    ages: dict[str, float] = {}
    for pool in fleet.pools:
        ready[pool.queue, pool.agent] = ready.get((pool.queue, pool.agent), 0) + pool.ready
        age = (now_ms - to_ms(pool.since)) / 1000 if pool.since else 0.0
        ages[pool.queue] = max(age, ages.get(pool.queue, 0.0))
    queues = [*ages, *(one.queue for one in fleet.workers)]
    held, alive = dict.fromkeys(queues, 0), dict.fromkeys(queues, 0)
    for one in fleet.workers:
        if one.alive:
            held[one.queue] += one.holding
            alive[one.queue] += 1
    yield from ((READY, place, count) for place, count in ready.items())
    yield from ((BACKLOG, (queue,), age) for queue, age in ages.items())
    yield from ((LEASES, (queue,), count) for queue, count in held.items())
    yield from ((WORKERS, (queue,), count) for queue, count in alive.items())


def _written(told: Sequence[Metric], found: list[Level]) -> bytes:
    registry = CollectorRegistry()
    gauges = {one: Gauge(one.name, one.says, one.labels, registry=registry) for one in told}
    for metric, labels, value in found:
        (gauges[metric].labels(*labels) if labels else gauges[metric]).set(max(value, 0.0))
    return generate_latest(registry)
