"""A worker process: leases ready runs of the agents it knows, goes on with them, and gives them back whole."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import Any, TypeVar

from .._async.client import AsyncBroker
from .._async.ready import Leases
from .._async.run import Run
from .._sync.client import Broker
from ..core.fleet import WorkerInfo
from ..core.ids import new_nonce
from ..core.limits import check_name, check_range
from ..core.settings import Settings
from ..errors import BrokerError, Corrupt, InvalidInput, Paused, StaleLease, Unavailable
from ..renewer import Renewer, run_command
from ..store.commands import sweep
from ..store.commands.runs import Leased, Token
from ..store.connect import FAULTS, SyncClient
from ..store.keys import Pool
from ..store.scripts import Rendering
from ..telemetry import Observer
from .bells import Bells
from .handlers import Agent, Handler
from .sweeper import Sweeper

log: logging.Logger = logging.getLogger("broker")

H = TypeVar("H", bound=Callable[..., Any])

MOST_CONCURRENT = 1000
PAUSE_SECONDS = 0.5
STUCK_SECONDS = 5.0
LEAVE_SECONDS = 1.0


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
        rendering: Rendering | None = None,
    ) -> None:  # fmt: skip
        check_range("concurrency", concurrency, 1, MOST_CONCURRENT)
        given: dict[str, Any] = {
            "namespace": namespace,
            "client": client,
            "settings": settings,
            "observer": observer,
            "rendering": rendering,
        }
        self.broker: AsyncBroker = AsyncBroker(url, **given)
        self._blocking = Broker(url, **given)  # opens when a plain function first needs it
        self.queue: str = check_name("queue", queue)
        self.build: str | None = check_name("build", build) if build else None
        self.concurrency = concurrency
        self.name: str = name or f"{socket.gethostname().split('.')[0]}-{os.getpid()}-{new_nonce()[:10]}"
        self._sweeps = sweeps
        self._drain = drain
        self._agents: dict[str, Agent] = {}
        self._tasks: dict[Token, asyncio.Task[None]] = {}
        self._runs: dict[Token, Run[Any]] = {}
        self._asked = 0
        self._bells: Bells | None = None
        self._sweeper: Sweeper | None = None
        self._said = (b"", 0.0)
        """How this worker last described itself, and when."""
        self._stop: asyncio.Event | None = None
        self._hurry: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, agent: str, handler: Handler, *, builds: Sequence[str] | None = None) -> None:
        """Registers the handler of an agent: a function of one `Run`, async or plain (plain ones run in threads).

        It also gets runs that are pinned to one of its `builds`: by default those that the handler itself declares.
        """
        self._agents[agent] = Agent.of(agent, handler, builds)
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # it has ended already
                loop.call_soon_threadsafe(self._look_now)

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
        self._asked += 1
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it has ended already
                loop.call_soon_threadsafe(self._heed)

    def _look_now(self) -> None:
        if self._bells is not None:
            self._bells.ring()

    def _heed(self) -> None:
        if self._stop is not None:
            self._stop.set()
        if self._asked > 1 and self._hurry is not None:
            self._hurry.set()

    async def serve(self) -> None:
        """Works until `stop`. Raises where the server or the credentials cannot be used; outages are waited out."""
        if not self._agents:
            raise InvalidInput("agents", "are none", "at least one `worker.add(name, handler)`")
        self._loop, self._stop, self._hurry = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        if self._asked:
            self._heed()
        try:
            await self.broker.open()
            await self._serve()
        finally:
            self._loop, self._stop, self._hurry, self._asked = None, None, None, 0
            await self.broker.aclose()
            self._blocking.close()

    async def _serve(self) -> None:
        link = self.broker._link  # noqa: SLF001 - the same house
        self._sweeper = Sweeper(self.broker, name=self.name) if self._sweeps else None
        sweeper = asyncio.create_task(self._sweeper.run()) if self._sweeper is not None else None
        try:
            with Renewer(
                link.source, link.settings, link.rendering,
                options=link.options, beat=self._say_alive, observer=link.observer,
            ) as renewer:  # fmt: skip
                try:
                    await self._work(renewer)
                    await self._drain_all()
                finally:
                    await self._give_all_back()
        finally:
            if sweeper is not None:
                sweeper.cancel()
                await asyncio.gather(sweeper, return_exceptions=True)
            with suppress(BrokerError, TimeoutError):
                async with asyncio.timeout(LEAVE_SECONDS):
                    await link.run(sweep.register(link.space.partition(0), self.name, b""))

    # Leasing ---------------------------------------------------------------------------------------------------

    def _pools(self) -> list[Pool]:
        own = ("",) if self.build is None else (self.build, "")
        return [
            Pool(self.queue, name, build)
            for name, agent in self._agents.items()
            for build in dict.fromkeys((*agent.builds, *own))
        ]

    async def _work(self, renewer: Renewer) -> None:
        link, stop = self.broker._link, self._stop  # noqa: SLF001 - the same house
        assert stop is not None  # noqa: S101 - set by serve
        ready, waits = Leases(link), False
        stopped = asyncio.create_task(stop.wait())
        async with Bells.of(link, self.queue, self.name) as bells:
            self._bells = bells
            stopped.add_done_callback(lambda _: bells.ring())
            try:
                while not stop.is_set():
                    free = self.concurrency - len(self._tasks)
                    try:
                        if free <= 0:
                            await bells.leave()
                            if len(self._tasks) >= self.concurrency:  # some may have ended meanwhile
                                ends = [stopped, *self._tasks.values()]
                                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                        else:
                            waits = await self._look(ready, bells, free, renewer, waits=waits)
                    except (Corrupt, Unavailable) as error:
                        log.warning("worker %s: %s", self.name, error)
                        await asyncio.wait([stopped], timeout=PAUSE_SECONDS)
            finally:
                stopped.cancel()
                self._bells = None
                with suppress(BrokerError, TimeoutError):
                    async with asyncio.timeout(LEAVE_SECONDS):
                        await bells.leave()

    async def _look(self, ready: Leases, bells: Bells, free: int, renewer: Renewer, *, waits: bool) -> bool:
        """Takes what is ready; where nothing is, waits and takes what it is woken for. Whether to wait next."""
        pools = self._pools()
        if waits:
            bells.waits(pools)
        taken = await self._take(ready.take(pools, free, self.name, waits=waits), renewer)
        if waits and not taken:
            await self._take(ready.accept(await bells.rung(free), self.name), renewer)
        return taken < free

    async def _take(self, asked: Coroutine[Any, Any, list[Leased]], renewer: Renewer) -> int:
        """Begins with the runs that could be leased; how many. Cancelled in the middle, none stays leased."""
        taken = await self._leased(asked)
        for leased in taken:
            self._begin(leased, renewer)
        return len(taken)

    async def _leased(self, asked: Coroutine[Any, Any, list[Leased]]) -> list[Leased]:
        """Some leases. Cancelled in the middle, what the server has given by then is given back."""
        leasing = asyncio.ensure_future(asked)
        try:
            return await asyncio.shield(leasing)
        except asyncio.CancelledError:
            with suppress(BrokerError, TimeoutError):
                async with asyncio.timeout(LEAVE_SECONDS):
                    for leased in await leasing:
                        await self._give_back(Run(self.broker._link, leased))  # noqa: SLF001 - the same house
            raise

    def _begin(self, leased: Leased, renewer: Renewer) -> None:
        run: Run[Any] = Run(self.broker._link, leased)  # noqa: SLF001 - the same house
        task = asyncio.create_task(self._go_on(run), name=f"run {run.id}")
        self._tasks[leased.token] = task
        self._runs[leased.token] = run
        loop = asyncio.get_running_loop()

        def forget(_: object) -> None:
            self._tasks.pop(leased.token, None)
            self._runs.pop(leased.token, None)

        def lost() -> None:
            run.is_held = False
            loop.call_soon_threadsafe(task.cancel)

        task.add_done_callback(forget)
        run._renewal = renewer.add(leased, lost)  # noqa: SLF001 - the same house

    # One run ---------------------------------------------------------------------------------------------------

    async def _go_on(self, run: Run[Any]) -> None:
        try:
            await run.load()
            with run._span():  # noqa: SLF001 - the same house
                result = await self._agents[run.agent].call(run, self._blocking._link)  # noqa: SLF001
                if run.is_held or run._fault is not None:  # noqa: SLF001 - one that returns after a pause has paused
                    await run.finish(result)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises ends its attempt and no other
            await self._ended(run, error)
        finally:
            if run._renewal is not None:  # noqa: SLF001 - of the lease it has now, which may be a later one
                run._renewal.remove()  # noqa: SLF001

    @staticmethod
    def _is_cancelled() -> bool:
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0

    async def _ended(self, run: Run[Any], error: BaseException) -> None:
        """What becomes of a run whose handler raised: a pause is none of its faults, and a drain neither."""
        match run._cause(error):  # noqa: SLF001 - the same house
            case Paused():
                log.debug("run %s paused", run.id)
            case asyncio.CancelledError() if self._is_cancelled():
                await self._give_back(run)
            case StaleLease():
                log.warning("run %s: its lease went to another worker; nothing was written", run.id)
            case Unavailable(reason=reason):
                log.warning("run %s: %s; its lease will run out", run.id, reason)
            case cause:
                # The text may hold what the handler worked on: it goes to the run's record, never into a log.
                log.warning("run %s attempt %d failed: %s", run.id, run.attempt, type(cause).__name__)
                await run.failed(cause)

    async def _give_back(self, run: Run[Any]) -> None:
        """A drain is no failure: the run is another worker's, at once. A lease lost before is nobody's to give."""
        if run.is_held:
            with suppress(BrokerError):
                await run.release()

    # Ending ----------------------------------------------------------------------------------------------------

    async def _drain_all(self) -> None:
        """Lets the present runs end, for a while and until somebody is in a hurry."""
        assert self._hurry is not None  # noqa: S101 - set by serve
        log.info("worker %s drains %d runs", self.name, len(self._tasks))
        hurry = asyncio.create_task(self._hurry.wait())
        ends = asyncio.get_running_loop().time() + self._drain.total_seconds()
        try:
            while self._tasks and not hurry.done():
                left = ends - asyncio.get_running_loop().time()
                if left <= 0:
                    break
                waits = [hurry, *self._tasks.values()]
                await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hurry.cancel()

    def _cancel_all(self) -> None:
        for task in self._tasks.values():
            if not task.cancelling():  # once: a second time would cut the giving back
                task.cancel()

    async def _give_all_back(self) -> None:
        """No lease is left behind, not even that of a handler that does not heed its cancellation."""
        self._cancel_all()
        if not self._tasks:
            return
        runs = [(task, self._runs[token]) for token, task in self._tasks.items()]
        _, stuck = await asyncio.wait([task for task, _ in runs], timeout=STUCK_SECONDS)
        for task, run in runs:
            if task in stuck:
                log.error("run %s: its handler does not stop; it is given back all the same", run.id)
            if task in stuck or task.cancelled():  # cancelled as a whole: before its first turn
                await self._give_back(run)

    def _say_alive(self, client: SyncClient) -> None:
        link = self.broker._link  # noqa: SLF001 - the same house
        record = WorkerInfo(
            name=self.name, host=socket.gethostname(), pid=os.getpid(), queue=self.queue, agents=tuple(self._agents),
            build=self.build, builds={name: list(one.builds) for name, one in self._agents.items() if one.builds},
            concurrency=self.concurrency, holding=len(self._tasks), sweeps=self._sweeps,
        ).to_bytes()  # fmt: skip
        before, at = self._said
        if record == before and monotonic() - at < link.settings.lease.total_seconds():
            return
        with suppress(*FAULTS):
            command = sweep.register(link.space.partition(0), self.name, record)
            (there,) = run_command(client, command, link.settings, link.rendering, link.observer)
            self._said = record, monotonic()
            if self._sweeper is not None and isinstance(there, sweep.There):
                self._sweeper.workers = there.workers
