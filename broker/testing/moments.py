"""The moments of a worker process at which a test may kill it: the boundaries of the journal. Imports `telemetry`."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..telemetry import Observation, Silent

ENTRIES: Final = frozenset({"begin", "end", "handle"})
BOUNDARIES: Final = ENTRIES | {"lease", "suspend", "cut", "fail", "finish"}
"""The calls to the server that change what the next worker finds of a run."""


class Moments(Silent):
    """Names the moments of this process in a file, one a line: before and after each call that is a boundary.

    The first of a name has no number, the next is `#2`. At the moment `dies_at` the process kills itself (SIGKILL).
    """

    def __init__(self, path: Path, dies_at: str = "") -> None:
        self._path = path
        self._dies_at = dies_at
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()

    def at(self, moment: str) -> None:
        """This moment is there."""
        with self._lock:
            self._seen[moment] += 1
            name = moment if self._seen[moment] == 1 else f"{moment} #{self._seen[moment]}"
            with self._path.open("a") as lines:
                lines.write(f"{name}\n")
            if name == self._dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

    def sent(self, calls: Sequence[Observation], /) -> None:
        """The calls that are about to be sent."""
        self._note("before", calls)

    def told(self, calls: Sequence[Observation], /) -> None:
        """The calls whose outcome is known here."""
        self._note("after", calls)

    def _note(self, when: str, calls: Sequence[Observation]) -> None:
        for one in calls:
            if one.op in BOUNDARIES:
                about = one.operation_id if one.op in ENTRIES else ""
                self.at(f"{when} {one.op} {about}".strip())


def moments_of(path: Path) -> list[str]:
    """The moments that a process has come to, in order."""
    return path.read_text().splitlines() if path.exists() else []
