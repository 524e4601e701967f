"""A worker process: leases ready runs of the agents it knows, goes on with them, and gives them back whole."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from .._async.client import AsyncBroker
from .._async.run import Run
from .._async.runs import lease_some
from .._sync.client import Broker
from ..core.fleet import WorkerInfo
from ..core.ids import new_nonce
from ..core.limits import check_name
from ..core.settings import Settings
from ..errors import BrokerError, Corrupt, InvalidInput, StaleLease, Unavailable
from ..renewer import Renewer, run_command
from ..store.commands import sweep
from ..store.commands.runs import Leased
from ..store.connect import FAULTS, SyncClient
from ..store.keys import Pool
from ..telemetry import Observer
from .bells import Bells
from .handlers import Agent, Handler
from .sweeper import Sweeper

log = logging.getLogger("broker")

H = TypeVar("H", bound=Callable[..., Any])

MOST_CONCURRENT = 1000


class Worker:
    """Runs agents: `worker = Worker(url, namespace="airline"); worker.add("airline", handler); worker.run()`.

    A handler gets a leased `Run`. It returns the run's result, or calls `run.suspend(...)` and returns. One that
    raises has failed the attempt: the run comes back after a while, with jitter, and is dead after `settings.tries`.
    Delivery is at least once: what a handler did before it died is done again unless it looks at what was recorded.
    """

    def __init__(
        self, url: str | None = None, *, namespace: str = "default", queue: str = "agents", concurrency: int = 32,
        build: str | None = None, client: Any = None, settings: Settings | None = None, name: str | None = None,
        sweeps: bool = True, drain: timedelta = timedelta(seconds=25), observer: Observer | None = None,
    ) -> None:  # fmt: skip
        if not 1 <= concurrency <= MOST_CONCURRENT:
            raise InvalidInput("concurrency", "is out of range", f"1 to {MOST_CONCURRENT}")
        given: dict[str, Any] = {
            "namespace": namespace,
            "client": client,
            "settings": settings,
            "observer": observer,
        }
        self.broker = AsyncBroker(url, **given)
        self._blocking = Broker(url, **given)  # opens when a plain function first needs it
        self.queue = check_name("queue", queue)
        self.build = check_name("build", build) if build else None
        self.concurrency = concurrency
        self.name = name or f"{socket.gethostname().split('.')[0]}-{os.getpid()}-{new_nonce()[:4]}"
        self._sweeps = sweeps
        self._drain = drain
        self._agents: dict[str, Agent] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, agent: str, handler: Handler) -> None:
        """Registers the handler of an agent: a function of one `Run`, async or plain (plain ones run in threads)."""
        self._agents[agent] = Agent.of(agent, handler)

    def agent(self, name: str) -> Callable[[H], H]:
        """The same as a decorator: `@worker.agent("airline")`."""

        def register(handler: H) -> H:
            self.add(name, handler)
            return handler

        return register

    def run(self) -> None:
        """Works until SIGTERM or SIGINT, then drains: no new runs, the present ones may end, the rest is given back."""
        asyncio.run(self._run_with_signals())

    async def _run_with_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(number, self.stop)
        await self.serve()

    def stop(self) -> None:
        """Asks for a drain; a second time, for giving everything back at once. May be called from any thread."""
        if self._loop is None or self._stop is None:
            return
        if self._stop.is_set():
            self._loop.call_soon_threadsafe(self._cancel_all)
        self._loop.call_soon_threadsafe(self._stop.set)

    async def serve(self) -> None:
        """Works until `stop`. Raises where the server or the credentials cannot be used; outages are waited out."""
        if not self._agents:
            raise InvalidInput("agents", "are none", "at least one `worker.add(name, handler)`")
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        link = (await self.broker.open())._link  # noqa: SLF001 - the same house
        sweeper = asyncio.create_task(Sweeper(self.broker, name=self.name).run()) if self._sweeps else None
        with Renewer(
            link.source, link.settings, link.rendering,
            options=link.options, beat=self._say_alive, observer=link.observer,
        ) as renewer:  # fmt: skip
            try:
                await self._work(renewer)
                await self._drain_all()
            finally:
                self._cancel_all()
                await asyncio.gather(*self._tasks.values(), return_exceptions=True)
                if sweeper is not None:
                    sweeper.cancel()
                    await asyncio.gather(sweeper, return_exceptions=True)
        with suppress(BrokerError):
            await link.run(sweep.register(link.space.partition(0), self.name, b""))
        await self.broker.aclose()
        self._blocking.close()

    # Leasing ---------------------------------------------------------------------------------------------------

    def _pools(self) -> list[Pool]:
        builds = ("",) if self.build is None else (self.build, "")
        return [Pool(self.queue, agent, build) for agent in self._agents for build in builds]

    async def _work(self, renewer: Renewer) -> None:
        link, stop = self.broker._link, self._stop  # noqa: SLF001 - the same house
        assert stop is not None  # noqa: S101 - set by serve
        bells = Bells(link, self._pools(), self.name)
        stopped = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                free = self.concurrency - len(self._tasks)
                if free <= 0:
                    await asyncio.wait([stopped, *self._tasks.values()], return_when=asyncio.FIRST_COMPLETED)
                    continue
                try:
                    taken = await self._lease(free)
                except Unavailable as error:
                    log.warning("worker %s: %s", self.name, error.reason)
                    continue
                for leased in taken:
                    self._begin(leased, renewer)
                if not taken:
                    await bells.wait(free, stopped)
        finally:
            stopped.cancel()
            await bells.aclose()

    async def _lease(self, free: int) -> list[Leased]:
        link = self.broker._link  # noqa: SLF001 - the same house
        taken: list[Leased] = []
        for p in link.space.all():
            if len(taken) < free:
                taken += await lease_some(link, p, self._pools(), min(free - len(taken), 32), self.name)
        return taken

    def _begin(self, leased: Leased, renewer: Renewer) -> None:
        run_id = leased.token.run
        task = asyncio.create_task(self._go_on(leased, renewer), name=f"run {run_id}")
        self._tasks[run_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(run_id, None))
        loop = asyncio.get_running_loop()
        renewer.add(leased, lambda: loop.call_soon_threadsafe(task.cancel))

    # One run ---------------------------------------------------------------------------------------------------

    async def _go_on(self, leased: Leased, renewer: Renewer) -> None:
        run: Run[Any] = Run(self.broker._link, leased)  # noqa: SLF001 - the same house
        try:
            run = await Run.load(self.broker._link, leased)  # noqa: SLF001
            run._ended = lambda: renewer.remove(run.id)  # noqa: SLF001
            result = await self._agents[run.agent].call(run, self._blocking._link)  # noqa: SLF001
            if run.is_held:
                await run.finish(result)
        except StaleLease:
            log.warning("run %s: its lease went to another worker; nothing was written", run.id)
        except asyncio.CancelledError:
            await self._give_back(run)
        except Unavailable as error:
            log.warning("run %s: %s; its lease will run out", run.id, error.reason)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises ends its attempt and no other
            await self._failed(run, error)
        finally:
            renewer.remove(run.id)

    async def _give_back(self, run: Run[Any]) -> None:
        """A drain is no failure: the run is another worker's, at once. A lease lost before is nobody's to give."""
        if run.is_held:
            with suppress(BrokerError):
                await asyncio.shield(run.release())

    async def _failed(self, run: Run[Any], error: Exception) -> None:
        # The text may hold what the handler worked on: it goes to the run's record, never into a log.
        log.warning("run %s attempt %d failed: %s", run.id, run.attempt, type(error).__name__)
        if not run.is_held:
            return
        kind = "corrupt" if isinstance(error, Corrupt) else type(error).__name__
        with suppress(StaleLease, Unavailable):
            await run.fail(kind, str(error))

    # Ending ----------------------------------------------------------------------------------------------------

    async def _drain_all(self) -> None:
        if self._tasks:
            log.info("worker %s drains %d runs", self.name, len(self._tasks))
            await asyncio.wait(list(self._tasks.values()), timeout=self._drain.total_seconds())

    def _cancel_all(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def _say_alive(self, client: SyncClient) -> None:
        link = self.broker._link  # noqa: SLF001 - the same house
        record = WorkerInfo(
            name=self.name, host=socket.gethostname(), pid=os.getpid(), queue=self.queue, agents=tuple(self._agents),
            build=self.build, concurrency=self.concurrency, holding=len(self._tasks), sweeps=self._sweeps,
        ).to_bytes()  # fmt: skip
        with suppress(*FAULTS):
            run_command(
                client,
                sweep.register(link.space.partition(0), self.name, record),
                link.settings,
                link.rendering,
                link.observer,
            )
