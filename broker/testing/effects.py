"""What agents did to the world outside, on record in a file that outlives whoever wrote it. Imports `errors`."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Final

from ..errors import InvalidInput

VARIABLE: Final = "BROKER_TEST_EFFECTS"
"""Names the file, in the environment: processes that a test starts write into the same one."""


def effect(name: str, *, key: str | None = None) -> bool:
    """Records that something happened in the world, and says whether it is the first time under this key.

    For the fakes of a test: where the real service would charge the card, its fake calls `effect("charged", key=key)`.
    A service that takes idempotency keys does a thing once per key, so a fake with a key answers a repeat (False) as
    the real one would; without a key every call happens. It is whole on disk before this returns, so that a killed
    process leaves it behind. Raises `InvalidInput` outside a testbed.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        raise InvalidInput("effect", "is recorded outside a test", "inside the fixture `testbed`")
    known = Effects(Path(path))
    new = key is None or (name, key) not in known.all()
    known.add(name, key)
    return new


class Effects:
    """What happened, in the order of happening, read from its file each time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, name: str, key: str | None) -> None:
        """One line, in one write: whole, or not there."""
        with self._path.open("ab", buffering=0) as lines:
            lines.write(json.dumps([name, key]).encode() + b"\n")

    def all(self) -> list[tuple[str, str | None]]:
        """Every effect, repeats included: its name and its key."""
        if not self._path.exists():
            return []
        return [(name, key) for name, key in map(json.loads, self._path.read_text().splitlines())]

    def counts(self) -> Counter[str]:
        """How often each thing happened: once for each key, and each time without one."""
        found = self.all()
        keyed = {(name, key) for name, key in found if key is not None}
        return Counter([name for name, key in found if key is None] + [name for name, _ in keyed])
