"""`wake_10k_p99`: how late one of ten thousand waiters of one process is woken, beside one of ten, 99th percentile.

A process waits for the ends of so many questions at a time, a task for each; another one answers 200 a second. A task
that was woken waits for the next question, so that there are always so many, and what is answered is waited for. The
time is from just before an answer is sent until the task that waits for it goes on, in the other process. It begins
when a few answers in a row, one after the other, have been heard of soon: all have begun to wait then, and rest.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Final

from benchmarks.board import Board
from benchmarks.harness import START_SECONDS, Player, board_of, player, server
from benchmarks.job import Job, Plan, told, until_over
from benchmarks.series import ratio
from benchmarks.stats import percentile, ratios
from benchmarks.variants.broker_calls import AGENT, NAMESPACE, question, session
from broker import Approve, AsyncBroker, Principal, Resolution, Suspension
from broker.testing import ServerProcess, await_until, wait_until

from .how import Found, How, summaries

NAME: Final = "wake_10k_p99"
RATE: Final = 200.0
AT_ONCE: Final = 500
END_SECONDS: Final = 30.0
WARM_UP: Final = 200
"""Answers at most that do not count."""
SOON_MS: Final = 50.0
IN_A_ROW: Final = 10
"""So many are woken that soon, one after the other, before it begins."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many wait at a time, and how many answers there are."""

    waiters: int
    answers: int


def run(how: How) -> Found:
    """Rounds of both sizes, one after the other."""
    answers = how.size(1000, 8)
    sizes = {
        "10 waiters": Size(how.size(10, 2), answers),
        "10,000 waiters": Size(how.size(10_000, 30), answers),
    }
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in sizes}
    for number in range(how.rounds):
        for name in list(sizes)[:: 1 if number % 2 else -1]:
            found = _one(sizes[name])
            rounds[name].append(found)
            how.say(
                f"  round {number + 1}: {name}: p50 {found['p50 ms']:.1f} ms, p99 {found['p99 ms']:.1f} ms"
            )
    few, many = rounds.values()
    against = ratio(ratios([one["p99 ms"] for one in many], [one["p99 ms"] for one in few]), "10 waiters")
    missing = int(sum(one["missing"] for found in rounds.values() for one in found))
    return Found({NAME: against}, details={NAME: summaries(rounds)}, missing=missing)


def _one(size: Size) -> dict[str, float]:
    count = size.waiters + WARM_UP + size.answers
    with server() as one, board_of(Plan(count, warm_up=0)) as board:
        ids = asyncio.run(_ask(one.tcp_url, count))
        waiting = player("wait", waits, one.tcp_url, str(board.path), ids, size.waiters)
        try:
            waiting.wait_ready()
            wait_until(
                lambda: _subscribed(one) >= size.waiters, START_SECONDS, what="all of them are waiting"
            )
            measured = asyncio.run(_answer_all(one.tcp_url, ids, board, size.answers))
            missing = _missing(board, measured, waiting)
        finally:
            board.stop()
            waiting.end()
        late = [_late_ms(board, n) for n in measured if board.resumed(n)]
    if not late:
        raise RuntimeError("no waiter was woken")
    return {"p50 ms": percentile(late, 0.5), "p99 ms": percentile(late, 0.99), "missing": missing}


def _late_ms(board: Board, number: int) -> float:
    return (board.resumed_at[number] - board.answered_at[number]) / 1e6


def _missing(board: Board, measured: range, waiting: Player) -> int:
    """How many are not woken, when all are or the time is over."""

    def woken() -> bool:
        waiting.check()
        return board.finished >= measured.stop

    with contextlib.suppress(TimeoutError):
        wait_until(woken, END_SECONDS)
    return sum(not board.resumed(n) for n in measured)


def _subscribed(one: ServerProcess) -> int:
    reply = one.call("PUBSUB", "CHANNELS")
    return len(reply) if isinstance(reply, list) else 0


async def _ask(url: str, count: int) -> list[str]:
    async with AsyncBroker(url, namespace=NAMESPACE, by=Principal.local("agent")) as broker:
        ids: list[str] = []
        for first in range(0, count, AT_ONCE):
            some = range(first, min(first + AT_ONCE, count))
            told = await broker.batch.suspend(
                [Suspension(agent=AGENT, session=session(n), interrupts=[question(n)]) for n in some]
            )
            ids += [one for outcome in told for one in outcome.interrupt_ids]  # type: ignore[union-attr]
    return ids


async def _answer_all(url: str, ids: list[str], board: Board, answers: int) -> range:
    """Sends the answers at their rate, whether those before have come back or not, and says which they were."""
    async with AsyncBroker(url, namespace=NAMESPACE, by=Principal.local("alice")) as broker:

        async def say(number: int) -> None:
            board.answered_at[number] = time.monotonic_ns()
            if not (outcome := await broker.inbox.answer(ids[number], Approve())).ok:
                raise RuntimeError(f"{ids[number]}: {outcome.code}")

        first = in_a_row = 0
        while first < WARM_UP and in_a_row < IN_A_ROW:
            await say(first)
            await await_until(partial(board.resumed, first), START_SECONDS, what="a waiter is woken")
            in_a_row = in_a_row + 1 if _late_ms(board, first) < SOON_MS else 0
            first += 1
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for n in range(answers):
                await asyncio.sleep(max(0.0, began + n / RATE - time.monotonic()))
                group.create_task(say(first + n))
        return range(first, first + answers)


def waits(url: str, path: str, ids: list[str], waiters: int, pipe: Connection) -> None:
    """The process of the waiters."""
    job = Job(url, path, Plan(len(ids), warm_up=0), pipe)

    async def main() -> None:
        async with AsyncBroker(url, namespace=NAMESPACE) as broker:
            left = iter(range(len(ids)))
            tasks = [asyncio.create_task(wait(broker, left)) for _ in range(waiters)]
            job.ready()
            await until_over(job, asyncio.gather(*tasks))

    async def wait(broker: AsyncBroker, left: Iterator[int]) -> None:
        for number in left:
            ended = await broker.wait(ids[number])
            job.resumed(number)
            if not isinstance(ended, Resolution) or ended.kind != "approve":
                raise TypeError("another end than the answer")
            job.finished()

    with told(pipe):
        asyncio.run(main())
