"""`broker replay`: recorded runs through real workers and approvers, and what became of them."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self, TypeVar

from .. import AsyncBroker, HistoryEntry, InvalidInput, Principal, RunRecord, UnknownId
from ..core.ids import new_nonce
from ..embedded import down, ensure
from .crew import Crew
from .ledger import Recorder, lines, merge
from .player import AGENT, QUEUE
from .process import Part
from .report import Evidence, Report, Story, judge
from .transcripts import Rules, Transcript, read, read_rules

T = TypeVar("T")
S = TypeVar("S")

IDLE: Final = timedelta(minutes=1)
"""How long the server of a replay that was killed stays."""
MOST_PROCESSES: Final = 256
AT_ONCE: Final = 32
PAGE: Final = 1000
TELL_SECONDS: Final = 0.1
REMOVALS: Final = 50


@dataclass(frozen=True, slots=True)
class Options:
    """What to replay, and with whom. None for `confirm` and `long`: what the TOML file beside the runs says.

    Without a `url` the replay has a server of its own, gone afterwards. A namespace is new each time unless one is
    named; it should be the replay's alone. On a server given by URL it stays, to be looked at.
    """

    runs: Path
    workers: int = 3
    approvers: int = 2
    confirm: frozenset[str] | None = None
    long: frozenset[str] | None = None
    url: str | None = None
    namespace: str | None = None
    history: Path | None = None
    effects: Path | None = None
    timeout: float = 300.0
    concurrency: int = 8

    def __post_init__(self) -> None:
        for name, count in (("workers", self.workers), ("approvers", self.approvers)):
            if not 1 <= count <= MOST_PROCESSES:
                raise InvalidInput(name, "is out of range", f"1 to {MOST_PROCESSES}")

    def rules(self) -> Rules:
        """Which tools pause."""
        given = self.confirm, self.long
        beside = read_rules(self.runs) if None in given else Rules()
        return Rules(
            beside.confirm if self.confirm is None else self.confirm,
            beside.long if self.long is None else self.long,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay is: runs finished of all, questions open and runs ready now."""

    runs: int
    finished: int
    open: int
    ready: int
    seconds: float


Tell = Callable[[Progress], None]


