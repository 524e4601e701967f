"""Moves the time of a namespace's scripts ahead, so that deadlines are tested without waiting for them."""

from datetime import timedelta

import redis

from broker.store.keys import Keyspace
from broker.store.scripts import Rendering

MOVABLE = Rendering(clock=True)
"""The scripts with a clock that can be moved: give it to the broker whose deadlines are tested."""


class Clock:
    """The clock of one namespace. Only scripts rendered as `MOVABLE` look at it."""

    def __init__(self, url: str, namespace: str, partitions: int = 1) -> None:
        self._client = redis.Redis.from_url(url)
        self._space = Keyspace(namespace, partitions)

    def advance(self, by: timedelta) -> None:
        """From now on it is so much later."""
        for p in self._space.all():
            self._client.incrby(p.key("clock"), round(by.total_seconds() * 1_000_000))

    def close(self) -> None:
        self._client.close()
