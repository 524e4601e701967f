"""What differs between the two colours, and nothing else: sleeping, deadlines, locks, clients, announcements.

Written by hand on both sides with the same names (`_sync/_runtime.py`).
"""

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any, TypeVar

from ..core.tools import TimedOut, is_async
from ..errors import InvalidInput
from ..store.connect import AsyncClient, Options, async_client, async_client_like
from ._heard import Announcements

__all__ = [
    "LOOK_AGAIN_SECONDS",
    "ORDERED",
    "SUBSCRIBE_SECONDS",
    "Announcements",
    "Client",
    "Eventually",
    "Gate",
    "Guard",
    "Home",
    "Lock",
    "Slots",
    "Stopped",
    "announcements",
    "breathe",
    "deadline",
    "invoke",
    "is_failure",
    "make_client",
    "monotonic",
    "sleep",
    "together",
    "worker",
]

SUBSCRIBE_SECONDS = 3.0
"""How long a subscription may take before whoever wants it looks without."""

QUIET_SECONDS = 15.0
"""After so long without a message the subscribed connection is asked whether it is there."""

LOOK_AGAIN_SECONDS = 300.0
"""After how long whoever waits looks by itself. Announcements are lost with their connection only, which is noticed."""

T = TypeVar("T")

Client = AsyncClient
Stopped = (asyncio.CancelledError, KeyboardInterrupt, SystemExit)
"""What ends a block from outside, through no fault of what it does."""
Eventually = Awaitable
"""What a call gives: an awaitable here, itself in the other colour."""
Lock = asyncio.Lock
sleep = asyncio.sleep
deadline = asyncio.timeout


def make_client(source: Any, how: Options, seconds: float) -> Client:  # noqa: ARG001 - the blocking twin needs it
    """A client of our own for a URL, or with the address and credentials of a client that somebody made."""
    return async_client(source, how) if isinstance(source, str) else async_client_like(source, how)


class Home:
    """The event loop that connections belong to: no other one can use them."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def enter(self) -> bool:
        """Whether what was made in an earlier loop is lost, since that one is closed. Raises for a living one."""
        loop, before = asyncio.get_running_loop(), self._loop
        if before is loop:
            return False
        if before is not None and not before.is_closed():
            raise InvalidInput("broker", "is at work in another event loop", "one broker for each event loop")
        self._loop = loop
        return before is not None

    def leave(self) -> None:
        """Nothing is left that belongs to a loop."""
        self._loop = None


class Gate:
    """Closed until it is opened once; whoever waits goes on then."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def wait(self) -> None:
        """Waits until it is open."""
        await self._event.wait()

    def open(self) -> None:
        """Opens it for good. Safe to repeat."""
        self._event.set()


ORDERED = True
"""Whether siblings begin in the order in which they were made."""
Guard = contextlib.nullcontext
"""What a few lines need that must not meet another worker: nothing, where none of them awaits."""


def worker() -> object:
    """Which task this is."""
    return asyncio.current_task()


async def breathe() -> None:
    """Lets the siblings that were made together with this task have their first turn."""
    for _ in range(3):
        await asyncio.sleep(0)


def is_failure(error: BaseException) -> bool:
    """Whether an error is a function's own, not somebody's wish that this task end."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() == 0
    return isinstance(error, Exception | SystemExit)


async def together(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T | BaseException]:
    """What each of some calls came to, made at the same time; a fault in the place of its call."""
    return await asyncio.gather(*(call() for call in calls), return_exceptions=True)


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """What a plain function returns, called in a thread of its own.

    Not one of the loop's few: as many as the worker's concurrency may be at work, and a process that ends does not
    wait for one that is stuck.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    future: asyncio.Future[T] = loop.create_future()

    def tell(result: Any, fault: BaseException | None) -> None:
        if future.done():
            return
        if fault is None:
            future.set_result(result)
        else:
            future.set_exception(fault)

    def work() -> None:
        result: Any = None
        fault: BaseException | None = None
        try:
            result = context.run(function, *args, **kwargs)
        except StopIteration as error:  # a future cannot hold one
            fault = RuntimeError(f"{type(error).__name__} was raised")
        except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
            fault = error
        with contextlib.suppress(RuntimeError):  # the loop has ended and nobody waits
            loop.call_soon_threadsafe(tell, result, fault)

    threading.Thread(target=work, name="broker-call", daemon=True).start()
    return await future


async def invoke(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], limit: timedelta | None
) -> Any:
    """What a function returns, async or plain (in a thread, so that it may block). Raises `TimedOut` after `limit`."""
    if limit is None:
        return await _call(function, args, kwargs)
    scope = asyncio.timeout(limit.total_seconds())
    try:
        async with scope:
            return await _call(function, args, kwargs)
    except TimeoutError:
        if not scope.expired():
            raise
    raise TimedOut(limit.total_seconds())


async def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if is_async(function):
        return await function(*args, **kwargs)
    value = await in_thread(function, *args, **kwargs)
    return await value if inspect.isawaitable(value) else value


class Slots:
    """How many calls may be under way at once: as many as there are connections for them. First come, first served."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Returns when a place is the caller's. Give it back afterwards."""
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give()  # it came in the same moment
            raise

    def give(self) -> None:
        """Gives a place back, to who waits for it longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


def announcements(client: Client) -> Announcements:
    """What is announced on channels, heard over a client of its own."""
    return Announcements(client, SUBSCRIBE_SECONDS, QUIET_SECONDS)