class Replay:
    """One replay in its steps: `async with Replay(options) as one: await one.drive(); report = await one.report()`."""

    def __init__(self, options: Options, tell: Tell | None = None) -> None:
        self.options = options
        self.transcripts: list[Transcript] = list(read(options.runs).values())
        self.rules: Rules = options.rules()
        self.namespace: str = options.namespace or f"replay-{new_nonce()[:8]}"
        self.trouble: str | None = None
        self.run_ids: list[str] = []
        self._tell = tell
        self._finished = 0
        self._began = self._ended = 0.0
        self._stack = AsyncExitStack()
        self._token = new_nonce()

    async def __aenter__(self) -> Self:
        async with self._stack as stack:
            self.folder: Path = Path(tempfile.mkdtemp(prefix="broker-replay-"))
            stack.push_async_callback(_remove, self.folder)
            self.effects: Path = self.options.effects or self.folder / "effects"
            self.answers: Path = self.folder / "answers"
            self._calls = self.folder / "replay.calls" if self.options.history else None
            _empty(self.options.effects, self.options.history)
            self.url: str = self.options.url or await self._own_server(stack)
            self.broker: AsyncBroker = await stack.enter_async_context(
                AsyncBroker(
                    self.url, namespace=self.namespace, by=Principal.local("replay"),
                    observer=Recorder(self._calls) if self._calls else None,
                )
            )  # fmt: skip
            self.crew: Crew = Crew(self._model(), self.folder, records_calls=self._calls is not None)
            stack.push_async_callback(self.crew.stop)
            await self.crew.start(self.options.workers, self.options.approvers)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _own_server(self, stack: AsyncExitStack) -> str:
        home = self.folder / "server"
        stack.push_async_callback(asyncio.to_thread, down, home)
        return (await asyncio.to_thread(ensure, home, idle=IDLE)).url

    def _model(self) -> Part:
        return Part(
            role="", name="", url=self.url, namespace=self.namespace, runs=str(self.options.runs),
            confirm=tuple(self.rules.confirm), long=tuple(self.rules.long), concurrency=self.options.concurrency,
            effects=str(self.effects), answers=str(self.answers), history=None,
        )  # fmt: skip

    # Driving ---------------------------------------------------------------------------------------------------

    async def drive(self) -> None:
        """Starts every run and waits for all, until the time is over, or nobody is left to go on with them."""
        self._began = monotonic()
        self.run_ids = await _spread(self._start, (one.run_id for one in self.transcripts))
        waiting = [asyncio.create_task(self._wait(run_id)) for run_id in self.run_ids]
        useless = asyncio.create_task(self.crew.until_useless())
        shown = asyncio.create_task(self._show())
        done = asyncio.gather(*waiting)
        try:
            left = self.options.timeout - (monotonic() - self._began)
            ends: list[asyncio.Future[Any]] = [done, useless]
            await asyncio.wait(ends, timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                late = f"not through after {self.options.timeout:g} s"
                self.trouble = useless.result() if useless.done() else late
            else:
                done.result()
        finally:
            self._ended = monotonic()
            for task in (*waiting, useless, shown):
                task.cancel()
            await asyncio.gather(done, useless, shown, return_exceptions=True)

    async def _start(self, run_id: str) -> str:
        started = await self.broker.start(
            AGENT, {"run": run_id}, session=run_id, key=f"{run_id}/{self._token}"[-256:], queue=QUEUE
        )
        return started.run_id or ""

    async def _wait(self, run_id: str) -> None:
        await self.broker.wait(run_id)
        self._finished += 1

    async def _show(self) -> None:
        while self._tell is not None:
            fleet = await self.broker.fleet()
            ready = sum(pool.ready for pool in fleet.pools)
            self._tell(
                Progress(len(self.transcripts), self._finished, fleet.open, ready, monotonic() - self._began)
            )
            await asyncio.sleep(TELL_SECONDS)

    # Judging ---------------------------------------------------------------------------------------------------

    async def report(self) -> Report:
        """What it came to by now: from the server, and from what the processes have written."""
        records = await _spread(self._record, self.run_ids)
        stories = await _spread(self._story, range(len(self.run_ids)))
        return judge(
            Evidence(
                transcripts=self.transcripts, records=records, stories=stories, effects=lines(self.effects),
                answers=lines(self.answers), wall_s=self._ended - self._began,
            )
        )  # fmt: skip

    async def _record(self, run_id: str) -> RunRecord | None:
        with suppress(UnknownId):
            return await self.broker.runs.get(run_id)
        return None

    async def _story(self, place: int) -> Story:
        """One run's part of its session's history."""
        entries: list[HistoryEntry] = []
        while True:
            page = await self.broker.history(self.transcripts[place].run_id, start=len(entries), limit=PAGE)
            entries += page
            if len(page) < PAGE:
                return Story.of(one for one in entries if one.run_id == self.run_ids[place])

    async def write_history(self) -> None:
        """Stops the processes, then writes what each of them, and this one, has asked of the broker."""
        await self.crew.stop()
        if self.options.history is not None and self._calls is not None:
            merge([("replay", self._calls), *self.crew.recorded()], self.options.history)


async def _spread(work: Callable[[S], Awaitable[T]], over: Iterable[S]) -> list[T]:
    """The results of some work on each, some of it at once, in order."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(item: S) -> T:
        async with free:
            return await work(item)

    return list(await asyncio.gather(*(one(item) for item in over)))


async def _remove(folder: Path) -> None:
    """Removes a folder. The watchdog of a server that has just been stopped may still make a lock file in it."""
    for _ in range(REMOVALS):
        if _removed(folder):
            return
        await asyncio.sleep(TELL_SECONDS)


def _removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _empty(*paths: Path | None) -> None:
    """Empties the files that are written anew, and finds out now whether they can be."""
    for path in paths:
        try:
            if path is not None:
                path.write_bytes(b"")
        except OSError as error:
            raise InvalidInput(str(path), f"cannot be written ({error.strerror})", "a file") from None


async def run(options: Options, tell: Tell | None = None) -> tuple[Report, str | None]:
    """The report of a whole replay, and what went wrong where it did not get through."""
    async with Replay(options, tell) as one:
        await one.drive()
        report = await one.report()
        await one.write_history()
        return report, one.trouble


def replay(options: Options, tell: Tell | None = None) -> tuple[Report, str | None]:
    """As `run`, blocking: for the command line."""
    return asyncio.run(run(options, tell))


__all__ = ["Options", "Progress", "Replay", "replay", "run"]
