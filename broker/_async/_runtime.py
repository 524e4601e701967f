"""What differs between the two colours, and nothing else: sleeping, deadlines, locks, clients, announcements.

Written by hand on both sides with the same names (`_sync/_runtime.py`).
"""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable
from time import monotonic
from typing import Any

from ..errors import InvalidInput
from ..store.connect import FAULTS, AsyncClient, Options, async_client, async_client_like

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

SUBSCRIBE_SECONDS = 3.0

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


class Bell:
    """Set when something was announced; also after a lost connection, since then nobody knows."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        """Whether it rang within so many seconds. It is silent again afterwards."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def ring(self) -> None:
        """Wakes who waits."""
        self._event.set()


class Announcements:
    """One subscribed connection for all waiters of a process, however many there are, over a client of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pubsub = client.pubsub(ignore_subscribe_messages=False)
        self._bells: dict[str, set[Bell]] = defaultdict(set)
        self._new: set[str] = set()
        self._turn = asyncio.Lock()  # the client's object would open a connection for each of several at once
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[Bell]:
        """A bell for one channel. It rings when the subscription stands: look at the records then."""
        bell = Bell()
        if channel not in self._bells:
            self._new.add(channel)
        self._bells[channel].add(bell)
        try:
            await self._subscribe()
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._read())
            yield bell
        finally:
            self._bells[channel].discard(bell)
            if not self._bells[channel]:
                del self._bells[channel]
                await self._unsubscribe(channel)

    async def _subscribe(self) -> None:
        async with self._turn:
            if not self._new:
                return
            new, self._new = self._new, set()
            try:
                async with asyncio.timeout(SUBSCRIBE_SECONDS):
                    await self._pubsub.subscribe(*new)
            except FAULTS:
                self._new |= self._bells.keys()
                self._ring_all()

    async def _unsubscribe(self, channel: str) -> None:
        async with self._turn:
            if channel not in self._bells:
                self._new.discard(channel)
                with contextlib.suppress(*FAULTS):
                    async with asyncio.timeout(SUBSCRIBE_SECONDS):
                        await self._pubsub.unsubscribe(channel)

    def _ring_all(self) -> None:
        for bells in self._bells.values():
            for bell in bells:
                bell.ring()

    async def _read(self) -> None:
        pause = 0.02
        while True:
            message = None
            try:
                await self._subscribe()
                if self._pubsub.connection is not None:
                    message = await self._pubsub.get_message(timeout=None)
            except FAULTS:
                # What was missed meanwhile is in the records: everybody looks there.
                self._new |= self._bells.keys()
                self._ring_all()
            if message is None:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)
                continue
            pause = 0.02
            channel = message["channel"]
            for bell in self._bells.get(channel.decode() if isinstance(channel, bytes) else channel, ()):
                bell.ring()

    async def aclose(self) -> None:
        """Ends the reading task and closes the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(*FAULTS):
            await self._pubsub.aclose()
            await self._client.aclose()
