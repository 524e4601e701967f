"""An endpoint of AG-UI: a run is asked for, streams its events, and pauses; another process may take the answers.

    endpoint = agui.Endpoint(broker, "airline", airline, who=signed_in)
    app = Starlette(routes=[Route("/agent", endpoint, methods=["POST"])])

The events are server-sent. `emit` sends some from inside the agent; those that begin and end a run are the endpoint's.
"""

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final, Self

from .._async.client import AsyncBroker
from ..core.answers import Principal
from ..core.limits import JSON, check_name
from ..core.records import RunRecord
from ..core.states import RunState
from ..errors import AlreadyLeased, BrokerError, BuildMismatch, InvalidInput, UnknownId
from ..interop.agui import SPEC_1_0, AsyncThreads, Policy, Refusal, RunAgentInput, RunError, run_started
from ..worker.handlers import Agent, Handler
from ..worker.sweeper import Sweeper
from ._contract import Package, require

require(
    "agui", "The endpoint for AG-UI", Package("starlette", (1, 0), 2), Package("sse-starlette", (3, 0), 4)
)

from sse_starlette import EventSourceResponse  # noqa: E402 - a missing package is named first
from starlette.requests import Request  # noqa: E402
from starlette.responses import JSONResponse  # noqa: E402

__all__ = ["Endpoint", "emit"]

LOOK_SECONDS: Final = 0.2
"""How often it looks at a run that somebody else goes on with."""

PAUSE_SECONDS: Final = 1.0
"""How long it waits before it sweeps again, where it could not."""

OF_ANOTHER_BUILD: Final = "This run goes on in another version of the agent. Send the same input again."

_log = logging.getLogger("broker")

_NO_THREADS: Final[Any] = None
"""What plain functions would run on: here there are none."""

Event = Mapping[str, JSON]
_SENT: Final[ContextVar[Callable[[Event], None] | None]] = ContextVar("broker_agui_sent", default=None)


def emit(event: Event) -> None:
    """Sends an event of AG-UI (`{"type": "TEXT_MESSAGE_CHUNK", ...}`) to the client that asked for this run.

    Nothing, where no client listens: in a worker, or after the client has gone.
    """
    send = _SENT.get()
    if send is not None:
        send(event)


