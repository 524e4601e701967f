"""What was read of open interrupts a moment ago, so that who answers one does not read it again."""

from ..store.commands.reads import Asked
from ._runtime import Guard

MOST_KEPT = 1024


class Recent:
    """The last interrupts that were read while they were open.

    A question never changes under its id, and the script that takes an answer looks at the record itself: what is kept
    here may be old and nobody is misled.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Asked] = {}
        self._guard = Guard()

    def keep(self, asked: Asked) -> None:
        """Keeps one, and forgets the oldest where there are too many."""
        with self._guard:
            self._kept.pop(asked[1].id, None)
            self._kept[asked[1].id] = asked
            if len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]

    def take(self, interrupt_id: str) -> Asked | None:
        """What is known of an interrupt: once, since it is about to be settled."""
        with self._guard:
            return self._kept.pop(interrupt_id, None)
