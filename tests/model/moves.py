"""What may be asked for next: requests that make sense where things stand, and (`wild`) requests that may not."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from typing import Final, NamedTuple, TypeVar

from broker.core.models import InterruptState
from broker.core.states import Mode
from broker.store import prepare
from broker.store.commands.runs import Leased
from tests.scripts.world import SESSION

from .answering import ANSWERS, PARTIES, Answer, AnswerCall
from .pausing import Suspend
from .questions import QUESTIONS
from .request import Request
from .running import Adopt, Fail, Finish, Lease, Release, Renew, Requeue, Start, Withdraw
from .stage import NAMES, Stage
from .state import ModelInterrupt, ModelRun
from .sweeping import Collect, Expire, Reclaim, Ring, RingReady

T = TypeVar("T")

PERIOD: Final = 1_500_000
CALLS: Final = ("c1", "c2")
MODES: Final = (Mode.ALL, Mode.EACH, Mode.FIRST, Mode.EACH)
PAUSES: Final = (timedelta(), timedelta(seconds=5.5))


class Chance:
    """One number's choices. `wild`: also those that make no sense where things stand."""

    def __init__(self, number: int, *, wild: bool = False) -> None:
        self._random = Random(number)
        self.wild = wild

    def __call__(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)


Make = Callable[[Stage, Chance], Request]


class Move(NamedTuple):
    """One kind of request, and whether there is reason for one now."""

    make: Make
    possible: Callable[[Stage], bool]
    weight: int = 1


# What there is ---------------------------------------------------------------------------------------------------


def _run(s: Stage, name: str) -> ModelRun:
    return s.model.run(s.places[name].run, s.places[name].session)


def _in(s: Stage, *states: str) -> list[str]:
    """The names of the runs in one of some states."""
    return [name for name in NAMES if _run(s, name).state in states]


def _some(s: Stage, draw: Chance, *states: str) -> str:
    found = _in(s, *states)
    return draw(NAMES if draw.wild or not found else found)


def _free(s: Stage, name: str) -> bool:
    """Whether somebody may lease it."""
    run = _run(s, name)
    return run.offered or 0 < run.until <= s.time or 0 < run.ready_at <= s.time


def _open(s: Stage) -> list[ModelInterrupt]:
    return [i for i in s.model.records.interrupts.values() if i.state == "open"]


def _holding(s: Stage) -> list[Leased]:
    """The leases that hold."""
    return [one for one in s.leases[-12:] if Renew(one).holds(s.model)]


def _lease(s: Stage, draw: Chance) -> Leased:
    return draw(s.leases[-6:] if draw.wild else _holding(s))


def _until(s: Stage, draw: Chance) -> int:
    within = draw((600.5, 0.0, 5000.5) if draw.wild else (600.5,))
    return s.time + round(within * 1_000_000)


# Requests --------------------------------------------------------------------------------------------------------


def start(s: Stage, draw: Chance) -> Request:
    place = s.places[_some(s, draw, "none")]
    return Start(place, draw(("start-1", "start-2")), _until(s, draw))


def adopt(s: Stage, draw: Chance) -> Request:
    return Adopt(s.places[_some(s, draw, "none")], s.new("n"), _until(s, draw))


def lease(s: Stage, draw: Chance) -> Request:
    found = [name for name in NAMES if _free(s, name)]
    name = draw(NAMES if draw.wild or not found else found)
    seq = _run(s, name).seq
    return Lease(
        s.places[name], s.new("n"), draw(("", "", str(seq), str(seq + 1)) if draw.wild else ("", str(seq)))
    )


def renew(s: Stage, draw: Chance) -> Request:
    return Renew(_lease(s, draw))


def release(s: Stage, draw: Chance) -> Request:
    return Release(_lease(s, draw))


def finish(s: Stage, draw: Chance) -> Request:
    return Finish(_lease(s, draw))


def fail(s: Stage, draw: Chance) -> Request:
    return Fail(_lease(s, draw), draw(PAUSES), draw((False, False, True)))


