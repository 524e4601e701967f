"""Confirmed calls: over connections of their own, so that nobody else waits for the disk, and sharing their waits.

One pipeline holds the scripts of the calls that came together, the barrier, and the reads that must follow it. All of
it is on one connection: a server that was started again in between loses the whole pipeline, not its first half.
"""

from collections import deque
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

from ..store.commands.values import Call, Came
from ..store.connect import FAULTS, Options
from ..store.disk import Barrier
from ._runtime import Lock, Slots, deadline, make_client

LANES = 8
MOST_TOGETHER = 64
MOST_AT_ONCE = 1000


class _Waiting:
    """One call until it is told."""

    def __init__(self, words: tuple[Any, ...], call: Call) -> None:
        self.words = words
        self.call = call
        self.told: Came | BaseException | None = None


class _Lane:
    """One connection: who has its turn sends for all who wait for theirs."""

    def __init__(self) -> None:
        self.turn = Lock()
        self.queue: deque[_Waiting] = deque()

    def take(self) -> list[_Waiting]:
        """The calls of the next pipeline."""
        return [self.queue.popleft() for _ in range(min(len(self.queue), MOST_TOGETHER))]


class Confirming:
    """Sends the confirmed calls of one link."""

    def __init__(
        self, source: Any, options: Options, barrier: Barrier, within: timedelta, seconds: float
    ) -> None:
        self.seconds = within.total_seconds() + seconds
        self.slots = Slots(MOST_AT_ONCE)
        self._barrier = barrier
        self._within = within
        self._client = make_client(source, replace(options, max_connections=LANES), self.seconds)
        self._lanes = [_Lane() for _ in range(LANES)]
        self._next = count()
        self._known: set[str] = set()

    async def send(self, call: Call, *, whole: bool = False) -> Came:
        """What became of a call, and whether the barrier behind it was passed. Raises the fault of its script."""
        # A script that is not known yet goes whole: to be told so would cost a wait of its own.
        mine = _Waiting(call.words(whole=whole or call.script.sha not in self._known), call)
        free = (lane for lane in self._lanes if not lane.turn.locked())
        lane = next(free, None) or self._lanes[next(self._next) % LANES]
        lane.queue.append(mine)
        try:
            async with lane.turn:
                while mine.told is None:
                    await self._carry(lane.take())
        except BaseException:
            with suppress(ValueError):
                lane.queue.remove(mine)
            raise
        if isinstance(mine.told, BaseException):
            raise mine.told
        self._known.add(call.script.sha)
        return mine.told

    async def _carry(self, batch: list[_Waiting]) -> None:
        for one in batch:
            one.told = ConnectionError("it was given up on the way")  # unless it arrives
        barrier = self._barrier.commands(batch[0].call.partition, self._within)
        reads = [command for one in batch for command in one.call.after]
        pipe = self._client.pipeline(transaction=False)
        for words in (*(one.words for one in batch), *barrier, *reads):
            pipe.execute_command(*words)
        try:
            async with deadline(self.seconds):
                replies = iter(await pipe.execute(raise_on_error=False))
        except FAULTS as error:
            for one in batch:
                one.told = error
            return
        told = [next(replies) for _ in batch]
        reached = self._barrier.is_passed([next(replies) for _ in barrier])
        for one, reply in zip(batch, told, strict=True):
            after = [next(replies) for _ in one.call.after]
            one.told = reply if isinstance(reply, BaseException) else Came(reply, after, reached)

    async def aclose(self) -> None:
        """Closes the connections. Safe to repeat."""
        await self._client.aclose()
