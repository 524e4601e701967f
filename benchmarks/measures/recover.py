"""`recover`: a worker is killed (SIGKILL); how long until its runs go on in another one, beside the default lease.

A lease is renewed every quarter of it, so at a crash three quarters to all of it are left. What comes on top is the
broker's: the sweeper's period, the bell, the lease of the other worker.
"""

import asyncio
import contextlib
import time
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from benchmarks.board import Board
from benchmarks.harness import START_SECONDS, board_of, player, server
from benchmarks.job import Plan, told
from benchmarks.series import ratio, value
from benchmarks.stats import percentile
from benchmarks.variants.broker_calls import AGENT, NAMESPACE, number_of, session
from broker import AsyncBroker, Run, Settings, Worker
from broker.testing import await_until, wait_until

from .how import Found, How, summaries

NAME: Final = "recover"
RUNS: Final = 32
PATIENCE_SECONDS: Final = 15.0
QUICK: Final = Settings(lease=timedelta(seconds=1), sweep_every=timedelta(milliseconds=100))
"""For the tiny size only: nobody waits for a real lease."""


def run(how: How) -> Found:
    """Seconds from the kill until a handler is entered again, of every run that the dead one held."""
    settings, runs = (QUICK, 4) if how.tiny else (Settings(), RUNS)
    lease = settings.lease.total_seconds()
    found: list[dict[str, float]] = []
    for number in range(how.rounds):
        found.append(_one(settings, runs))
        how.say(f"  round {number + 1}: recover: p99 {found[-1]['p99 s']:.1f} s, lease {lease:g} s")
    measures = {
        NAME: ratio([one["p99 s"] / lease for one in found], f"a lease of {lease:g} s"),
        f"{NAME}_p99": value([one["p99 s"] for one in found], "seconds"),
    }
    missing, doubled = (int(sum(one[word] for one in found)) for word in ("missing", "doubled"))
    return Found(measures, details={NAME: summaries({"broker": found})}, missing=missing, doubled=doubled)


def _one(settings: Settings, runs: int) -> dict[str, float]:
    with server() as one, board_of(Plan(runs, warm_up=0)) as board:
        given = (one.tcp_url, str(board.path), settings, runs)
        first = player("die", serves, *given, "first")
        second = None
        try:
            first.wait_ready()
            ids = asyncio.run(_start(one.tcp_url, settings, runs))
            wait_until(lambda: all(board.answered_at), START_SECONDS, what="the first worker has all runs")
            second = player("take over", serves, *given, "second")
            second.wait_ready()
            killed = time.monotonic_ns()
            first.process.kill()
            patience = 4 * settings.lease.total_seconds() + PATIENCE_SECONDS
            with contextlib.suppress(TimeoutError):
                wait_until(lambda: all(board.resumed(n) for n in range(runs)), patience)
            entries = asyncio.run(_closed(one.tcp_url, ids))
        finally:
            board.stop()
            for each in filter(None, (first, second)):
                each.end()
        late = [(board.resumed_at[n] - killed) / 1e9 for n in range(runs) if board.resumed(n)]
        times = [board.resumed(n) for n in range(runs)]
    return {
        "p50 s": percentile(late, 0.5),
        "p99 s": percentile(late, 0.99),
        "history entries": entries,
        "missing": times.count(0),
        "doubled": sum(n > 1 for n in times),
    }


async def _start(url: str, settings: Settings, runs: int) -> list[str]:
    async with AsyncBroker(url, namespace=NAMESPACE, settings=settings) as broker:
        told = [await broker.start(AGENT, session=session(number)) for number in range(runs)]
        return [one.run_id for one in told if one.run_id]


async def _closed(url: str, ids: list[str]) -> float:
    """History entries of a run, when all are closed or the time is over."""
    async with AsyncBroker(url, namespace=NAMESPACE) as broker:
        await asyncio.gather(*[broker.wait(one, START_SECONDS) for one in ids], return_exceptions=True)
        return sum([len(await broker.history(session(n))) for n in range(len(ids))]) / len(ids)


def serves(url: str, path: str, settings: Settings, runs: int, which: str, pipe: Connection) -> None:
    """A worker's process: the first one begins runs and never ends them, the second one ends them."""
    board = Board(Path(path), runs)

    async def agent(run: Run[Any]) -> None:
        number = number_of(run.session_id)
        if which == "first":
            board.answered_at[number] = time.monotonic_ns()
            await asyncio.Event().wait()
        board.resumed_at[number] = time.monotonic_ns()
        board.add_resumed(number)

    async def main() -> None:
        worker = Worker(url, namespace=NAMESPACE, settings=settings, name=which, concurrency=max(runs, 1))
        worker.add(AGENT, agent)
        serving = asyncio.create_task(worker.serve())
        async with AsyncBroker(url, namespace=NAMESPACE, settings=settings) as broker:

            async def there() -> bool:
                return which in [one.name for one in (await broker.fleet()).workers]

            await await_until(there, START_SECONDS, what="the worker is there")
        pipe.send("ready")
        while not board.stopped and not serving.done():  # noqa: ASYNC110 - the word comes from another process
            await asyncio.sleep(0.02)
        worker.stop()
        await serving

    with told(pipe):
        asyncio.run(main())