class Endpoint:
    """The endpoint of one agent, as an application of ASGI: it takes the input of a run and streams its events.

    `who` says who has sent a request, and raises an `HTTPException` of Starlette for nobody; answers are theirs. With a
    `handler`, the agent's runs are gone on with in this process, as in a worker; else, and whenever another process is
    quicker, the endpoint waits until the run has ended or paused. A client that goes away stops nothing: it gets the
    rest by sending the same input again. An input with `resume` may go to any process; it needs a run id of its own.
    A run that is pinned to another build than `build` is left to processes of its own: the client gets a `RUN_ERROR`
    with the code of `BuildMismatch`, and asks again.

    Unless `sweeps` is off, this process also sees to deadlines, back-offs and lost leases, as every worker does: from
    its first request on, or at once where the endpoint is entered with `async with`, in the application's `lifespan`.
    """

    def __init__(
        self,
        broker: AsyncBroker,
        agent: str,
        handler: Handler | None = None,
        *,
        who: Callable[[Request], Awaitable[Principal]],
        queue: str = "agents",
        build: str | None = None,
        policy: Policy = SPEC_1_0,
        sweeps: bool = True,
    ) -> None:
        self._broker = broker
        self._agent = agent
        if handler is not None and not _is_async(handler):
            raise InvalidInput("handler", "blocks", "an async function of one Run; a worker takes others")
        self._handler = Agent.of(agent, handler) if handler is not None else None
        self._who = who
        self._queue = queue
        self._build = check_name("build", build) if build else None
        self._threads = AsyncThreads(broker, policy)
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeps = sweeps
        self._sweeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._sweep()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request: a body that is no input of a run is refused with 422."""
        request = Request(scope, receive)
        by = await self._who(request)
        try:
            asked = RunAgentInput.from_json(json.loads(await request.body()))
        except (ValueError, InvalidInput) as fault:
            problem = {"code": InvalidInput.code, "message": str(fault)}
            await JSONResponse(problem, status_code=422)(scope, receive, send)
            return
        events = ({"data": json.dumps(one)} async for one in self.stream(asked, by))
        await EventSourceResponse(events)(scope, receive, send)

    async def stream(self, asked: RunAgentInput, by: Principal) -> AsyncGenerator[JSON, None]:
        """The events of one run of AG-UI, for other transports. The last one says how it ended, and what is open."""
        self._sweep()
        try:
            run_id = await self._paused_in(asked)
            if run_id is None:
                plan = await self._threads.receive(asked, by=by)
                if isinstance(plan, Refusal):
                    yield plan.event().to_json()
                    return
                run_id = plan.run_id or await self._start(asked, by)
            yield run_started(asked).to_json()
            async for event in self._events(run_id):
                yield dict(event)
            yield (await self._threads.ended(run_id, asked.run_id)).to_json()
        except BrokerError as error:
            # Its text may name keys and places of the server: the client is told its sort.
            text = OF_ANOTHER_BUILD if isinstance(error, BuildMismatch) else "The agent cannot be reached."
            yield RunError(message=text, code=error.code).to_json()

    async def aclose(self) -> None:
        """Gives back the runs that are under way here, and the right to sweep: others go on with them."""
        tasks = [*self._tasks, *((self._sweeping,) if self._sweeping is not None else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._sweeping = None

    def _sweep(self) -> None:
        if self._sweeps and (self._sweeping is None or self._sweeping.done()):
            self._sweeping = asyncio.create_task(self._keep_sweeping(), name=f"sweeper of {self._agent}")

    async def _keep_sweeping(self) -> None:
        """Sweeps until cancelled, also where the server comes later than this process."""
        while True:
            try:
                await Sweeper(self._broker).run()
            except BrokerError as error:
                _log.warning("sweeper: %s", error)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _paused_in(self, asked: RunAgentInput) -> str | None:
        """The run that paused in just this run of AG-UI, whose input is sent again: it ends as it did."""
        if asked.resume:
            return None
        thread = await self._threads.read(asked.thread_id)
        if thread.run is None or (asked.run_id,) != thread.run.protocol_ids[-1:]:
            return None
        return thread.run.id

    async def _start(self, asked: RunAgentInput, by: Principal) -> str:
        started = await self._broker.start(
            self._agent, asked.to_json(), session=asked.thread_id, key=asked.run_id, queue=self._queue,
            protocol_id=asked.run_id, by=by,
        )  # fmt: skip
        return started.run_id

    async def _events(self, run_id: str) -> AsyncGenerator[Event, None]:
        """What the agent emits, where it runs here, until its run has ended or paused."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.create_task(self._until_it_stops(run_id, events.put_nowait), name=f"run {run_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: events.put_nowait(None))
        while (event := await events.get()) is not None:
            yield event
        await task

    async def _until_it_stops(self, run_id: str, send: Callable[[Event], None]) -> None:
        _SENT.set(send)
        while (run := await self._broker.runs.get(run_id)).state in (RunState.READY, RunState.LEASED):
            if self._handler is not None and self._may_take(self._handler, run):
                with suppress(
                    AlreadyLeased, UnknownId
                ):  # somebody else's, or it has to wait before its next attempt
                    await self._go_on(self._handler, run_id)
                    continue
            await asyncio.sleep(LOOK_SECONDS)

    def _may_take(self, handler: Agent, run: RunRecord) -> bool:
        """Whether a run is for this build. Raises `BuildMismatch` for one of another that nobody is at work on."""
        try:
            handler.check_build(run.id, run.build, self._build)
        except BuildMismatch:
            if run.state is RunState.LEASED:
                return False
            raise
        return True

    async def _go_on(self, handler: Agent, run_id: str) -> None:
        def check(_: str, pinned: str | None) -> None:
            handler.check_build(run_id, pinned, self._build)

        async with self._broker.take(run_id, holder="agui", check=check) as run:
            try:
                result = await handler.call(run, _NO_THREADS)
                if run.is_held:
                    await run.finish(result)
            except asyncio.CancelledError:  # a drain is no failure
                await run.release()
                raise
            except Exception as error:  # noqa: BLE001 - an agent may raise anything; its run has the attempts it has
                _log.warning("run %s attempt %d failed: %s", run.id, run.attempt, type(error).__name__)
                await run.failed(error)


def _is_async(handler: Handler) -> bool:
    return any(inspect.iscoroutinefunction(one) for one in (handler, type(handler).__call__))
