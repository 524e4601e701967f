"""Calls that are made until they work: what a replay does to its server is no fault of who calls it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ..errors import Unavailable

T = TypeVar("T")

PAUSE_SECONDS: Final = 0.1


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """What a call comes to that may be repeated, however long the server is away. Bounded by who cancels it."""
    while True:
        try:
            return await call()
        except Unavailable:
            await asyncio.sleep(PAUSE_SECONDS)
