"""What one process of a namespace does at a time, and another one takes over: following events by a named cursor."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

from .._async.client import AsyncBroker
from .._async.events import Event, Following
from ..core.ids import new_nonce
from ..errors import BrokerError, InvalidInput, OutOfMemory, Unavailable

log: logging.Logger = logging.getLogger("broker.gateway")

Work = Callable[[], Awaitable[None]]


class Duty:
    """One task of a namespace, by its name, and how far it has come."""

    def __init__(self, broker: AsyncBroker, name: str, lease: timedelta) -> None:
        self._broker = broker
        self._name = name
        self._lease = lease
        self._holder = f"{name}-{new_nonce()}"

    async def run(self, *work: Work) -> None:
        """Does the work while nobody else does, until it is cancelled. A lost server only makes it late."""
        while True:
            try:
                if await self._broker.events.hold(self._name, self._holder, self._lease):
                    await self._while_held(work)
            except (Unavailable, OutOfMemory) as fault:
                log.warning("%s waits for the server: %s", self._name, fault)
            await self._breathe()

    async def _while_held(self, work: tuple[Work, ...]) -> None:
        tasks = [asyncio.ensure_future(one()) for one in (self._hold, *work)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(BrokerError):
                await self._broker.events.hold(self._name, self._holder, timedelta())

    async def _hold(self) -> None:
        """Ends when somebody else has taken over."""
        while True:
            if not await self._broker.events.hold(self._name, self._holder, self._lease):
                return
            await asyncio.sleep(self._lease.total_seconds() / 3)

    async def _breathe(self) -> None:
        await asyncio.sleep(self._lease.total_seconds() / 3 * (0.5 + random.random()))  # noqa: S311 - jitter

    async def batches(self) -> AsyncIterator[tuple[Event, ...]]:
        """What has happened since the kept cursor, which moves on when the next batch is asked for.

        The first batch may be empty. The first time it begins with now.
        """
        events, kept = self._broker.events, await self._broker.events.position(self._name)
        following, found = await self._opened(kept)
        try:
            while True:
                yield found
                cursor = following.cursor
                if cursor is not None and cursor != kept:
                    await events.keep(self._name, cursor)
                    kept = cursor
                found = await following.next()
        finally:
            await following.leave()

    async def _opened(self, after: str | None) -> tuple[Following, tuple[Event, ...]]:
        following = self._broker.events.following(after=after)
        try:
            return following, await following.open()
        except InvalidInput:  # the namespace was made anew, with other partitions
            log.warning("the cursor of %s fits no more: going on from now", self._name)
            following = self._broker.events.following()
            return following, await following.open()
