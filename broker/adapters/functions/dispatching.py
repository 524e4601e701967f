"""Hands ready runs to jobs of another system, each once, and again where the job was lost."""

import asyncio
import logging
import os
import random
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from ..._async._runtime import invoke
from ..._async.client import AsyncBroker
from ..._async.ready import Handed, Hands
from ...core.fleet import WorkerInfo
from ...core.ids import new_nonce
from ...core.limits import check_name
from ...errors import BrokerError, Corrupt, InvalidInput, Unavailable
from ...store.commands import sweep
from ...store.commands.values import text
from ...store.keys import Pool
from ...worker.bells import Bells
from ...worker.sweeper import Sweeper

log: logging.Logger = logging.getLogger("broker")

AT_ONCE = 32
PAUSE_SECONDS = 0.5
LEAVE_SECONDS = 1.0
MOST_SENDING = timedelta(seconds=30)
"""How long making one job may take; the next ones wait meanwhile."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run that is ready, as it is handed out: `run_id` is all that its job needs.

    `key` is new each time the run is handed out, and made of letters, digits, `_` and `-`: what a system may take for
    the job's own id. `times` counts how often it was handed out since somebody last had it.
    """

    run_id: str
    session_id: str
    agent: str
    queue: str
    build: str | None
    key: str
    times: int


Send: TypeAlias = Callable[[Job], Any]
"""Makes the job: an async function, or a plain one, which is called in a thread. What it returns does not count."""


class Dispatcher:
    """Hands each ready run to `to`: `await Dispatcher(broker, to=to_celery(task), agents=["airline"]).run()`.

    Runs of these agents on one queue, those of `build` among them where one is named, as with a `Worker`; both may be
    at work on the same queue. A run that was handed out is out of the list until its job takes it. Where that does not
    happen within `again`, it is handed out once more, then after twice that, up to sixteen times. So `again` should be
    longer than jobs commonly wait in their queue; a job that comes after another did the work is told so.

    Any number of dispatchers may run: each run is handed out by one of them. Unless `sweeps` is off, this process also
    sees to deadlines, back-offs and lost leases, as every worker does.
    """

    def __init__(
        self, broker: AsyncBroker, *, to: Send, agents: Sequence[str], queue: str = "agents",
        build: str | None = None, again: timedelta = timedelta(minutes=1), name: str | None = None,
        sweeps: bool = True,
    ) -> None:  # fmt: skip
        if isinstance(agents, str) or not agents:
            raise InvalidInput("agents", "names no agents", "a list of at least one name")
        if again <= timedelta():
            raise InvalidInput("again", "is no time", "a timedelta above zero")
        if not callable(to):
            raise InvalidInput("to", "cannot be called", "a function of one Job, async or not")
        self._link = broker._link  # noqa: SLF001 - the same house
        self._to = to
        self._again = again
        self._agents = tuple(check_name("agent", one) for one in agents)
        self._queue = check_name("queue", queue)
        self._build = check_name("build", build) if build else None
        builds = ("",) if self._build is None else (self._build, "")
        self._pools = [Pool(queue, agent, one) for agent in self._agents for one in builds]
        host = socket.gethostname().split(".")[0]
        self.name: str = name or f"dispatcher-{host}-{os.getpid()}-{new_nonce()[:10]}"
        self._sweeper = Sweeper(broker, name=self.name) if sweeps else None

    async def run(self) -> None:
        """Dispatches until cancelled; outages are waited out. Ended in the middle, it loses nothing but time.

        Raises where the server or the credentials cannot be used.
        """
        await self._link.open()
        beside: list[Awaitable[None]] = [self._say_there()]
        if self._sweeper is not None:
            beside.append(self._sweeper.run())
        tasks = [asyncio.ensure_future(one) for one in beside]
        try:
            await self._work()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(BrokerError, TimeoutError):
                async with asyncio.timeout(LEAVE_SECONDS):
                    await self._register(b"")

    async def _work(self) -> None:
        hands, waits = Hands(self._link, self._again), False
        async with Bells.of(self._link, self._queue, self.name) as bells:
            try:
                while True:
                    try:
                        waits = await self._look(hands, bells, waits=waits)
                    except (Corrupt, Unavailable) as error:
                        log.warning("dispatcher %s: %s", self.name, error)
                        await asyncio.sleep(PAUSE_SECONDS * (1 + random.random()))  # noqa: S311 - jitter
            finally:
                with suppress(BrokerError, TimeoutError):
                    async with asyncio.timeout(LEAVE_SECONDS):
                        await bells.leave()

    async def _look(self, hands: Hands, bells: Bells, *, waits: bool) -> bool:
        """Hands out what is ready; where nothing is, waits and hands out what it is woken for. Whether to wait next."""
        if waits:
            bells.waits(self._pools)
        handed = await hands.take(self._pools, AT_ONCE, self.name, waits=waits)
        if waits and not handed:
            handed = await hands.accept(await bells.rung(AT_ONCE), self.name)
        await asyncio.gather(*(self._send(hands, one) for one in handed))
        return len(handed) < AT_ONCE

    async def _send(self, hands: Hands, handed: Handed) -> None:
        """Makes one job. Where that fails, the run comes back after a short while, and after longer each time."""
        run, pool = handed.offer.run, handed.offer.pool
        job = Job(
            run, text(handed.offer.fields.get("session", b"")), pool.agent, pool.queue, pool.build or None,
            f"{run}-{handed.nonce}", handed.times,
        )  # fmt: skip
        try:
            await invoke(self._to, (job,), {}, min(self._again, MOST_SENDING))
        except asyncio.CancelledError:
            with suppress(BrokerError, TimeoutError):
                async with asyncio.timeout(LEAVE_SECONDS):
                    await hands.take_back(handed, self.name, timedelta())
            raise
        except Exception as error:  # noqa: BLE001 - whatever another system raises must not end the others
            # The text may hold what the other system was given, such as its credentials.
            log.warning("dispatcher %s: no job for run %s: %s", self.name, run, type(error).__name__)
            with suppress(BrokerError):  # it comes back all the same, only later
                await hands.take_back(handed, self.name, self._link.settings.backoff_first)

    # Being there -----------------------------------------------------------------------------------------------

    async def _say_there(self) -> None:
        """Says again and again that somebody takes the runs of these agents."""
        record = WorkerInfo(
            name=self.name, host=socket.gethostname(), pid=os.getpid(), queue=self._queue, agents=self._agents,
            build=self._build, concurrency=AT_ONCE, sweeps=self._sweeper is not None,
        ).to_bytes()  # fmt: skip
        while True:
            with suppress(BrokerError):
                await self._register(record)
            await asyncio.sleep(self._link.settings.lease.total_seconds())

    async def _register(self, record: bytes) -> None:
        there = await self._link.run(sweep.register(self._link.space.partition(0), self.name, record))
        if self._sweeper is not None and isinstance(there, sweep.There):
            self._sweeper.workers = there.workers
