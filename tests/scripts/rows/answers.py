"""Rows of answers: by interrupt and by call, to runs, interrupts and calls."""

from datetime import timedelta

from broker.core.answers import Cancel, Complete, Reject, Respond
from broker.core.states import Mode
from broker.store.commands.runs import Leased, Place

from ..journaling import begin, by_token, end
from ..world import BOB, World, approval, completion
from .case import Case, of_call, of_interrupt, of_run, row
from .runs import FAR, PAST, each, finished

NOWHERE = "int_0000" + "0" * 32


def one(w: World) -> tuple[Place, str]:
    """A run that waits for one interrupt."""
    place, ids = w.asked()
    return place, ids[0]


@row("answer", "interrupt", "open", "the last one of its pause")
def _(w: World) -> Case:
    _place, i = one(w)
    return of_interrupt(w, i, lambda: w.answer(i).code)


@row("answer", "interrupt", "open", "another one is open")
def _(w: World) -> Case:
    _place, ids = w.asked(approval("c1"), approval("c2"))
    return of_interrupt(w, ids[0], lambda: w.answer(ids[0]).code)


@row("answer", "interrupt", "open", "a cancel")
def _(w: World) -> Case:
    _place, i = one(w)
    return of_interrupt(w, i, lambda: w.answer(i, Cancel()).code)


@row("answer", "interrupt", "open", "a kind that is not offered", guards="offers")
def _(w: World) -> Case:
    _place, i = one(w)
    return of_interrupt(w, i, lambda: w.answer(i, Respond(payload=1)).code)


@row("answer", "interrupt", "open", "another digest was seen", guards="seen")
def _(w: World) -> Case:
    _place, i = one(w)
    return of_interrupt(w, i, lambda: w.answer(i, seen="1:other").code)


@row("answer", "interrupt", "resolved", "by this op, the run still ready", guards="own-op")
def _(w: World) -> Case:
    _place, i = one(w)
    w.answer(i)
    return of_interrupt(w, i, lambda: w.answer(i).code)


@row("answer", "interrupt", "resolved", "by this op, the run leased")
def _(w: World) -> Case:
    place, i = one(w)
    w.answer(i)
    w.lease(place, "n2")
    return of_interrupt(w, i, lambda: w.answer(i).code)


@row("answer", "interrupt", "resolved", "by another op", guards="decided")
def _(w: World) -> Case:
    _place, i = one(w)
    w.answer(i)
    return of_interrupt(w, i, lambda: w.answer(i, by=BOB).code)


@row("answer", "interrupt", "cancelled", "by another op")
def _(w: World) -> Case:
    _place, i = one(w)
    w.answer(i, Cancel())
    return of_interrupt(w, i, lambda: w.answer(i, by=BOB).code)


@row("answer", "interrupt", "expired", "whatever the op")
def _(w: World) -> Case:
    _place, i = one(w)
    w.forward(hours=25)
    w.expire(i)
    return of_interrupt(w, i, lambda: w.answer(i, op="op-1").code)


@row("answer", "interrupt", "withdrawn", "whatever the op")
def _(w: World) -> Case:
    place, i = one(w)
    w.withdraw(place, op="wd-1")
    return of_interrupt(w, i, lambda: w.answer(i, op="wd-1").code)


@row("answer", "interrupt", "superseded", "whatever the op")
def _(w: World) -> Case:
    _place, ids = w.asked(approval("c1"), approval("c2"), mode=Mode.FIRST)
    w.answer(ids[0], op="op-1")
    return of_interrupt(w, ids[1], lambda: w.answer(ids[1], op="op-1").code)


@row("answer", "interrupt", "none", "no such interrupt")
def _(w: World) -> Case:
    return of_interrupt(w, NOWHERE, lambda: w.answer_unknown(NOWHERE).code)


# by call


def by_call(
    w: World, place: Place, seq: int, *, op: str = "op-1", within: timedelta = timedelta(minutes=10)
) -> str:
    return w.answer_call("c1", Complete(value=1), run=place.run, seq=seq, op=op, within=within).code


