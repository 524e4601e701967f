"""Memory that the processes of one trial share: who may begin, when each lifecycle was answered, who resumed it.

Every number has one writer, so nothing is locked. Times are `time.monotonic_ns`, the same in all processes.
"""

import mmap
import os
import tempfile
from pathlib import Path
from typing import Final, Self

_WORD: Final = 8
_HEAD: Final = 8  # stopped, allowed, began_at, then what each resuming process has finished
MOST_PLACES: Final = 4
"""Processes of one role at most."""
_COLUMNS: Final = 2 + MOST_PLACES
_FINISHED: Final = 3
_SHARED: Final = "/dev/shm"  # noqa: S108 - memory where the system has it as a folder; the name inside is chosen safely


class Board:
    """The board of a trial with `count` lifecycles. The driver creates and closes it; others open it by its path."""

    def __init__(self, path: Path, count: int) -> None:
        self.path = path
        self.count = count
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._whole = memoryview(self._map)
        words = self._whole.cast("Q")
        columns = [words[_HEAD + n * count : _HEAD + (n + 1) * count] for n in range(_COLUMNS)]
        self._head = words[:_HEAD]
        self._words = words
        self.answered_at, self.resumed_at, *self._resumed = columns

    @classmethod
    def create(cls, count: int) -> Self:
        """A new board, all zero."""
        folder = _SHARED if os.access(_SHARED, os.W_OK) else None
        handle, name = tempfile.mkstemp(prefix="lifecycles-", dir=folder)
        os.ftruncate(handle, _WORD * (_HEAD + _COLUMNS * count))
        os.close(handle)
        return cls(Path(name), count)

    @property
    def stopped(self) -> bool:
        """Whether the driver has said that all is over."""
        return bool(self._head[0])

    @property
    def allowed(self) -> int:
        """How many lifecycles may have begun; the driver raises it after the warm-up."""
        return self._head[1]

    @allowed.setter
    def allowed(self, number: int) -> None:
        self._head[1] = number

    @property
    def began_at(self) -> int:
        """When the first measured lifecycle began; written by the process that pauses."""
        return self._head[2]

    @began_at.setter
    def began_at(self, moment: int) -> None:
        self._head[2] = moment

    @property
    def finished(self) -> int:
        """How many lifecycles are finished, by all the processes that resume."""
        return sum(self._head[_FINISHED : _FINISHED + MOST_PLACES])

    def add_finished(self, more: int, place: int = 0) -> None:
        """Add to what the resuming process in that place has finished."""
        self._head[_FINISHED + place] += more

    def add_resumed(self, number: int, place: int = 0) -> None:
        """Add one to how often the process in that place has gone on with a lifecycle."""
        self._resumed[place][number] += 1

    def resumed(self, number: int) -> int:
        """How often a lifecycle was resumed, by whomever."""
        return sum(column[number] for column in self._resumed)

    def stop(self) -> None:
        """Tell every process to end."""
        self._head[0] = 1

    def close(self) -> None:
        """Give the memory back and remove the file; for the driver."""
        columns = (self.answered_at, self.resumed_at, *self._resumed)
        for view in (*columns, self._head, self._words, self._whole):
            view.release()
        self._map.close()
        self.path.unlink(missing_ok=True)