def suspend(s: Stage, draw: Chance) -> Request:
    lease = _lease(s, draw)
    run = Renew(lease).run(s.model)
    seq = int(lease.text("seq")) + draw((1, 1, 2) if draw.wild else (1,))
    keep = [i.id for i in s.model.open_of(run) if draw((True, False))]
    return _pause(s, draw, run, seq, keep=keep, lease=lease)


def suspend_first(s: Stage, draw: Chance) -> Request:
    run = _run(s, _some(s, draw, "none"))
    return _pause(s, draw, run, draw((1, 2) if draw.wild else (1,)))


def suspend_instead(s: Stage, draw: Chance) -> Request:
    run = _run(s, _some(s, draw, "waiting"))
    return _pause(s, draw, run, run.seq + draw((1, 0, 2) if draw.wild else (1,)), instead=True)


def _pause(s: Stage, draw: Chance, run: ModelRun, seq: int, *, keep: Sequence[str] = (), lease: Leased | None = None,
           instead: bool = False, calls: Sequence[str] = ()) -> Request:  # fmt: skip
    place = next(place for place in s.places.values() if place.run == run.id)
    calls = calls or draw((("c1",), ("c2",), CALLS, *([()] if keep else [])))
    asked = tuple(draw(QUESTIONS)(call, draw((40, 400)), s.time) for call in calls)
    pause = prepare.pause(
        s.namespace, place, seq, InterruptState(), asked, s.model.settings, mode=draw(MODES), keep=keep,
        token=lease.token if lease else None, instead=instead, not_after=_until(s, draw),
    )  # fmt: skip
    s.questions |= {q.id: one for q, one in zip(pause.questions, asked, strict=True)}
    return Suspend(pause, asked)


def answer(s: Stage, draw: Chance) -> Request:
    known = [i.id for i in _open(s)]
    interrupt = draw([*s.questions][-8:] if draw.wild or not known else known)
    question = s.questions[interrupt]
    kind = draw(list(ANSWERS) if draw.wild else list(map(str, question.offered)))
    seen = draw(("", question.content_digest, "1:other") if draw.wild else ("", question.content_digest))
    return Answer(s.new("op"), kind, draw(tuple(PARTIES)), seen, s.questions, interrupt)


def answer_call(s: Stage, draw: Chance) -> Request:
    call, kind = draw(CALLS), draw(("approve", "complete", "edit", "cancel"))
    name = draw((*_in(s, "ready", "leased", "waiting"), *(("", *NAMES) if draw.wild else ("",))))
    run = _run(s, name) if name else None
    seq = max(run.seq + draw((1, 0, -1) if draw.wild else (1, 0)), 1) if run else 0
    return AnswerCall(s.new("op"), kind, draw(tuple(PARTIES)), "", s.questions, SESSION, call, run.id if run else "",
                      seq, _until(s, draw))  # fmt: skip


def withdraw(s: Stage, draw: Chance) -> Request:
    name = _some(s, draw, "ready", "leased", "waiting", "dead")
    seq = _run(s, name).seq + draw((0, 1) if draw.wild else (0,))
    return Withdraw(s.places[name], draw(("wd-1", "wd-2", "wd-3")), seq)


def requeue(s: Stage, draw: Chance) -> Request:
    name = _some(s, draw, "dead")
    fence = _run(s, name).fence - draw((0, 1) if draw.wild else (0,))
    return Requeue(s.places[name], draw(("rq-1", "rq-2", s.new("rq"))), fence)


def expire(s: Stage, draw: Chance) -> Request:
    known = s.model.records.interrupts.values()
    due = [i.id for i in known if s.model.due(i)]
    return Expire(draw([i.id for i in known] if draw.wild or not due else due))


def reclaim(s: Stage, draw: Chance) -> Request:
    return Reclaim(s.places[_some(s, draw, "leased", "ready")], draw(PAUSES))


def ring(s: Stage, draw: Chance) -> Request:
    known = [i for i in s.model.records.interrupts.values() if i.id in s.readers.bell]
    unseen = [i for i in known if s.time - s.model.records.unseen.get(i.id, s.time) > PERIOD]
    i = draw(known if draw.wild or not unseen else unseen)
    return Ring(i.id, i.audience, s.readers)


