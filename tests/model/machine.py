"""The life of some runs in any order: the requests of two clients, readers of doorbells, and the world's own doing.

A request may be told, may lose its reply and be repeated at once, or may be late; any may come again much later.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from broker.core.settings import Settings

from . import moves
from .ending import bring_to_an_end
from .moves import Chance
from .request import Request
from .stage import GROUPS, Stage
from .sweeping import Seen

SETTINGS: Final = Settings(
    tries=2, lease=timedelta(seconds=15.5), sweep_every=timedelta(seconds=1.5), keep_settled=timedelta(seconds=3600.5),
    keep_parked=timedelta(seconds=600.5), retry_window=timedelta(seconds=600.5),
)  # fmt: skip

HOW: Final = ("told",) * 6 + ("reply lost",) * 2 + ("late",)
WHO_AND_HOW: Final = tuple((who, how) for how in HOW for who in (0, 1))
SPANS: Final = (1, 6, 16, 16, 31, 31, 700, 3700)
CHANCE: Final = st.integers(0, 2**24 - 1)  # up to here Hypothesis prefers none of them
MEMORY: Final = 30


class Life(RuleBasedStateMachine):
    """One rule draws what happens next: most requests must make sense where things stand, or nothing comes of them.

    Its chance is one number, so that an example shrinks by steps, and a step that moves to another place in it still
    does something there. Each example leaves out some moves that a life can do without.
    """

    def __init__(self, make: Callable[[], Stage]) -> None:
        super().__init__()
        self.stage = make()
        self.off: frozenset[moves.Make] = frozenset()

    def teardown(self) -> None:
        try:
            if not self.stage.failed:
                bring_to_an_end(self.stage)
        finally:
            self.stage.close()

    @initialize(chance=CHANCE)
    def begin(self, chance: int) -> None:
        draw = Chance(chance)
        self.off = frozenset(make for make in moves.OPTIONAL if draw((True, False)))
        if draw((True, False)):
            moves.opening(self.stage, draw)

    @rule(chance=CHANCE)
    def happen(self, chance: int) -> None:
        if not chance:
            return  # the simplest thing that happens is nothing
        draw, s = Chance(chance), self.stage
        kinds = [self.go_on] * 12 + [self.try_anything] * 2 + [self.wait] * 3 + [self.ring]
        kinds += [self.come_again] * 3 if s.sent else []
        draw(kinds + ([self.work_on] if moves.lost(s) else []))(draw)

    def go_on(self, draw: Chance) -> None:
        """Somebody does what there is reason for."""
        sensible = [make for make in moves.possible(self.stage) if make not in self.off]
        if sensible:
            self._play(draw, draw(sensible)(self.stage, draw))

    def try_anything(self, draw: Chance) -> None:
        """Somebody does what makes no sense now."""
        draw.wild = True
        self._play(draw, draw(moves.thinkable(self.stage))(self.stage, draw))

    def work_on(self, draw: Chance) -> None:
        """A worker that lost its lease to another one does not know it yet."""
        self._play(draw, moves.late_worker(self.stage, draw, moves.lost(self.stage)))

    def _play(self, draw: Chance, request: Request) -> None:
        self.stage.play(request, *draw(WHO_AND_HOW))

    def come_again(self, draw: Chance) -> None:
        """A copy of an earlier request arrives, or one that was late."""
        self.stage.deliver(*draw(self.stage.sent[: -MEMORY - 1 : -1]), draw((0, 1)))

    def wait(self, draw: Chance) -> None:
        """Time passes."""
        self.stage.wait(draw(SPANS))

    def ring(self, draw: Chance) -> None:
        """Something happens to the entries of the interrupts doorbell."""
        what = draw(("read", "read", "acknowledge", "lose", "trim"))
        held = [(group, entry) for group, entries in self.stage.readers.held.items() for entry in entries]
        if what == "trim":
            self.stage.trim()
        elif what == "read" or not held:
            self.stage.read(draw(GROUPS))
        elif what == "lose":
            self.stage.forget(*draw(held))
        else:
            self.stage.play(Seen.of(self.stage.readers, *draw(held)), 0, "told")
