"""What differs between the two colours, and nothing else: sleeping, deadlines, locks, clients, announcements.

Written by hand on both sides with the same names (`_sync/_runtime.py`).
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable
from time import monotonic
from typing import Any

from ..store.connect import FAULTS, AsyncClient, Options, async_client, async_client_like

__all__ = ["Announcements", "Client", "Eventually", "Lock", "deadline", "make_client", "monotonic", "sleep"]

Client = AsyncClient
Eventually = Awaitable
"""What a call gives: an awaitable here, itself in the other colour."""
Lock = asyncio.Lock
sleep = asyncio.sleep
deadline = asyncio.timeout


def make_client(source: Any, how: Options, seconds: float) -> Client:  # noqa: ARG001 - the blocking twin needs it
    """A client of our own for a URL, or with the address and credentials of a client that somebody made."""
    return async_client(source, how) if isinstance(source, str) else async_client_like(source, how)


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
    """One subscribed connection for all waiters of a process, however many there are."""

    def __init__(self, client: Client) -> None:
        self._pubsub = client.pubsub(ignore_subscribe_messages=False)
        self._bells: dict[str, set[Bell]] = defaultdict(set)
        self._known: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[Bell]:
        """A bell for one channel. It rings at once when the subscription stands: look at the records then."""
        bell = Bell()
        self._bells[channel].add(bell)
        try:
            await self._subscribe(channel)
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._read())
            yield bell
        finally:
            self._bells[channel].discard(bell)
            if not self._bells[channel]:
                del self._bells[channel]
                self._known.discard(channel)
                with contextlib.suppress(*FAULTS):
                    await self._pubsub.unsubscribe(channel)

    async def _subscribe(self, channel: str) -> None:
        try:
            await self._pubsub.subscribe(channel)
        except FAULTS:
            self._ring_all()

    def _ring_all(self) -> None:
        for bells in self._bells.values():
            for bell in bells:
                bell.ring()

    async def _read(self) -> None:
        pause = 0.02
        while True:
            try:
                message = await self._pubsub.get_message(timeout=None)
                pause = 0.02
            except FAULTS:
                # The client subscribes again by itself when it reads next; what was missed is in the records.
                self._ring_all()
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)
                continue
            if message is None:
                await asyncio.sleep(pause)
                continue
            channel = message["channel"]
            for bell in self._bells.get(channel.decode() if isinstance(channel, bytes) else channel, ()):
                bell.ring()

    async def aclose(self) -> None:
        """Ends the reading task and gives the connection back."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        with contextlib.suppress(*FAULTS):
            await self._pubsub.aclose()
