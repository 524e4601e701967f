"""Several calls at once, in this colour. Written by hand on both sides with the same names."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from broker import Run
from broker.testing import await_until as until

__all__ = ["Run", "begin", "result", "together", "until"]

T = TypeVar("T")


async def together(*calls: Callable[[], Coroutine[Any, Any, T]]) -> list[T]:
    """What each call came to, all of them under way at once."""
    return list(await asyncio.gather(*(call() for call in calls)))


def begin(call: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
    """A call under way, beside what follows."""
    return asyncio.create_task(call())


async def result(begun: asyncio.Task[T]) -> T:
    """What a call that was begun came to."""
    return await begun
