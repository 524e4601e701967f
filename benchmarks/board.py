"""Memory that the processes of one trial share: who may begin, when each lifecycle was answered, who resumed it.

Every number has one writer, so nothing is locked. Times are `time.monotonic_ns`, the same in all processes.
"""

import mmap
import os
import tempfile
from pathlib import Path
from typing import Final, Self

_WORD: Final = 8
_HEAD: Final = 8
_COLUMNS: Final = 3
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
        self.answered_at, self.resumed_at, self.resumed = columns

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
        """How many lifecycles are finished; written by the process that resumes."""
        return self._head[3]

    @finished.setter
    def finished(self, number: int) -> None:
        self._head[3] = number

    def stop(self) -> None:
        """Tell every process to end."""
        self._head[0] = 1

    def close(self) -> None:
        """Give the memory back and remove the file; for the driver."""
        for view in (self.answered_at, self.resumed_at, self.resumed, self._head, self._words, self._whole):
            view.release()
        self._map.close()
        self.path.unlink(missing_ok=True)
