"""A clock that a test moves, so that deadlines, leases and retention are met without waiting. Imports `store`.

What moves is the time that the scripts see: an offset in the namespace, added to the server's own clock.
"""

from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

from ..store.connect import Options, sync_client
from ..store.keys import Keyspace
from ..store.scripts import Rendering

MOVABLE: Final = Rendering(clock=True)
"""Scripts that heed a moved clock: brokers and workers take them as `rendering=MOVABLE`. Never for production."""

_SECONDS: Final = 10.0


class Clock:
    """The clock of one namespace. Only brokers and workers made with `rendering=MOVABLE` go by it."""

    def __init__(self, url: str, namespace: str, partitions: int = 1) -> None:
        self._client: Any = sync_client(url, Options(), _SECONDS)
        self._space = Keyspace(namespace, partitions)

    def now(self) -> datetime:
        """The time that the scripts see."""
        seconds, micro = self._client.execute_command("TIME")
        moved = int(self._client.get(self._space.partition(0).key("clock")) or 0)
        return datetime.fromtimestamp(int(seconds), UTC) + timedelta(microseconds=int(micro) + moved)

    def advance(self, by: timedelta) -> None:
        """From now on it is so much later. Each call moves it again."""
        for p in self._space.all():
            self._client.incrby(p.key("clock"), round(by.total_seconds() * 1_000_000))

    def advance_past(self, time: datetime) -> None:
        """From now on it is after this time. Nothing, where it is already."""
        self.advance(max(time - self.now() + timedelta(milliseconds=1), timedelta()))

    def close(self) -> None:
        """Closes the connection. The clock stays where it was moved to. Safe to repeat."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()