def ring_ready(s: Stage, draw: Chance) -> Request:
    _ = s, draw
    return RingReady()


def collect(s: Stage, draw: Chance) -> Request:
    _ = s, draw
    return Collect()


def _late(s: Stage) -> bool:
    """Whether a timer of some run has passed."""
    return any(_free(s, name) and not _run(s, name).offered for name in NAMES)


def never(s: Stage) -> bool:
    """For what is only worth a try."""
    _ = s
    return False


MOVES: Final = (
    Move(start, lambda s: bool(_in(s, "none"))),
    Move(adopt, lambda s: bool(_in(s, "none"))),
    Move(suspend_first, lambda s: bool(_in(s, "none"))),
    Move(lease, lambda s: any(_free(s, name) for name in NAMES), 3),
    Move(renew, lambda s: bool(_holding(s))),
    Move(release, lambda s: bool(_holding(s))),
    Move(finish, lambda s: bool(_holding(s)), 2),
    Move(fail, lambda s: bool(_holding(s)), 2),
    Move(suspend, lambda s: bool(_holding(s)), 5),
    Move(suspend_instead, lambda s: bool(_in(s, "waiting"))),
    Move(answer, lambda s: bool(_open(s)), 4),
    Move(answer_call, lambda s: bool(_in(s, "ready", "leased", "waiting")), 2),
    Move(withdraw, lambda s: bool(_in(s, "ready", "leased", "waiting", "dead"))),
    Move(requeue, lambda s: bool(_in(s, "dead")), 2),
    Move(expire, lambda s: any(s.model.due(i) for i in _open(s)), 4),
    Move(reclaim, _late, 4),
    Move(ring, lambda s: any(s.time - rung > PERIOD for rung in s.model.records.unseen.values())),
    Move(ring_ready, never),
    Move(collect, lambda s: s.collectable, 3),
)

OPTIONAL: Final = (finish, withdraw, fail, release, suspend_instead, suspend_first, answer_call, renew)
"""Moves that a life can do without."""
NEEDS_LEASE: Final = (renew, release, finish, fail, suspend)
NEEDS_INTERRUPT: Final = (expire, ring)


def lost(s: Stage) -> list[Leased]:
    """Leases on runs that another one holds now."""
    mine = [(one, Renew(one).run(s.model)) for one in s.leases[-12:]]
    return [one for one, run in mine if run.state == "leased" and run.nonce != one.token.nonce]


def late_worker(s: Stage, draw: Chance, lost: Sequence[Leased]) -> Request:
    """What a worker does that does not know yet that it lost its lease."""
    lease, kind = draw(lost), draw(("finish", "suspend", "fail", "release", "renew"))
    if kind == "suspend":
        return _pause(s, draw, Renew(lease).run(s.model), int(lease.text("seq")) + 1, lease=lease)
    if kind == "fail":
        return Fail(lease, PAUSES[0], final=False)
    return Finish(lease) if kind == "finish" else Release(lease) if kind == "release" else Renew(lease)


def opening(s: Stage, draw: Chance) -> None:
    """Begins with a run that waits for two answers."""
    s.play(Adopt(s.places["a"], s.new("n"), s.time + 600_500_000), 0, "told")
    lease = s.leases[-1]
    s.play(_pause(s, draw, Renew(lease).run(s.model), 1, lease=lease, calls=CALLS), 0, "told")


def possible(s: Stage) -> list[Make]:
    """What there is reason for now."""
    return [move.make for move in MOVES if move.possible(s) for _ in range(move.weight)]


def thinkable(s: Stage) -> list[Make]:
    """What somebody might do all the same."""
    makes = dict.fromkeys(move.make for move in MOVES)
    del makes[collect]
    if not s.leases:
        makes = {make: None for make in makes if make not in NEEDS_LEASE}
    if not s.questions:
        del makes[answer]
    if not s.readers.bell.keys() & s.model.records.interrupts.keys():
        makes = {make: None for make in makes if make not in NEEDS_INTERRUPT}
    return list(makes)
