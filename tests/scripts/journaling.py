"""What a worker's journal does to one call, `c1` where no other is named, script by script."""

from typing import Any

from broker.core.answers import Answer, Approve, Complete
from broker.core.entries import Result, mark_token, write_result
from broker.core.models import Action
from broker.core.outcomes import Outcome
from broker.store import prepare
from broker.store.commands import address, answers, entries
from broker.store.commands.entries import Begun, Entry
from broker.store.commands.runs import Leased, Place
from broker.store.commands.values import Command

from .world import ANN, POOL, SESSION, World, approval

REFUND = Action(tool="refund", arguments={"amount": 40})
MORE = Action(tool="refund", arguments={"amount": 400})
DONE = write_result(Result(value="done"))


def beginning(
    w: World, lease: Leased, name: str = "c1", *, asked: Action = REFUND, running: Action | None = None, **rest: Any
) -> Command[Begun]:  # fmt: skip
    """The begin of a call."""
    token = mark_token(SESSION, lease.token.run, name)
    entry = Entry(name, asked.digest, (running or asked).digest, token=token, **rest)
    return entries.begin(lease, entry, w.settings.limits)


def begin(w: World, lease: Leased, name: str = "c1", **rest: Any) -> Begun:
    """What becomes of a call before it runs."""
    return w.do(beginning(w, lease, name, **rest))


def end(w: World, lease: Leased, name: str = "c1", value: Any = "done", **rest: str) -> entries.Ended:
    """Records the result of a call."""
    return w.do(entries.end(lease, name, write_result(Result(value=value)), **rest))


def handle(w: World, lease: Leased, value: Any = "job-1") -> str:
    """Keeps the handle of a job; the state of its call."""
    return w.do(entries.handle(lease, "c1", value))


def cut(w: World, lease: Leased, number: int = 1) -> str:
    """Puts a checkpoint in the place of the entries so far."""
    return w.do(entries.cut(lease, number, {"turn": number}))


def by_token(
    w: World, place: Place, answer: Answer | None = None, *, call: str = "c1", op: str = "op-1"
) -> Outcome:
    """What became of the result of a job, by the token of its call."""
    known = tuple(w.at(one) for one in w.read(address.read_aliases(w.p, SESSION, call)))
    about = known[-1].interrupt if known else address.early_identity(SESSION, call)
    question = w.record(about).interrupt if known else None
    said = prepare.verdict_of(question, about, answer or Complete(value=7), ANN, op=op, seen=None)
    slot = address.early_slot(SESSION, place.run, 0, call)
    at = answers.CallAddress(SESSION, call, slot, place.run, 0, POOL, known)
    until = w.now() + 60_000_000
    return w.do(answers.answer_call(w.p, at, said, not_after=until, longest=w.settings.keep_settled))


def again(w: World, place: Place, nonce: str = "n2") -> Leased:
    """The run under a new lease, since its worker died."""
    w.forward(seconds=16)
    return w.leased(place, nonce)


def settled(w: World, answer: Answer | None = None, **rest: Any) -> tuple[Place, Leased, str]:
    """A run whose call was asked about and answered, leased again, and the interrupt."""
    place, (one,) = w.asked(approval(**rest))
    w.answer(one, answer or Approve())
    return place, w.leased(place, "n2"), one
