"""What goes wrong in a replay on purpose: workers and the server are killed now and then, and others started."""

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic

from ..embedded import Embedded, ensure
from ..errors import Unavailable
from .crew import WORKER, Crew, Member
from .options import Options


@dataclass(slots=True)
class OwnServer:
    """The server that a replay has started for itself, in a folder of its own."""

    home: Path
    idle: timedelta
    now: Embedded

    @classmethod
    async def start(cls, home: Path, idle: timedelta) -> "OwnServer":
        """Starts it; it stays for `idle` without clients."""
        return cls(home, idle, await asyncio.to_thread(ensure, home, idle=idle))

    async def restart(self) -> None:
        """Kills it without warning, and starts it over the same data at the same address."""
        url = self.now.url
        with suppress(ProcessLookupError):
            os.kill(self.now.pid, signal.SIGKILL)
        self.now = await asyncio.to_thread(ensure, self.home, idle=self.idle)
        if self.now.url != url:
            raise Unavailable("it has another address since its start, where its clients do not look")


@dataclass(slots=True)
class Mischief:
    """Kills at intervals, the first time within the first one, so that runs are hit before their first pause too."""

    options: Options
    crew: Crew
    server: OwnServer | None
    killed: list[str] = field(default_factory=list)
    restarts: int = 0
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Goes on until `stop`; then what was killed is there again. Raises what kept it from coming back."""
        dice = random.Random(self.options.seed)  # noqa: S311 - to be repeated, not to be secret
        workers, server = self.options.kill_worker_every, self.options.restart_server_every
        loops: list[Awaitable[bool]] = [self._over.wait()]
        if workers is not None:
            loops.append(self._again(workers, dice.random(), lambda: self.replace_worker(dice.choice)))
        if server is not None:
            loops.append(self._again(server, dice.random(), self.restart_server))
        for fault in await asyncio.gather(*loops, return_exceptions=True):
            if isinstance(fault, BaseException):
                raise fault

    def stop(self) -> None:
        """Ends it after what it is doing now. Safe to repeat."""
        self._over.set()

    async def _again(self, period: float, first: float, act: Callable[[], Awaitable[None]]) -> bool:
        due = monotonic() + period * first
        try:
            while not await self._is_over(due - monotonic()):
                await act()
                due = max(due + period, monotonic())
        finally:
            self.stop()
        return True

    async def _is_over(self, seconds: float) -> bool:
        """Whether it was ended within so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0)):
                await self._over.wait()
        return self._over.is_set()

    async def replace_worker(self, choose: Callable[[list[Member]], Member]) -> None:
        """Kills one of the workers without warning, and returns when another one is connected. Raises `Broken`."""
        alive = [one for one in self.crew.members if one.part.role == WORKER and one.is_alive]
        if alive:
            chosen = choose(alive)
            self.killed.append(chosen.part.name)
            await self.crew.kill(chosen)
        await self.crew.add(WORKER)

    async def restart_server(self) -> None:
        """Kills the replay's own server without warning, and returns when it is there again. Raises `Unavailable`."""
        if self.server is not None:
            await self.server.restart()
            self.restarts += 1
