"""The stage of the demo: a server, three worker processes, the people who answer, and one worker that gets killed."""

import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Self

from ... import AsyncBroker, HistoryEntry, RunState
from ...core.ids import new_nonce
from ...embedded import down, ensure
from ...errors import BrokerError
from .desk import AGENT, QUEUE, Message, cases
from .people import ANA, Notes, answer_all
from .story import Counts, Event, Line, follow, judge

WORKERS = 3
IDLE = timedelta(minutes=1)
"""How long the server of a demo that was killed stays."""
READY_SECONDS = 30.0
LONGEST_SECONDS = 60.0
STOP_SECONDS = 5.0
LOOK_SECONDS = 0.1
REMOVALS = 30
KILL_AFTER = 0.25
"""One worker is killed, at work, when this part of the runs has finished."""

Tell = Callable[["Stage"], None]


class DemoFailed(BrokerError):
    """The demo could not be shown."""


class Stage:
    """One demo: `async with Stage(...) as stage: await stage.play(tell)`. Without a `url` it has its own server."""

    def __init__(self, url: str | None, namespace: str | None, pace: float) -> None:
        self.namespace: str = namespace or f"demo-{new_nonce()[:6]}"
        self.scripts: dict[str, list[Message]] = cases()
        self.lines: list[Line] = [Line(name.replace("-", " ")) for name in self.scripts]
        self.events: list[Event] = []
        self.killed: str | None = None
        self.server: str = "the one given"
        self._url = url
        self._pace = pace
        self._notes = Notes()
        self._runs: list[str] = []
        self._crew: dict[str, asyncio.subprocess.Process] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with self._stack as stack:
            self.folder: Path = Path(tempfile.mkdtemp(prefix="broker-demo-"))
            stack.push_async_callback(asyncio.to_thread, _remove, self.folder)
            url = self._url or await self._own_server(stack)
            self.broker: AsyncBroker = AsyncBroker(url, namespace=self.namespace, by=ANA)
            await stack.enter_async_context(self.broker)
            stack.push_async_callback(self._stop)
            await asyncio.gather(*(self._launch(f"worker-{n}", url) for n in range(1, WORKERS + 1)))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _own_server(self, stack: AsyncExitStack) -> str:
        home = self.folder / "server"
        stack.push_async_callback(asyncio.to_thread, down, home)
        found = await asyncio.to_thread(ensure, home, idle=IDLE)
        self.server = f"{found.family} {found.version}, for this demo only"
        return found.url

    # Processes -------------------------------------------------------------------------------------------------

    async def _launch(self, name: str, url: str) -> None:
        pipe = asyncio.subprocess.PIPE
        with (self.folder / f"{name}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", f"{__package__}.worker", stdin=pipe, stdout=pipe, stderr=log
            )
        self._crew[name] = process
        part = {"url": url, "namespace": self.namespace, "name": name, "pace": self._pace}
        given, said = process.stdin, process.stdout
        if given is None or said is None:
            raise DemoFailed(f"{name} has no pipe.")
        with suppress(OSError, TimeoutError):
            given.write(json.dumps(part).encode() + b"\n")
            await given.drain()
            async with asyncio.timeout(READY_SECONDS):
                if await said.readline() == b"ready\n":
                    return
        raise DemoFailed(f"{name} did not start: {self._last_words(name)}")

    def _last_words(self, name: str) -> str:
        said = (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line for line in reversed(said) if line.strip()), "it says nothing")

    async def _stop(self) -> None:
        await asyncio.gather(*map(self._end, self._crew.values()))

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is not None:
            process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    # The play --------------------------------------------------------------------------------------------------

    async def play(self, tell: Tell) -> Counts:
        """Starts every case, and looks on until all have ended; `tell` is called whenever something was looked at."""
        began = monotonic()
        answering = asyncio.create_task(answer_all(self.broker, self._notes, self._pace))
        try:
            for name in self.scripts:
                started = await self.broker.start(AGENT, {"case": name}, session=name, queue=QUEUE)
                self._runs.append(started.run_id or "")
            while not await self._look(tell) and monotonic() - began < LONGEST_SECONDS:
                if answering.done():
                    answering.result()
                await asyncio.sleep(LOOK_SECONDS)
            histories = await asyncio.gather(*map(self._history, self.scripts, self._runs))
            records = await asyncio.gather(*map(self.broker.runs.get, self._runs))
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
        return judge(
            histories, records, list(self.scripts.values()), int(self.killed is not None), monotonic() - began
        )

    async def _look(self, tell: Tell) -> bool:
        """Reads every history, tells, kills a worker when it is time; whether all cases have ended."""
        events: list[Event] = []
        histories = await asyncio.gather(*map(self._history, self.scripts, self._runs))
        for place, (name, entries) in enumerate(zip(self.scripts, histories, strict=True)):
            self.lines[place], found = follow(name.replace("-", " "), entries, self._notes)
            events += found
        self.events = sorted(events, key=lambda event: event.at)
        self._kill_one()
        tell(self)
        return all(line.state is RunState.FINISHED for line in self.lines)

    async def _history(self, session: str, run_id: str) -> list[HistoryEntry]:
        entries = await self.broker.history(session, limit=1000)
        return [entry for entry in entries if entry.run_id == run_id]

    def _kill_one(self) -> None:
        finished = sum(line.state is RunState.FINISHED for line in self.lines)
        if self.killed is not None or finished < len(self.lines) * KILL_AFTER:
            return
        victim = next((line.holder for line in self.lines if line.state is RunState.LEASED), None)
        if victim is not None and victim in self._crew:
            self.killed = victim
            with suppress(ProcessLookupError):
                self._crew[victim].kill()


def _remove(folder: Path) -> None:
    """Removes a folder in which somebody may write a last word: the watchdog of a server that has just ended."""
    for _ in range(REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(LOOK_SECONDS)
