"""Liveness: from wherever a life has come, sweepers, live workers and answerers bring every run to its end.

Section 7 of the protocol: no further faults, no endless circle, and every run is finished, withdrawn or dead.
"""

from typing import Final

from .answering import Answer
from .running import Finish, Lease
from .stage import Stage
from .state import CLOSED
from .sweeping import Expire, Reclaim

ROUNDS: Final = 8
ENDS: Final = (*CLOSED, "dead")


def bring_to_an_end(s: Stage) -> None:
    """Lets everybody do their work, round by round, as long as some run goes on."""
    s.script.append("from here on nothing goes wrong")
    for _ in range(ROUNDS):
        if all(run.state in ENDS for run in s.model.records.runs.values()):
            return
        s.wait(31)
        _sweep(s)
        _answer(s)
        _work(s)
    going = [f"{run.id} is {run.state}" for run in s.model.records.runs.values() if run.state not in ENDS]
    if going:
        s.fail(f"after {ROUNDS} rounds {', '.join(going)}")


def _sweep(s: Stage) -> None:
    for i in [*s.model.records.interrupts.values()]:
        if s.model.due(i):
            s.play(Expire(i.id), 0, "told")
    for place in s.places.values():
        run = s.model.run(place.run, place.session)
        if 0 < run.until <= s.time or 0 < run.ready_at <= s.time:
            s.play(Reclaim(place, s.model.settings.sweep_every * 0), 0, "told")


def _answer(s: Stage) -> None:
    for i in [*s.model.records.interrupts.values()]:
        if i.state == "open":
            s.play(Answer(s.new("op"), i.offers[0], "ann", "", s.questions, i.id), 0, "told")


def _work(s: Stage) -> None:
    for place in s.places.values():
        if s.model.run(place.run, place.session).offered:
            s.play(Lease(place, s.new("n")), 1, "told")
            s.play(Finish(s.leases[-1]), 1, "told")
