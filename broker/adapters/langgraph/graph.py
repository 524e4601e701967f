"""A graph whose pauses are the broker's: called as before, it parks by itself; a worker goes on with it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langgraph.config import get_config

from ..._async.client import AsyncBroker
from ..._async.run import Run
from ...core.digest import content_digest
from ...core.limits import JSON, check_id, check_name
from ...errors import InvalidInput
from .._contract import Answered, Described, current_run, drive, park, supersede
from .asking import Ask
from .thread import Setup, Thread


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
        return getattr(self.graph, name)

    @property
    def described(self) -> Described:
        """What its pauses are of; workers that declare the same go on with them."""
        return self._setup.described

    def invoke(self, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002 - the graph's own word
        """What the graph returns. Where it has paused its questions are in the broker's inbox.

        New input for a thread that waits supersedes what it asked. Raises `Refused` where the thread is at work.
        """
        thread = self._thread(config)
        _no_command(input)
        _blocking(lambda: self._supersede(thread))
        returned = self.graph.invoke(input, thread.config, **self._options(options))
        _blocking(lambda: self._park(thread, returned))
        return returned

    async def ainvoke(self, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002
        """As `invoke`."""
        thread = self._thread(config)
        _no_command(input)
        await self._supersede(thread)
        returned = await self.graph.ainvoke(input, thread.config, **self._options(options))
        await self._park(thread, returned)
        return returned

    def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:  # noqa: A002
        """What the graph streams. It parks when the stream has been read to its end."""
        thread = self._thread(config)
        _no_command(input)
        _blocking(lambda: self._supersede(thread))
        yield from self.graph.stream(input, thread.config, **self._options(options))
        _blocking(lambda: self._park(thread))

    async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncIterator[Any]:  # noqa: A002
        """As `stream`."""
        thread = self._thread(config)
        _no_command(input)
        await self._supersede(thread)
        async for one in self.graph.astream(input, thread.config, **self._options(options)):
            yield one
        await self._park(thread)

    def _thread(self, config: Any) -> Thread:
        thread_id = ((config or {}).get("configurable") or {}).get("thread_id")
        if thread_id is None:
            raise InvalidInput("config", "names no thread", '{"configurable": {"thread_id": "..."}}')
        return Thread(self._setup, check_id("thread_id", str(thread_id)), config)

    @staticmethod
    def _options(options: dict[str, Any]) -> dict[str, Any]:
        return {"durability": "sync", **options}

    async def _supersede(self, thread: Thread) -> None:
        async with self._broker() as broker:
            await supersede(broker._link, thread.id, self.name)  # noqa: SLF001 - the same house

    async def _park(self, thread: Thread, returned: Any = None) -> None:
        parked = await thread.parked(returned)
        if parked is not None:
            async with self._broker() as broker:
                await park(broker, thread, parked, session=thread.id, key=thread.at(parked), queue=self.queue)


class Resume:
    """The handler of a graph's agent: starts a run's thread from its input, or goes on from its answers."""

    def __init__(self, setup: Setup, accepts: tuple[str, ...]) -> None:
        self._setup = setup
        self._accepts = accepts

    @property
    def builds(self) -> tuple[str, ...]:
        """The builds whose runs a worker with this graph is given."""
        return (self._setup.described.build, *self._accepts)

    async def __call__(self, run: Run[Any]) -> JSON:
        """The result of the run's graph; it pauses again where the graph does."""
        thread = Thread(self._setup, run.session_id, None, run)
        return await drive(run, thread, accepts=self._accepts)


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


def _no_command(given: Any) -> None:
    if getattr(given, "resume", None) is not None:
        raise InvalidInput("input", "is an answer", "new input; answers go to the broker's inbox")


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
