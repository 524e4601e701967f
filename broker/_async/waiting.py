"""Waiting for a record to be settled: the announcement is a doorbell, the record is the truth."""

import random
from collections.abc import Callable
from typing import TypeVar

from ..errors import WaitTimeout
from ..store.keys import Partition
from ._runtime import LOOK_AGAIN_SECONDS, SUBSCRIBE_SECONDS, Eventually, monotonic
from .link import Link

T = TypeVar("T")


async def wait_for(
    link: Link, p: Partition, id: str, timeout: float | None, look: Callable[[], Eventually[T | None]]
) -> T:  # fmt: skip
    """What `look` gives once it gives something; raises `WaitTimeout` after so many seconds. No polling.

    The subscription comes first, then the look, so that nothing is lost by waiting late.
    """
    ends = None if timeout is None else monotonic() + timeout
    async with link.announcements.listen(p.key("settled", id)) as bell:
        await bell.wait(SUBSCRIBE_SECONDS if timeout is None else min(SUBSCRIBE_SECONDS, max(timeout, 0)))
        while True:
            found = await look()
            if found is not None:
                return found
            left = LOOK_AGAIN_SECONDS if ends is None else ends - monotonic()
            if left <= 0:
                raise WaitTimeout(id, timeout or 0)
            # A look now and then, at jittered times, in case an announcement was lost.
            await bell.wait(min(left, LOOK_AGAIN_SECONDS * (0.5 + random.random() / 2)))  # noqa: S311
