"""A place to try agents in: a namespace of a throw-away server, people who answer as scripted, a clock to move.

Works without pytest, where the fixture `testbed` is one. Blocking: tests of either colour may use it.
"""

import asyncio
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory, mkdtemp
from types import TracebackType
from typing import Final, Self

from .._sync.client import Broker
from ..core.answers import Principal
from ..core.limits import JSON
from ..core.records import RunRecord
from ..core.settings import Settings
from ..core.states import CLOSED, RunState
from ..telemetry import Observer
from ..worker.handlers import Handler as WorkerHandler
from ..worker.main import Worker
from .answering import Desk, Script, Spoken
from .clock import MOVABLE, Clock
from .crashing import KILLED, Crashes, CrashUnsafe, Handler, Trip, Victims
from .effects import VARIABLE, Effects
from .interleaving import Interleaving, Party, interleave
from .moments import moments_of
from .victim import AGENT, Order
from .waiting import wait_until

SETTINGS: Final = Settings(
    lease=timedelta(seconds=2),
    sweep_every=timedelta(milliseconds=20),
    backoff_first=timedelta(milliseconds=10),
    backoff_most=timedelta(milliseconds=50),
    # A broker that is open does not hear of it when the clock is moved, and asks by the old time: for a year.
    retry_window=timedelta(days=365),
    keep_settled=timedelta(days=366),
)
"""Everything happens soon."""

SESSION: Final = "s_1"


