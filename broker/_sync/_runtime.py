"""What differs between the two colours, and nothing else: sleeping, deadlines, locks, clients, announcements.

Written by hand on both sides with the same names (`_async/_runtime.py`). Here every reply has a limit of its own on
the socket, since a blocking call cannot be given up from outside.
"""

import contextlib
import threading
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Annotated, Any, TypeVar

from ..store.connect import FAULTS, Options, SyncClient, sync_client, sync_client_like

__all__ = [
    "Announcements",
    "Client",
    "Eventually",
    "Home",
    "Lock",
    "Slots",
    "Stopped",
    "deadline",
    "make_client",
    "monotonic",
    "sleep",
]

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
