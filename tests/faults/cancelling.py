"""Cancels a call at any place where it waits."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final

MOST_WAITS: Final = 40
"""More than any call waits, but those that go on until something comes."""


class CancelledAt:
    """Awaits a call, and cancels the task it is in when it waits for the n-th time."""

    def __init__(self, call: Awaitable[Any], at: int) -> None:
        self._call = call
        self._at = at
        self.waits = 0

    def is_there(self, beyond: Callable[[], bool]) -> bool:
        """Whether it has waited so often, or is beyond where it was to."""
        return self.waits >= self._at or beyond()

    def __await__(self) -> Generator[Any, Any, Any]:
        task, steps = asyncio.current_task(), self._call.__await__()
        assert task is not None
        fault: BaseException | None = None
        while True:
            try:
                waits_for = next(steps) if fault is None else steps.throw(fault)
            except StopIteration as ended:
                return ended.value
            self.waits += 1
            if self.waits == self._at:
                asyncio.get_running_loop().call_soon(task.cancel)
            fault = None
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - handed on to where it waits
                fault = error


async def step(stepping: CancelledAt) -> None:
    await stepping
