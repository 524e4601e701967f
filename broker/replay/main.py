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

from .. import (
    AsyncBroker,
    BrokerError,
    HistoryEntry,
    InvalidInput,
    Principal,
    RunRecord,
    Unavailable,
    UnknownId,
)
from ..core.ids import new_nonce
from ..embedded import down
from .crew import Crew
from .ledger import Recorder, lines, merge
from .merging import merge_turns
from .mischief import Mischief, OwnServer
from .options import Options
from .patience import patiently
from .player import AGENT, QUEUE
from .process import Part
from .report import Evidence, Report, Story, judge
from .transcripts import Rules, Transcript, read

T = TypeVar("T")
S = TypeVar("S")

IDLE: Final = timedelta(minutes=1)
"""How long the server of a replay that was killed stays."""
AT_ONCE: Final = 32
PAGE: Final = 1000
TELL_SECONDS: Final = 0.1
REMOVALS: Final = 50


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay is: runs finished of all, questions open and runs ready now."""

    runs: int
    finished: int
    open: int
    ready: int
    seconds: float


Tell = Callable[[Progress], None]
Ends = asyncio.Task[Any]


class Replay:
    """One replay in its steps: `async with Replay(options) as one: await one.drive(); report = await one.report()`."""

    def __init__(self, options: Options, tell: Tell | None = None) -> None:
        self.options = options
        self.transcripts: list[Transcript] = [
            merge_turns(one, options.merge_turns) for one in read(options.runs).values()
        ]
        self.rules: Rules = options.rules()
        self.namespace: str = options.namespace or f"replay-{new_nonce()[:8]}"
        self.trouble: str | None = None
        self.run_ids: list[str] = [""] * len(self.transcripts)
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
            self.recorded: Path = self.folder / "recorded"
            self._calls = self.folder / "replay.calls" if self.options.history else None
            _empty(self.options.effects, self.options.history)
            self.server: OwnServer | None = None if self.options.url else await self._own_server(stack)
            self.url: str = self.server.now.url if self.server else self.options.url or ""
            self.broker: AsyncBroker = await stack.enter_async_context(
                AsyncBroker(
                    self.url, namespace=self.namespace, by=Principal.local("replay"), settings=self.options.settings,
                    observer=Recorder(self._calls) if self._calls else None,
                )
            )  # fmt: skip
            self.crew: Crew = Crew(self._model(), self.folder, records_calls=self._calls is not None)
            stack.push_async_callback(self.crew.stop)
            self.mischief: Mischief = Mischief(self.options, self.crew, self.server)
            await self.crew.start(self.options.workers, self.options.approvers)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _own_server(self, stack: AsyncExitStack) -> OwnServer:
        home = self.folder / "server"
        stack.push_async_callback(asyncio.to_thread, down, home)
        return await OwnServer.start(home, IDLE)

    def _model(self) -> Part:
        return Part(
            role="", name="", url=self.url, namespace=self.namespace, runs=str(self.options.runs),
            confirm=tuple(self.rules.confirm), long=tuple(self.rules.long), concurrency=self.options.concurrency,
            effects=str(self.effects), answers=str(self.answers), recorded=str(self.recorded),
            history=None, merge_turns=self.options.merge_turns, pace=self.options.thinking,
            is_rough=self.options.is_rough,
        )  # fmt: skip

    # Driving ---------------------------------------------------------------------------------------------------

    async def drive(self) -> None:
        """Starts every run and waits for all, until the time is over, or nobody is left to go on with them."""
        self._began = monotonic()
        rough = asyncio.create_task(self.mischief.run())
        useless = asyncio.create_task(self.crew.until_useless())
        shown = asyncio.create_task(self._show())
        through = asyncio.create_task(self._all())
        try:
            ends = {through, useless, rough}
            await asyncio.wait(ends, timeout=self.options.timeout, return_when=asyncio.FIRST_COMPLETED)
            self.trouble = self._trouble(through, useless, rough)
        finally:
            self._ended = monotonic()
            for task in (through, useless, shown):
                task.cancel()
            self.mischief.stop()
            await asyncio.gather(through, useless, shown, rough, return_exceptions=True)

    def _trouble(self, through: Ends, useless: Ends, rough: Ends) -> str | None:
        """Why the runs are not through; raises what was no trouble of theirs."""
        if through.done():
            through.result()
            return None
        if useless.done():
            return str(useless.result())
        if rough.done() and isinstance(fault := rough.exception(), BrokerError):
            return str(fault)
        if rough.done():
            rough.result()
        return f"not through after {self.options.timeout:g} s"

    async def _all(self) -> None:
        await _spread(self._start, range(len(self.transcripts)))
        await asyncio.gather(*(self._wait(run_id) for run_id in self.run_ids))

    async def _start(self, place: int) -> None:
        run_id = self.transcripts[place].run_id
        key = f"{run_id}/{self._token}"[-256:]
        started = await patiently(
            lambda: self.broker.start(AGENT, {"run": run_id}, session=run_id, key=key, queue=QUEUE)
        )
        self.run_ids[place] = started.run_id or ""

    async def _wait(self, run_id: str) -> None:
        await patiently(lambda: self.broker.wait(run_id))
        self._finished += 1

    async def _show(self) -> None:
        while self._tell is not None:
            with suppress(Unavailable):
                fleet = await self.broker.fleet()
                ready, passed = sum(pool.ready for pool in fleet.pools), monotonic() - self._began
                self._tell(Progress(len(self.transcripts), self._finished, fleet.open, ready, passed))
            await asyncio.sleep(TELL_SECONDS)

    # Judging ---------------------------------------------------------------------------------------------------

    async def report(self) -> Report:
        """What it came to by now: from the server, and from what the processes have written."""
        records = await _spread(self._record, self.run_ids)
        stories = await _spread(self._story, range(len(self.run_ids)))
        return judge(
            Evidence(
                transcripts=self.transcripts, records=records, stories=stories, effects=lines(self.effects),
                recorded=lines(self.recorded), answers=lines(self.answers), killed=tuple(self.mischief.killed),
                restarts=self.mischief.restarts,
                settings=self.broker._link.settings,  # noqa: SLF001 - the same house
                wall_s=self._ended - self._began,
            ),
            self.options,
        )  # fmt: skip

    async def _record(self, run_id: str) -> RunRecord | None:
        with suppress(UnknownId):
            return await self.broker.runs.get(run_id) if run_id else None
        return None

    async def _story(self, place: int) -> Story:
        """One run's part of its session's history."""
        entries: list[HistoryEntry] = []
        while self.run_ids[place]:
            page = await self.broker.history(self.transcripts[place].run_id, start=len(entries), limit=PAGE)
            entries += page
            if len(page) < PAGE:
                break
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
