"""Several calls at once, in this colour. Written by hand on both sides with the same names."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from broker import BlockingRun as Run
from broker.testing import wait_until as until

__all__ = ["Run", "begin", "result", "together", "until"]

T = TypeVar("T")


def together(*calls: Callable[[], T]) -> list[T]:
    """What each call came to, all of them under way at once."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [begun.result() for begun in [threads.submit(call) for call in calls]]


def begin(call: Callable[[], T]) -> "Future[T]":
    """A call under way, beside what follows."""
    threads = ThreadPoolExecutor(1)
    begun = threads.submit(call)
    threads.shutdown(wait=False)
    return begun


def result(begun: "Future[T]") -> T:
    """What a call that was begun came to."""
    return begun.result()
