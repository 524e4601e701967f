"""What a process of a trial sees: its part, where the server is, when to begin, and where to note what happened."""

import asyncio
import importlib
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Protocol, cast

from .board import Board

ROLES: Final = ("pause", "approve", "resume")
"""The three processes, in the order of a lifecycle."""

_LOOK_SECONDS: Final = 0.005
_STOP_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class Plan:
    """How a trial goes. The same for every variant of a round."""

    count: int
    """Lifecycles that are measured."""
    warm_up: int = 200
    """Lifecycles before them."""
    rate: float = 0.0
    """Pauses a second; 0: as fast as the loop is closed."""
    window: int = 1024
    """Lifecycles that may be under way at once: the loop is closed, a new one begins when an old one is finished."""
    batch: int = 256
    """Lifecycles in one round trip, for the variant that batches."""
    concurrency: int = 64
    """Coroutines in flight, for those that do not."""
    pairs: int = 1
    """Processes of each role."""
    resumers: int = 1
    """Processes that resume, where they are more than that."""
    workers: int = 1
    """Workers in each process that resumes, for the variant that has workers."""
    appendfsync: str = "everysec"
    """When the server syncs its log to the disk."""
    mark: str = ""
    """Tells the lifecycles of several trials on one server from each other."""
    seconds: float = 30.0
    """How long the warm-up may take, and then the rest; what is not resumed by then counts as missing."""

    def processes(self, role: str) -> int:
        """How many processes have this part."""
        return max(self.pairs, self.resumers) if role == "resume" else self.pairs


class Variant(Protocol):
    """A module that does a lifecycle in one way. Each part runs in a process of its own."""

    def prepare(self, url: str) -> None:
        """What the server must hold before the processes start."""

    def pause(self, job: "Job") -> None:
        """Pauses runs."""

    def approve(self, job: "Job") -> None:
        """Learns of them and approves."""

    def resume(self, job: "Job") -> None:
        """Goes on with them, each exactly once, and finishes."""

    def facts(self, url: str, count: int, mark: str = "") -> dict[str, float]:
        """What can be read from the server afterwards."""


VARIANTS: Final = {
    "redis-syncb": "benchmarks.variants.redis_syncb",
    "redis-aio": "benchmarks.variants.redis_aio",
    "redis-sync1": "benchmarks.variants.redis_sync1",
    "broker": "benchmarks.variants.broker_calls",
    "broker-batch": "benchmarks.variants.broker_batch",
    "broker-sync": "benchmarks.variants.broker_sync",
}


def load(name: str) -> Variant:
    """A variant by its name. What follows a colon says how its plan differs: `broker:256`."""
    return cast("Variant", importlib.import_module(VARIANTS[name.partition(":")[0]]))


class Job:
    """One process's part in one trial."""

    def __init__(self, url: str, path: str, plan: Plan, pipe: Connection, place: int = 0) -> None:
        self.url = url
        self.place = place
        self.plan = plan
        self._pipe = pipe
        self._board = Board(Path(path), plan.warm_up + plan.count)
        self._ends = time.monotonic() + 3 * plan.seconds  # should the driver die

    def ready(self) -> None:
        """Say that this process is connected and waits."""
        self._pipe.send("ready")

    @property
    def over(self) -> bool:
        """Whether to stop: the driver says so, or the time is over."""
        return self._board.stopped or time.monotonic() > self._ends

    async def until_over(self) -> None:
        """Return when it is over."""
        while not self.over:  # noqa: ASYNC110 - the word comes from another process
            await asyncio.sleep(_STOP_SECONDS)

    # Beginning -------------------------------------------------------------------------------------------------

    def turns(self) -> Iterator[range]:
        """Numbers of lifecycles to begin now, a batch at a time; at a rate, one at a time."""
        for turn, pause in self._turns(self.plan.batch):
            if pause:
                time.sleep(pause)
            else:
                yield turn

    async def single_turns(self) -> AsyncIterator[int]:
        """The same, one number at a time, for a loop that must not be blocked."""
        for turn, pause in self._turns(1):
            if pause:
                await asyncio.sleep(pause)
            else:
                yield turn.start

    def _turns(self, batch: int) -> Iterator[tuple[range, float]]:
        """Turns, each with no pause before it, and between them the pauses to make. Pauses come with no turn."""
        plan, board, start, due, pairs = self.plan, self._board, 0, 0.0, self.plan.pairs
        while start < board.count and not self.over:
            size = min((1 if plan.rate else batch) * pairs, max(board.allowed - start, 1))
            if start + size > board.allowed or start + size - board.finished > plan.window:
                yield range(0), _LOOK_SECONDS
                continue
            if start == plan.warm_up and self.place == 0:
                board.began_at = time.monotonic_ns()
            if plan.rate:
                due = max(due, time.monotonic() - pairs / plan.rate) if due else time.monotonic()
                if (early := due - time.monotonic()) > 0:
                    yield range(0), early
                due += pairs / plan.rate
            # Every process of the role walks the same steps and takes its share of each.
            if mine := range(start + (self.place - start) % pairs, start + size, pairs):
                yield mine, 0.0
            start += size

    # Noting ----------------------------------------------------------------------------------------------------

    def answering(self, number: int) -> None:
        """Note that the answer of a lifecycle is sent now."""
        self._board.answered_at[number] = time.monotonic_ns()

    def resumed(self, number: int) -> None:
        """Note that a lifecycle goes on now, at the place where the agent's code would run again."""
        self._board.resumed_at[number] = time.monotonic_ns()
        self._board.add_resumed(number, self.place)

    def finished(self, more: int = 1) -> None:
        """Note that so many more lifecycles are finished."""
        self._board.add_finished(more, self.place)


async def pump(job: Job, begin: Callable[[int], Awaitable[Any]]) -> None:
    """Runs `begin` for every turn, so many at once as the plan says. Raises what one of them raised."""
    free = asyncio.Semaphore(job.plan.concurrency)

    async def one(number: int) -> None:
        try:
            await begin(number)
        finally:
            free.release()

    async with asyncio.TaskGroup() as group:
        async for number in job.single_turns():
            await free.acquire()
            group.create_task(one(number))


async def until_over(job: Job, *work: Awaitable[Any]) -> None:
    """Does some work that never ends until the trial is over. Raises what it raises before that."""
    tasks = [asyncio.ensure_future(each) for each in work]
    over = asyncio.ensure_future(job.until_over())
    await asyncio.wait([over, *tasks], return_when=asyncio.FIRST_COMPLETED)
    failed = [task for task in tasks if task.done()]
    for task in (over, *tasks):
        task.cancel()
    await asyncio.gather(over, *tasks, return_exceptions=True)
    for task in failed:
        task.result()


def play(name: str, role: str, url: str, path: str, plan: Plan, pipe: Connection, place: int = 0) -> None:
    """The whole life of a process of a trial. The last thing it says is what went wrong, or nothing."""
    with told(pipe):
        job = Job(url, path, plan, pipe, place)
        getattr(load(name), role)(job)
        asyncio.run(job.until_over())  # a process that has ended has no clock to read


@contextmanager
def told(pipe: Connection) -> Iterator[None]:
    """Says at the end of a process's work what went wrong, or nothing."""
    try:
        yield
    except Exception:  # noqa: BLE001 - whatever it is, the driver is told
        pipe.send(traceback.format_exc())
    else:
        pipe.send("")