@row("answer by call", "interrupt", "none", "a sequence ahead of the run")
def _(w: World) -> Case:
    place, _lease = w.started()
    return of_interrupt(w, NOWHERE, lambda: by_call(w, place, 1))


@row("answer by call", "interrupt", "none", "a call id never seen")
def _(w: World) -> Case:
    return of_interrupt(w, NOWHERE, lambda: w.answer_call("c1").code)


@row("answer by call", "interrupt", "none", "the slot has an answer, of this op")
def _(w: World) -> Case:
    place, _lease = w.started()
    by_call(w, place, 1)
    return of_interrupt(w, NOWHERE, lambda: by_call(w, place, 1))


@row("answer by call", "interrupt", "none", "the slot has an answer, of another op", guards="slot")
def _(w: World) -> Case:
    place, _lease = w.started()
    by_call(w, place, 1)
    return of_interrupt(w, NOWHERE, lambda: by_call(w, place, 1, op="op-2"))


@row("answer by call", "interrupt", "none", "its time is over", guards="park-in-time")
def _(w: World) -> Case:
    place, _lease = w.started()
    return of_interrupt(w, NOWHERE, lambda: by_call(w, place, 1, within=PAST))


@row("answer by call", "interrupt", "none", "good for longer than the server accepts", guards="park-window")
def _(w: World) -> Case:
    place, _lease = w.started()
    return of_interrupt(w, NOWHERE, lambda: by_call(w, place, 1, within=FAR))


@row("answer by call", "interrupt", "none", "the call has its result", guards="call-resolved")
def _(w: World) -> Case:
    place, ids = w.asked(completion())
    w.answer(ids[0], Complete(value=1))
    return of_interrupt(w, NOWHERE, lambda: by_call(w, place, 2, op="op-2"))


@row("answer by call", "interrupt", "none", "the run is closed")
def _(w: World) -> Case:
    place, _lease = finished(w)
    return of_interrupt(w, NOWHERE, lambda: by_call(w, place, 1))


@row("answer by call", "interrupt", "none", "the sequence has passed", guards="call-passed")
def _(w: World) -> Case:
    place, _ids = w.asked(approval("c2"))
    return of_interrupt(w, NOWHERE, lambda: by_call(w, place, 1))


@row("answer by call", "interrupt", "none", "the run is of another session", guards="call-session")
def _(w: World) -> Case:
    place, _lease = w.started()
    return of_interrupt(w, NOWHERE, lambda: w.answer_call("c1", run=place.run, seq=1, session="other").code)


@row("answer", "interrupt", "open", "by call, run and sequence", guards="call-seq")
def _(w: World) -> Case:
    place, ids = w.asked(completion())
    return of_interrupt(w, ids[0], lambda: by_call(w, place, 1))


@row("answer", "interrupt", "open", "by call alone, seen once")
def _(w: World) -> Case:
    _place, i = one(w)
    return of_interrupt(w, i, lambda: w.answer_call("c1").code)


def twice(w: World) -> tuple[str, str]:
    """A call id that two interrupts of the session have had; the first was approved by op-1."""
    place, ids = w.asked()
    w.answer(ids[0], op="op-1")
    outcome = w.ask(w.leased(place, "n2"), approval("c1", 400))
    assert outcome.code == "accepted"
    return ids[0], w.run_address(place).interrupts[-1].interrupt


@row("answer", "interrupt", "open", "by call alone, seen twice, none by this op", guards="sole-call")
def _(w: World) -> Case:
    _first, second = twice(w)
    return of_interrupt(w, second, lambda: w.answer_call("c1", op="op-2").code)


@row("answer", "interrupt", "resolved", "by call alone, seen twice, one by this op", guards="own-call")
def _(w: World) -> Case:
    first, _second = twice(w)
    return of_interrupt(w, first, lambda: w.answer_call("c1", op="op-1").code)


