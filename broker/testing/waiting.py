"""Waiting for facts in tests, in both colours. Imports nothing of ours.

A test that sleeps is too short on a busy machine and too long on a quiet one; a test that waits for a fact is neither.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, cast, overload

T = TypeVar("T")
SHORTEST: Final = 0.001
LONGEST: Final = 0.05
"""Bounds of the seconds between two looks, which begin short and grow."""


def wait_until(fact: Callable[[], T | None], timeout: float = 10.0, *, what: str = "") -> T:
    """The first true thing that `fact` returns. Raises TimeoutError after `timeout` seconds, naming `what`."""
    end, pause = time.monotonic() + timeout, SHORTEST
    while not (found := fact()):
        if time.monotonic() >= end:
            raise TimeoutError(_never(fact, timeout, what, found))
        time.sleep(pause)
        pause = min(pause * 2, LONGEST)
    return found


@overload
async def await_until(fact: Callable[[], Awaitable[T]], timeout: float = ..., *, what: str = ...) -> T: ...
@overload
async def await_until(fact: Callable[[], T], timeout: float = ..., *, what: str = ...) -> T: ...
async def await_until(
    fact: Callable[[], Awaitable[T]] | Callable[[], T], timeout: float = 10.0, *, what: str = ""
) -> T:
    """The same without blocking the loop; `fact` may be a plain function or return something to await."""
    end, pause = time.monotonic() + timeout, SHORTEST
    while not (found := await _value(fact)):
        if time.monotonic() >= end:
            raise TimeoutError(_never(fact, timeout, what, found))
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST)
    return found


async def _value(fact: Callable[[], Awaitable[T]] | Callable[[], T]) -> T:
    found = fact()
    return cast("T", await found if isinstance(found, Awaitable) else found)


def _never(fact: object, timeout: float, what: str, found: object) -> str:
    name = what or getattr(fact, "__name__", repr(fact))
    return f"{name} did not come true within {timeout:g} s; the last answer was {found!r}"
