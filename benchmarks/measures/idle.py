"""`idle_worker`: what a worker with nothing to do asks of its server: commands a second, and connections."""

import asyncio
import time
from multiprocessing.connection import Connection
from typing import Any, Final

from benchmarks.harness import player, server
from benchmarks.machine import cpu_seconds
from benchmarks.micro.scripts import GREETINGS, Watcher
from benchmarks.series import value
from benchmarks.variants.broker_calls import AGENT, NAMESPACE
from broker import AsyncBroker, Run, Worker
from broker.testing import ServerProcess, await_until

from .how import Found, How, summaries

NAME: Final = "idle_worker"
SECONDS: Final = 15.0
OURS: Final = ("cmd=monitor", "cmd=client|list")
"""What the connections of the measurement do."""
NOT_ITS: Final = GREETINGS - {"ping"}
"""What only new connections say: those of the measurement."""


def run(how: How) -> Found:
    """One worker with its sweeper, default settings."""
    seconds = 2.0 if how.tiny else SECONDS
    how.say(f"{NAME}: {how.rounds} x {seconds:g} s")
    found = [_one(seconds) for _ in range(how.rounds)]
    measures = {
        f"{NAME}_commands": value([one["commands/s"] for one in found], "commands a second"),
        f"{NAME}_connections": value([one["connections"] for one in found], "connections"),
    }
    return Found(measures, details={NAME: summaries({"broker": found})})


def _one(seconds: float) -> dict[str, float]:
    with server() as one:
        worker = player("idle", idles, one.tcp_url)
        try:
            worker.wait_ready()
            return _watched(one, worker.process.pid or 0, seconds)
        finally:
            worker.process.terminate()
            worker.end()


def _watched(one: ServerProcess, pid: int, seconds: float) -> dict[str, float]:
    watcher = Watcher(one.tcp_url)
    clocks = cpu_seconds(pid), cpu_seconds(one.pid)
    with watcher.around(NAME, 1):
        time.sleep(seconds)
        connections = _connections(one)
    seen = watcher.seen[NAME]
    watcher.close()
    sent = sum(times for word, times in seen.outside.items() if word not in NOT_ITS)
    return {
        "commands/s": sent / seconds,
        "connections": connections,
        "in scripts/s": sum(seen.inside.values()) / seconds,
        "Python CPU ms/s": (cpu_seconds(pid) - clocks[0]) / seconds * 1e3,
        "server CPU ms/s": (cpu_seconds(one.pid) - clocks[1]) / seconds * 1e3,
    }


def _connections(one: ServerProcess) -> int:
    reply = one.call("CLIENT", "LIST")
    text = reply.decode() if isinstance(reply, bytes) else str(reply)
    return sum(not any(word in line for word in OURS) for line in text.splitlines() if line)


def idles(url: str, pipe: Connection) -> None:
    """The worker's process: ready when it has said that it is there; ends by SIGTERM."""

    async def agent(_: Run[Any]) -> None:
        raise RuntimeError("nobody starts a run")

    async def say_ready() -> None:
        async with AsyncBroker(url, namespace=NAMESPACE) as broker:

            async def there() -> bool:
                return bool((await broker.fleet()).workers)

            await await_until(there, 30, what="the worker is there")
        pipe.send("ready")

    async def main() -> None:
        worker = Worker(url, namespace=NAMESPACE)
        worker.add(AGENT, agent)
        saying = asyncio.create_task(say_ready())
        await asyncio.gather(worker.serve(), saying)

    asyncio.run(main())