# what it does to the run


def settling(w: World, mode: Mode, count: int = 2) -> Case:
    calls = [approval(f"c{n}") for n in range(count)]
    place, ids = w.asked(*calls, mode=mode)
    return of_run(w, place, lambda: w.answer(ids[0]).code)


@row("settle", "run", "waiting", "the last open one", guards="complete")
def _(w: World) -> Case:
    return settling(w, Mode.ALL, 1)


@row("settle", "run", "waiting", "not the last one")
def _(w: World) -> Case:
    return settling(w, Mode.ALL)


@row("settle", "run", "waiting", "mode each: not the last one")
def _(w: World) -> Case:
    return settling(w, Mode.EACH)


@row("settle", "run", "waiting", "mode first")
def _(w: World) -> Case:
    return settling(w, Mode.FIRST)


@row("settle", "run", "leased", "mode each")
def _(w: World) -> Case:
    place, _lease, ids = each(w)
    return of_run(w, place, lambda: w.answer(ids[1]).code)


@row("settle", "run", "dead", "mode each")
def _(w: World) -> Case:
    place, lease, ids = each(w)
    w.fail(lease, final=True)
    return of_run(w, place, lambda: w.answer(ids[1]).code)


# what it does to the call


@row("settle", "call", "awaiting_confirmation", "rejected")
def _(w: World) -> Case:
    place, i = one(w)
    return of_call(w, place, lambda: w.answer(i, Reject(reason="no")).code)


@row("settle", "call", "awaiting_confirmation", "approved")
def _(w: World) -> Case:
    place, i = one(w)
    return of_call(w, place, lambda: w.answer(i).code)


@row("settle", "call", "awaiting_completion", "completed")
def _(w: World) -> Case:
    place, ids = w.asked(completion())
    return of_call(w, place, lambda: w.answer(ids[0], Complete(value=1)).code)


@row("settle", "call", "awaiting_completion", "completed before its pause")
def _(w: World) -> Case:
    place, _ids = w.asked(completion())
    return of_call(w, place, lambda: by_call(w, place, 2))


# by the token of a call


def started_job(w: World) -> tuple[Place, Leased]:
    """A run whose worker starts a job."""
    place, lease = w.started()
    begin(w, lease, long=True)
    return place, lease


@row("answer by call", "interrupt", "none", "by token, before its question")
def _(w: World) -> Case:
    place, _lease = started_job(w)
    return of_interrupt(w, NOWHERE, lambda: by_token(w, place).code)


@row("answer by call", "interrupt", "none", "by token, the slot has an answer of this op")
def _(w: World) -> Case:
    place, _lease = started_job(w)
    by_token(w, place)
    return of_interrupt(w, NOWHERE, lambda: by_token(w, place).code)


@row("answer by call", "interrupt", "none", "by token, the call has its result")
def _(w: World) -> Case:
    place, lease = started_job(w)
    end(w, lease)
    return of_interrupt(w, NOWHERE, lambda: by_token(w, place).code)


@row("answer by call", "interrupt", "none", "by token, the run is closed", guards="token-closed")
def _(w: World) -> Case:
    place, lease = started_job(w)
    w.finish(lease)
    return of_interrupt(w, NOWHERE, lambda: by_token(w, place).code)


@row("answer", "interrupt", "open", "by token, whichever pause asked", guards="token-asked")
def _(w: World) -> Case:
    place, lease = started_job(w)
    w.ask(lease, approval("c2"))
    w.answer(w.run_address(place).interrupts[0].interrupt)
    w.ask(w.leased(place, "n2"), completion())
    return of_interrupt(w, w.run_address(place).interrupts[0].interrupt, lambda: by_token(w, place).code)


@row("settle", "call", "awaiting_completion", "completed by token before its pause")
def _(w: World) -> Case:
    place, _lease = started_job(w)
    return of_call(w, place, lambda: by_token(w, place).code)
