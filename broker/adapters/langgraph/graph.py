"""A graph whose pauses are the broker's: called as before, it parks by itself; a worker goes on with it."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from langgraph.config import get_config

from ..._async.client import AsyncBroker
from ..._async.run import Run
from ...core.digest import content_digest
from ...core.ids import new_run_id
from ...core.limits import JSON, check_id, check_name
from ...core.states import CLOSED
from ...errors import InvalidInput, UnknownId
from .._contract import Answered, Described, Parked, current_run, drive, open_runs, park, supersede
from .asking import Ask
from .thread import Setup, Thread

UNPARKED: Final = frozenset({
    "abatch", "abatch_as_completed", "as_tool", "assign", "astream_log", "atransform", "batch",
    "batch_as_completed", "bind", "map", "pick", "pipe", "stream_events", "transform", "with_alisteners",
    "with_fallbacks", "with_listeners", "with_retry", "with_types",
})  # fmt: skip
"""Methods of the graph that would run it, or make something that runs it, without parking what it asks."""


class Resumable:
    """A compiled graph that parks: see `resumable`. What is not here is the graph's own."""

    def __init__(
        self, setup: Setup, *, broker: Callable[[], AsyncBroker], queue: str, accepts: Sequence[str]
    ) -> None:  # fmt: skip
        if getattr(setup.graph, "checkpointer", None) in (None, False, True):
            raise InvalidInput("graph", "has no checkpointer", "builder.compile(checkpointer=saver)")
        self.graph: Any = setup.graph
        self.name: str = check_name("name", setup.name)
        self.queue: str = check_name("queue", queue)
        self._setup = setup
        self._broker = broker
        self.resume: Resume = Resume(setup, tuple(check_name("accepts", one) for one in accepts))
        """The handler for `worker.add`."""

    def __getattr__(self, name: str) -> Any:
        if name in UNPARKED:
            raise AttributeError(f"{name} would run the graph without parking it: use invoke or stream")
        return getattr(self.graph, name)

    def with_config(self, config: Any = None, **options: Any) -> "Resumable":
        """The same with a configuration bound to the graph. The thread is still named at each call."""
        setup = replace(self._setup, graph=self.graph.with_config(config, **options))
        return Resumable(setup, broker=self._broker, queue=self.queue, accepts=self.resume.accepts)

    @property
    def described(self) -> Described:
        """What its pauses are of; workers that declare the same go on with them."""
        return self._setup.described

    def invoke(self, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002 - the graph's own word
        """What the graph returns. Where it has paused its questions are in the broker's inbox.

        New input for a thread that waits supersedes what it asked. Raises `Refused` where the thread is at work.
        """
        thread = self._thread(config)
        _blocking(lambda: self._begin(thread, input))
        returned = self.graph.invoke(input, thread.config, **self._options(options))
        _blocking(lambda: self._park(thread, returned))
        return returned

    async def ainvoke(self, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002
        """As `invoke`."""
        thread = self._thread(config)
        await self._begin(thread, input)
        returned = await self.graph.ainvoke(input, thread.config, **self._options(options))
        await self._park(thread, returned)
        return returned

    def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:  # noqa: A002
        """What the graph streams, to the same chunks. It parks when the stream ends, or is left where it has asked."""
        thread = self._thread(config)
        _blocking(lambda: self._begin(thread, input))
        try:
            yield from self.graph.stream(input, thread.config, **self._options(options))
        except GeneratorExit:
            _blocking(lambda: self._park_asked(thread))
            raise
        _blocking(lambda: self._park(thread))

    def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncGenerator[Any]:  # noqa: A002
        """As `stream`."""
        return self._streamed("astream", input, self._thread(config), options)

    def astream_events(
        self, input: Any, config: Any = None, *, version: str = "v2", **options: Any  # noqa: A002
    ) -> AsyncGenerator[Any]:  # fmt: skip
        """The events of the graph, of version 1 or 2; it parks as `stream` does."""
        if version not in ("v1", "v2"):
            raise InvalidInput("version", f"is {version!r}", "v1 or v2")
        return self._streamed("astream_events", input, self._thread(config), {"version": version, **options})

    def park(self, config: Any) -> bool:
        """Whether the thread's pause was stored now: what it asks is in the inbox then.

        For a thread that waits in its checkpointer and that no run has, since its caller ended before it was parked.
        Nothing happens otherwise. Safe to repeat. Raises `Corrupt` for a thread that stopped in the middle of a node.
        """
        found: list[bool] = []

        async def work() -> None:
            found.append(await self.apark(config))

        _blocking(work)
        return found[0]

    async def apark(self, config: Any) -> bool:
        """As `park`."""
        thread = self._thread(config)
        parked = await thread.parked()
        async with self._broker() as broker:
            if parked is None or await self._has_run(broker, thread):
                return False
            await self._store(broker, thread, parked)
        return True

    async def _has_run(self, broker: AsyncBroker, thread: Thread) -> bool:
        """Whether the thread is a run's: a paused one of its session, or that of the worker that was last at it."""
        if await open_runs(broker._link, thread.id, self.name):  # noqa: SLF001 - the same house
            return True
        last = await thread.last_run()
        return last is not None and await _is_closed(broker, last) is False

    async def _streamed(
        self, method: str, given: Any, thread: Thread, options: Mapping[str, Any]
    ) -> AsyncGenerator[Any]:
        run = getattr(self.graph, method)
        await self._begin(thread, given)
        try:
            async with aclosing(run(given, thread.config, **self._options(options))) as found:
                async for one in found:
                    yield one
        except GeneratorExit:
            await self._park_asked(thread)
            raise
        await self._park(thread)

    def _thread(self, config: Any) -> Thread:
        thread_id = ((config or {}).get("configurable") or {}).get("thread_id")
        if thread_id is None:
            raise InvalidInput("config", "names no thread", '{"configurable": {"thread_id": "..."}}')
        return Thread(self._setup, check_id("thread_id", str(thread_id)), config)

    @staticmethod
    def _options(options: Mapping[str, Any]) -> dict[str, Any]:
        return {"durability": "sync", **options}

    async def _begin(self, thread: Thread, given: Any) -> None:
        """Supersedes what the thread asked. Raises `InvalidInput` for what is an answer, or leads round a question."""
        if getattr(given, "resume", None) is not None:
            raise InvalidInput("input", "is an answer", "new input; answers go to the broker's inbox")
        if getattr(given, "goto", ()) and await thread.asks():
            # The thread's state would not have what the node asks that it is sent to.
            raise InvalidInput("input", "sends on a thread that waits", "new input, or an answer first")
        async with self._broker() as broker:
            await supersede(broker._link, thread.id, self.name)  # noqa: SLF001 - the same house

    async def _park(self, thread: Thread, returned: Any = None) -> None:
        parked = await thread.parked(returned)
        if parked is not None:
            async with self._broker() as broker:
                await self._store(broker, thread, parked)

    async def _park_asked(self, thread: Thread) -> None:
        """Parks a thread whose stream was left before its end, if it had come to a question."""
        if await thread.asks():
            await self._park(thread)

    async def _store(self, broker: AsyncBroker, thread: Thread, parked: Parked) -> None:
        """Stores a pause. A thread that asks anew what was superseded stands where it stood: that is another run."""
        at, again = thread.at(parked), 0
        while await _is_closed(
            broker, new_run_id(thread.id, namespace=broker.namespace, key=f"{at}.{again}")
        ):
            again += 1
        await park(broker, thread, parked, session=thread.id, key=f"{at}.{again}", queue=self.queue)


class Resume:
    """The handler of a graph's agent: starts a run's thread from its input, or goes on from its answers."""

    def __init__(self, setup: Setup, accepts: tuple[str, ...]) -> None:
        self._setup = setup
        self.accepts = accepts

    @property
    def builds(self) -> tuple[str, ...]:
        """The builds whose runs a worker with this graph is given."""
        return (self._setup.described.build, *self.accepts)

    async def __call__(self, run: Run[Any]) -> JSON:
        """The result of the run's graph; it pauses again where the graph does."""
        thread = Thread(self._setup, run.session_id, None, run)
        return await drive(run, thread, accepts=self.accepts)


def resumable(
    graph: Any, name: str, *, broker: Callable[[], AsyncBroker] = AsyncBroker, queue: str = "agents",
    accepts: Sequence[str] = (), ask: Ask | None = None,
    unanswered: Callable[[Answered], JSON] | None = None, result: Callable[[Any], JSON] | None = None,
    call: Mapping[str, Any] | None = None,
) -> Resumable:  # fmt: skip
    """The graph with its own methods, which parks when it pauses; `worker.add(name, graph.resume)` goes on with it.

    A thread is a session. `broker` makes the broker of `invoke` and its like (default: that of `BROKER_URL`); workers
    have their own. `ask` is given each question and returns what is asked: with reviewers or a deadline, say.
    `unanswered` is what `interrupt` returns where nobody answered; without it such a run ends as dead, since no value
    would be safe. `result` makes the run's result of the final state (default: what has a JSON form). `call` are
    keywords of the graph's calls in a worker, such as `context`. `accepts` are builds of earlier releases of the graph
    whose pauses this one can read. Raises `InvalidInput` for a graph without a checkpointer.
    """
    setup = Setup(graph, name, ask, unanswered, result, call or {})
    return Resumable(setup, broker=broker, queue=queue, accepts=accepts)


def effect_key(call_id: str = "") -> str:
    """An idempotency key for what the present node, or its call `call_id`, does: the same on every attempt.

    It follows from the run and the graph's task. Raises `UnknownId` outside of a worker's run.
    """
    place = get_config()["configurable"].get("checkpoint_ns", "")
    return f"{current_run().id}:{content_digest(f'{place} {call_id}'.encode())[:32]}"


async def _is_closed(broker: AsyncBroker, run_id: str) -> bool | None:
    """Whether a run has ended or was withdrawn; None where there is none."""
    try:
        return (await broker.runs.get(run_id)).state in CLOSED
    except UnknownId:
        return None


def _blocking(make: Callable[[], Any]) -> None:
    """Waits for a coroutine, in a thread: the caller's may have a running event loop."""
    fault: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(make())
        except BaseException as error:  # noqa: BLE001 - it is raised where it was called
            fault.append(error)

    thread = threading.Thread(target=work, name="broker-park")
    thread.start()
    thread.join()
    if fault:
        raise fault[0]
