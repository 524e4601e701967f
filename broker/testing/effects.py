"""What agents did to the world outside, on record in a file that outlives whoever wrote it. Imports `errors`."""

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ..errors import InvalidInput

VARIABLE: Final = "BROKER_TEST_EFFECTS"
"""Names the file, in the environment: processes that a test starts write into the same one."""


watchers: Final[list[Callable[[str], None]]] = []
"""Told of each effect of this process, by its name, when it is on disk."""


def effect(name: str, *, key: str | None = None) -> bool:
    """Records that something happened in the world, and says whether it is the first time under this key.

    For the fakes of a test: where the real service would charge the card, its fake calls `effect("charged", key=key)`.
    A service that takes idempotency keys does a thing once per key, so a fake with a key answers a repeat (False) as
    the real one would; without a key every call happens. It is whole on disk before this returns, so that a killed
    process leaves it behind. Raises `InvalidInput` outside a testbed.
    """
    known = _of_this_test()
    new = key is None or (name, key) not in known.all()
    known.add(name, key)
    for tell in watchers:
        tell(name)
    return new


def happened(name: str, *, key: str | None = None) -> bool:
    """Whether an effect happened: under this key, or at all. For fakes of services that can be asked (`verify`).

    Raises `InvalidInput` outside a testbed.
    """
    return any(known == name and key in (None, its) for known, its in _of_this_test().all())


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


def _of_this_test() -> Effects:
    path = os.environ.get(VARIABLE)
    if not path:
        raise InvalidInput("effect", "is one of a test", "inside the fixture `testbed`")
    return Effects(Path(path))
