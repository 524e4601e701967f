"""What differs between the two colours, and nothing else: sleeping, deadlines, locks, clients, announcements.

Written by hand on both sides with the same names (`_async/_runtime.py`). Here every reply has a limit of its own on
the socket, since a blocking call cannot be given up from outside.
"""

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import timedelta
from time import monotonic, sleep
from typing import Annotated, Any, TypeVar

from ..core.tools import TimedOut, is_async
from ..errors import InvalidInput
from ..store.connect import FAULTS, Options, SyncClient, sync_client, sync_client_like

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

LOOK_AGAIN_SECONDS = 30.0
"""After how long whoever waits looks by itself: nothing else notices a connection that is half open."""

T = TypeVar("T")

Client = SyncClient
Lock = threading.Lock
Stopped = (KeyboardInterrupt, SystemExit)
"""What ends a block from outside, through no fault of what it does."""
Eventually = Annotated[T, "at once"]
"""What a call gives: itself here, an awaitable in the other colour."""


def deadline(seconds: float) -> contextlib.AbstractContextManager[None]:  # noqa: ARG001 - the socket's limit does it
    """Nothing: the client was made with a limit on every reply."""
    return contextlib.nullcontext()


def make_client(source: Any, how: Options, seconds: float) -> Client:
    """A client of our own for a URL, or with the address and credentials of a client that somebody made."""
    return (
        sync_client(source, how, seconds)
        if isinstance(source, str)
        else sync_client_like(source, how, seconds)
    )


class Home:
    """Nothing: connections belong to no loop here, and threads may share them."""

    def enter(self) -> bool:
        """Whether what was made earlier is lost: never."""
        return False

    def leave(self) -> None:
        """Nothing."""


class Slots:
    """How many calls may be under way at once: as many as there are connections for them."""

    def __init__(self, most: int) -> None:
        self._free = threading.BoundedSemaphore(most)

    def take(self) -> None:
        """Returns when a place is the caller's. Give it back afterwards."""
        self._free.acquire()

    def give(self) -> None:
        """Gives a place back."""
        self._free.release()


class Gate:
    """Closed until it is opened once; whoever waits goes on then."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wait(self) -> None:
        """Waits until it is open."""
        self._event.wait()

    def open(self) -> None:
        """Opens it for good. Safe to repeat."""
        self._event.set()


ORDERED = False
"""Whether siblings begin in the order in which they were made: threads do not."""
Guard = threading.Lock
"""What a few lines need that must not meet another worker."""
SIBLINGS_SECONDS = 0.02


def worker() -> object:
    """Which thread this is."""
    return threading.current_thread()


def breathe() -> None:
    """Lets the siblings that were made together with this thread have their first turn."""
    sleep(SIBLINGS_SECONDS)


def is_failure(error: BaseException) -> bool:
    """Whether an error is a function's own, not somebody's wish that this process end."""
    return isinstance(error, Exception | SystemExit)


def together(calls: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """What each of some calls came to, made one after the other; a fault in the place of its call."""
    found: list[T | BaseException] = []
    for call in calls:
        try:
            found.append(call())
        except BaseException as error:  # noqa: BLE001 - handed to the caller, as the other colour does
            found.append(error)
    return found


def invoke(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], limit: timedelta | None
) -> Any:
    """What a plain function returns. Raises `TimedOut` after `limit`; it goes on by itself then."""
    if is_async(function):
        raise InvalidInput("tools", "holds an async function", "plain functions, where the run blocks")
    if limit is None:
        return function(*args, **kwargs)
    found: Future[Any] = Future()
    context = contextvars.copy_context()

    def call() -> None:
        try:
            found.set_result(context.run(function, *args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            found.set_exception(error)

    threading.Thread(target=call, name="broker-tool", daemon=True).start()
    try:
        return found.result(limit.total_seconds())
    except TimeoutError:
        if found.done():  # its own
            raise
    raise TimedOut(limit.total_seconds())


class Bell:
    """Rings when something was announced on one channel; also after a lost connection, since then nobody knows."""

    def __init__(self, pubsub: Any, channel: str) -> None:
        self._pubsub = pubsub
        self._channel = channel

    def wait(self, seconds: float) -> bool:
        """Whether it rang within so many seconds."""
        try:
            if not self._pubsub.subscribed:
                self._pubsub.subscribe(self._channel)
            return self._pubsub.get_message(timeout=max(seconds, 0.001)) is not None
        except FAULTS:
            # The client subscribes again when it reads next; what was missed is in the records.
            sleep(min(0.05, seconds))
            return True


class Announcements:
    """Subscriptions over a client of their own, one connection for each wait of a thread."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @contextlib.contextmanager
    def listen(self, channel: str) -> Iterator[Bell]:
        """A bell for one channel. It rings at once when the subscription stands: look at the records then."""
        pubsub = self._client.pubsub()
        try:
            with contextlib.suppress(*FAULTS):
                pubsub.subscribe(channel)
            yield Bell(pubsub, channel)
        finally:
            with contextlib.suppress(*FAULTS):
                pubsub.close()

    def close(self) -> None:
        """Closes the connections that were kept for the next wait."""
        self._client.close()


def announcements(client: Client) -> Announcements:
    """What is announced on channels, heard over a client of its own."""
    return Announcements(client)