class Testbed:
    """Runs agents in a namespace of its own: `with Testbed(url) as testbed: testbed.run(agent, "hello")`."""

    __test__ = False  # no class of tests, whatever its name

    def __init__(self, url: str, *, namespace: str | None = None, settings: Settings = SETTINGS) -> None:
        self.url = url
        self.namespace: str = namespace or f"test-{token_hex(6)}"
        self.settings = settings
        self.clock: Clock = Clock(url, self.namespace)
        self.broker: Broker = self._connect(None)
        self.answered: list[Spoken] = []
        """What was said to the answers of the last run."""
        self._stack = ExitStack()
        self._folder = self._world = self._effects = Path()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(TemporaryDirectory(prefix="broker-test-")))
            self._world = self._effects = self._folder / "effects"
            stack.enter_context(_environment(VARIABLE, str(self._effects)))
            stack.callback(self.clock.close)
            stack.enter_context(self.broker)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def effects(self) -> dict[str, int]:
        """How often each `effect` happened: once for each key, and each time without one.

        In this test so far; while an agent is killed at every step, in the run at hand.
        """
        return dict(Effects(self._effects).counts())

    def worker(self, *, observer: Observer | None = None) -> Worker:
        """A worker of this namespace that goes by the clock, to be served by the test."""
        return Worker(
            self.url,
            namespace=self.namespace,
            settings=self.settings,
            rendering=MOVABLE,
            observer=observer,
        )

    def run(
        self,
        agent: WorkerHandler,
        input: JSON = None,  # noqa: A002 - the word of `start`
        *,
        answers: Sequence[Script] = (),
        session: str = SESSION,
        timeout: float = 30.0,
    ) -> RunRecord:
        """The record of a run of this agent once it is closed or dead, or waits for what nobody will answer.

        The worker runs in a thread of this process: any function will do, and what a test patched is patched. Raises
        `Unanswered` for a question that no script fits, TimeoutError after `timeout` seconds.
        """
        worker = self.worker()
        worker.add(AGENT, agent)
        with ThreadPoolExecutor(1) as pool:
            serving = pool.submit(lambda: asyncio.run(worker.serve()))
            try:
                run_id, desk = self._start(input, answers, session)

                def look() -> RunRecord | None:
                    if serving.done():
                        serving.result()  # it ends with a fault only
                    return self._look(desk, run_id)

                return self._ended(run_id, timeout, look)
            finally:
                worker.stop()
                worker.stop()

    def kill_at_every_step(
        self,
        agent: Handler,
        input: JSON = None,  # noqa: A002 - the word of `start`
        *,
        answers: Sequence[Script] = (),
        session: str = SESSION,
        timeout: float = 30.0,
    ) -> Crashes:
        """What the agent came to when its worker was killed (SIGKILL) at each boundary of its journal in turn.

        It is run once undisturbed, then once for each moment (before and after each lease, begin, end, pause and
        finish, and after each effect): the worker is killed there and another process goes on. Each run must come to
        the same result and the same effects (`effect`, once for each key) as the undisturbed one; raises `CrashUnsafe`
        where one does not. The agent is imported by other processes, so it is a function of a module, or
        `module:attribute`; what the test patched is not patched there. `timeout` is for each run.
        """
        __tracebackhide__ = True
        with self._victims(agent) as victims:
            calm = self._trip(victims, "", self._start(input, answers, session), timeout)
            moments = calm.moments if calm.state is not RunState.DEAD else ()
            trips = [
                self._trip(victims, moment, self._start(input, answers, session), timeout)
                for moment in moments
            ]
        crashes = Crashes(calm, tuple(trips))
        if crashes.faults or calm.state is RunState.DEAD:
            raise CrashUnsafe(crashes)
        return crashes

    def interleave(self, seed: int, **parties: Party) -> Interleaving:
        """A race between parties, in the order of calls that the seed gives: the same seed, the same order.

        Each party is a function of a broker, run in a thread: `alice=lambda broker: broker.inbox.answer(...)`. It
        stops before each of its calls that may change something. What each returned, or the `BrokerError` it ended
        with, is in `results`.
        """
        return interleave(self._connect, seed, parties)

    def _connect(self, observer: Observer | None) -> Broker:
        return Broker(
            self.url,
            namespace=self.namespace,
            settings=self.settings,
            by=Principal.local("test"),
            rendering=MOVABLE,
            observer=observer,
        )

    @contextmanager
    def _victims(self, agent: Handler) -> Generator[Victims]:
        victims = Victims(agent, self._folder / "log")
        try:
            victims.open()
            yield victims
        finally:
            victims.close()
            self._effects = self._world

    def _start(self, given: JSON, answers: Sequence[Script], session: str) -> tuple[str, Desk]:
        started = self.broker.start(AGENT, given, session=session)
        desk = Desk(self.broker, self.clock, answers)
        self.answered = desk.spoken
        return started.run_id, desk

    def _trip(self, victims: Victims, moment: str, started: tuple[str, Desk], timeout: float) -> Trip:
        """What a run came to, the first worker of which is killed at this moment, if there is one."""
        run_id, desk = started
        folder = Path(mkdtemp(dir=self._folder))
        moments, effects = folder / "moments", folder / "effects"
        self._effects = effects

        def order(dies_at: str) -> Order:
            settings = self.settings.to_json()
            return Order(self.url, self.namespace, settings, str(moments), str(effects), dies_at)

        with ExitStack() as stack:
            first = worker = stack.enter_context(victims.worker(order(moment)))

            def look() -> RunRecord | None:
                nonlocal worker
                if worker.code() == KILLED and worker is first:
                    self.clock.advance(self.settings.lease)
                    worker = stack.enter_context(victims.worker(order("")))
                return self._look(desk, run_id)

            run = self._ended(run_id, timeout, look)
            # At the very end of the run the first one may be alive still, and about to be killed.
            is_met = moment == "" or first.stop() == KILLED
        return Trip(
            moment,
            run.state,
            run.result,
            run.errors,
            Effects(effects).counts(),
            tuple(moments_of(moments)),
            is_met,
        )

    def _ended(self, run_id: str, timeout: float, look: Callable[[], RunRecord | None]) -> RunRecord:
        """The run at its end; TimeoutError tells what it waits for."""
        try:
            return wait_until(look, timeout, what=f"the end of run {run_id}")
        except TimeoutError as error:
            error.add_note(self.broker.runs.why(run_id).reason)
            raise

    def _look(self, desk: Desk, run_id: str) -> RunRecord | None:
        """The run, where nothing more will happen to it; answers what it asks."""
        run = self.broker.runs.get(run_id)
        if run.state in CLOSED or run.state is RunState.DEAD:
            return run
        asked = {one.id for one in desk.look(run_id)}
        if not asked or not asked <= desk.left_open:
            return None
        run = self.broker.runs.get(run_id)  # it may have paused since it was read
        return run if run.state is RunState.WAITING else None


@contextmanager
def _environment(name: str, value: str) -> Generator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
