"""`journal_call`: one inline tool call with its record, from 64 coroutines, beside two plain HSET of the same bytes.

The call is written ahead before it runs and its result after it, under the lease. By hand, asyncio redis-py writes the
same arguments and the same result to a hash, one round trip each, and protects nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import redis.asyncio

from benchmarks import workload
from benchmarks.harness import server
from benchmarks.machine import cpu_seconds
from benchmarks.series import ratio
from benchmarks.stats import ratios
from benchmarks.variants.broker_calls import NAMESPACE
from broker import AsyncBroker, Run, Worker
from broker.testing import ServerProcess

from .how import Found, How, summaries

NAME: Final = "journal_call"
HAND: Final = "redis-hset"
AGENT: Final = "calls"
RESULT: Final = {"refunded": True, "receipt": "r" * 200}


@dataclass(frozen=True, slots=True)
class Size:
    """How many coroutines, and calls of each: first some that do not count."""

    coroutines: int
    warm_up: int
    calls: int


def run(how: How) -> Found:
    """Processor time of server and client for each call."""
    size = Size(how.size(64, 4), how.size(5, 1), how.size(60, 3))
    how.say(f"{NAME}: {how.rounds} x {size.coroutines} coroutines with {size.calls} calls each")
    ways = {HAND: _by_hand, "broker": _by_broker}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for number in range(how.rounds):
        for name in list(ways)[:: 1 if number % 2 else -1]:
            with server() as one:
                found[name].append(asyncio.run(ways[name](one, size)))
    measures = {
        f"{NAME}_{side}": ratio(_between(found, f"{word} CPU µs"), "two HSET by hand")
        for side, word in (("server_cpu", "server"), ("python_cpu", "Python"))
    }
    return Found(measures, details={NAME: summaries(found)})


def _between(found: dict[str, list[dict[str, float]]], figure: str) -> list[float]:
    return ratios([one[figure] for one in found["broker"]], [one[figure] for one in found[HAND]])


class Meter:
    """Starts the clocks when all coroutines are there, and stops them when all have ended."""

    def __init__(self, one: ServerProcess, size: Size) -> None:
        self._pid = one.pid
        self._size = size
        self._there = asyncio.Barrier(size.coroutines)
        self._began = (0.0, 0.0, 0.0)

    async def around(self, call: Callable[[int], Awaitable[Any]]) -> dict[str, float]:
        """What the calls of all coroutines took, each; every coroutine is told the same."""
        size = self._size
        for n in range(size.warm_up):
            await call(n)
        if await self._there.wait() == 0:
            self._began = self._now()
        await self._there.wait()
        for n in range(size.warm_up, size.warm_up + size.calls):
            await call(n)
        await self._there.wait()
        seconds, client, server_ = (now - began for now, began in zip(self._now(), self._began, strict=True))
        calls = size.coroutines * size.calls
        return {
            "calls/s": calls / seconds,
            "server CPU µs": server_ / calls * 1e6,
            "Python CPU µs": client / calls * 1e6,
        }

    def _now(self) -> tuple[float, float, float]:
        return time.monotonic(), time.process_time(), cpu_seconds(self._pid)


async def _by_hand(one: ServerProcess, size: Size) -> dict[str, float]:
    meter = Meter(one, size)
    async with redis.asyncio.Redis.from_url(one.tcp_url, max_connections=4 * size.coroutines) as client:

        async def coroutine(number: int) -> dict[str, float]:
            async def call(n: int) -> None:
                key = f"calls:{number}"
                await client.hset(key, f"{n}:begun", workload.dumps(_arguments(n)))
                await client.hset(key, f"{n}:ended", workload.dumps(RESULT))

            return await meter.around(call)

        found = await asyncio.gather(*[coroutine(number) for number in range(size.coroutines)])
    return found[0]


async def refund(order_id: str, amount: float, currency: str) -> dict[str, Any]:
    """The tool: it does nothing, so that only the record is measured."""
    del order_id, amount, currency
    return RESULT


def _arguments(number: int) -> dict[str, Any]:
    return workload.arguments(number)


async def _by_broker(one: ServerProcess, size: Size) -> dict[str, float]:
    meter, url = Meter(one, size), one.tcp_url
    found: list[dict[str, float]] = []

    async def agent(run: Run[Any]) -> None:
        async def call(n: int) -> None:
            if await run.call(refund, _arguments(n), call_id=workload.call_id(n)) != RESULT:
                raise ValueError("another result")

        found.append(await meter.around(call))

    worker = Worker(url, namespace=NAMESPACE, concurrency=size.coroutines)
    worker.add(AGENT, agent)
    async with AsyncBroker(url, namespace=NAMESPACE) as broker:
        serving = asyncio.create_task(worker.serve())
        told = [await broker.start(AGENT, session=f"session-{n}") for n in range(size.coroutines)]
        await asyncio.gather(*[broker.wait(one.run_id, 60) for one in told if one.run_id])
        entries = len(await broker.history("session-0"))
        worker.stop()
        await serving
    return found[0] | {"history entries": entries}
