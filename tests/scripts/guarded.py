"""Which tests show which guard of the scripts: the guards' own suite runs them on scripts without it (tests/guards)."""

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from .world import World

Shows = Callable[[World], None]

SHOWN: Final[dict[str, list[Shows]]] = defaultdict(list)
"""Name of a guard -> the tests that fail without it."""


def shows_guard(*names: str) -> Callable[[Shows], Shows]:
    """Says that this test, which takes a `world` and nothing else, fails where one of these guards is left out."""

    def note(test: Shows) -> Shows:
        for name in names:
            SHOWN[name].append(test)
        return test

    return note
