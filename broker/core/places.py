"""Where in a run a journal entry stands: a path of counters that does not depend on timing.

A task or thread that makes its first journal call takes the next number of the one it was made in, and counts by itself
from then on; so siblings that begin in the same order have the same places at every replay. What a step or a tool does
inside counts under its own name, since it does not happen again once that has its result.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from ..errors import InvalidInput


@dataclass(eq=False)
class Counter:
    """The numbers of one task or thread, under its path."""

    places: "Places"
    path: str
    owner: object = None
    taken: int = 0

    def take(self) -> str:
        """The next place under this path."""
        self.taken += 1
        return f"{self.path}{self.taken - 1}"


class Places:
    """The places of one attempt of one run. `prefix` changes with every checkpoint.

    Where siblings do not begin in the order they were made in (threads), only the first of them may go without a name.
    """

    def __init__(self, prefix: str = "", *, ordered: bool = True) -> None:
        self._root = Counter(self, prefix)
        self._ordered = ordered

    def take(self, worker: object) -> str:
        """The next place for a task or thread; to be taken before its first await."""
        mine = _here.get()
        if mine is None or mine.places is not self:
            mine = self._root
        if mine.owner is None:
            mine.owner = worker
        elif mine.owner is not worker:
            if not self._ordered:
                raise InvalidInput(
                    "key", "is missing, in another thread", "a key for a step, an id for a call"
                )
            mine = Counter(self, f"{mine.take()}.", worker)
        _here.set(mine)
        return mine.take()

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """What is taken in this block stands under the entry of that name."""
        reset = _here.set(Counter(self, f"{name}/"))
        try:
            yield
        finally:
            _here.reset(reset)


_here: Final[ContextVar[Counter | None]] = ContextVar("broker_place", default=None)
