"""Rows of begin, end, handle and cut."""

from dataclasses import replace
from typing import Any

from broker.core.answers import Approve, Edit, Reject
from broker.core.limits import Limits
from broker.core.states import Mode
from broker.store.commands import entries
from broker.store.commands.runs import Leased

from ..journaling import DONE, MORE, REFUND, again, begin, beginning, by_token, cut, end, handle, settled
from ..world import World, approval
from .case import Case, of_call, of_run, row, said


def other(lease: Leased) -> Leased:
    """The lease, with the nonce of another one."""
    return replace(lease, token=replace(lease.token, nonce="other"))


def on_none(w: World, **how: Any) -> Case:
    """A call that nothing is known of."""
    place, lease = w.started()
    return of_call(w, place, lambda: said(w, beginning(w, lease, **how)))


@row("begin", "call", "none", "not gated")
def _(w: World) -> Case:
    return on_none(w)


@row("begin", "call", "none", "long-running")
def _(w: World) -> Case:
    return on_none(w, long=True)


@row("begin", "call", "none", "gated, nobody was asked")
def _(w: World) -> Case:
    return on_none(w, gated=True)


@row("begin", "call", "none", "another token")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_call(w, place, lambda: said(w, beginning(w, other(lease))))


@row("begin", "call", "none", "the journal is full", guards="journal-room")
def _(w: World) -> Case:
    place, lease = w.started()
    w.settings = w.settings.model_copy(update={"limits": Limits(journal_entries=1)})
    begin(w, lease, "c0")
    end(w, lease, "c0")
    return of_call(w, place, lambda: said(w, beginning(w, lease)))


def on_approved(w: World, **how: Any) -> Case:
    """A call that was asked about and approved."""
    place, lease, one = settled(w)
    how.setdefault("interrupt", one)
    return of_call(w, place, lambda: said(w, beginning(w, lease, gated=True, **how)))


@row("begin", "call", "awaiting_confirmation", "approved")
def _(w: World) -> Case:
    return on_approved(w)


@row("begin", "call", "awaiting_confirmation", "approved, long-running")
def _(w: World) -> Case:
    return on_approved(w, long=True)


@row("begin", "call", "awaiting_confirmation", "its question is not known")
def _(w: World) -> Case:
    return on_approved(w, interrupt="")


@row(
    "begin",
    "call",
    "awaiting_confirmation",
    "other arguments than were asked about",
    guards="question-digest",
)
def _(w: World) -> Case:
    return on_approved(w, asked=MORE)


def on_open(w: World, *, gated: bool) -> Case:
    """A call that is asked about while its run goes on."""
    place, ids = w.asked(approval("c1"), approval("c2"), mode=Mode.EACH)
    w.answer(ids[1])
    lease = w.leased(place, "n2")
    return of_call(w, place, lambda: said(w, beginning(w, lease, gated=gated, interrupt=ids[0])))


@row("begin", "call", "awaiting_confirmation", "its question is open", guards="gate-open")
def _(w: World) -> Case:
    return on_open(w, gated=True)


@row("begin", "call", "awaiting_confirmation", "its question is open, its tool not gated any more")
def _(w: World) -> Case:
    return on_open(w, gated=False)


@row("begin", "call", "awaiting_confirmation", "its question is lost", guards="gate-approved")
def _(w: World) -> Case:
    place, lease, one = settled(w)
    w.client.delete(w.key("interrupt", one))
    return of_call(w, place, lambda: said(w, beginning(w, lease, gated=True, interrupt=one)))


@row(
    "begin", "call", "awaiting_confirmation", "edited, and what was asked for would run", guards="gate-digest"
)
def _(w: World) -> Case:
    place, lease, one = settled(w, Edit(arguments={"amount": 30}), offers=("approve", "edit"))
    return of_call(w, place, lambda: said(w, beginning(w, lease, gated=True, interrupt=one)))


def on_begun(w: World, *, dies: bool = True, long: bool = False, **how: Any) -> Case:
    """A call that was begun, and whose worker died since."""
    place, lease = w.started()
    begin(w, lease, long=long)
    lease = again(w, place) if dies else lease
    return of_call(w, place, lambda: said(w, beginning(w, lease, long=long, **how)))


@row("begin", "call", "pending_result", "under this lease")
def _(w: World) -> Case:
    return on_begun(w, dies=False)


@row("begin", "call", "pending_result", "under an earlier lease, not to run again unasked", guards="doubt")
def _(w: World) -> Case:
    return on_begun(w)


@row("begin", "call", "pending_result", "under an earlier lease, may run again")
def _(w: World) -> Case:
    return on_begun(w, again=True)


@row("begin", "call", "pending_result", "other arguments")
def _(w: World) -> Case:
    return on_begun(w, again=True, asked=MORE)


@row("begin", "call", "pending_result", "begun without a question, gated now", guards="gate-begun")
def _(w: World) -> Case:
    return on_begun(w, again=True, gated=True)


@row("begin", "call", "pending_result", "approved, its question is not known")
def _(w: World) -> Case:
    place, lease, one = settled(w)
    begin(w, lease, gated=True, interrupt=one)
    later = again(w, place, "n3")
    return of_call(w, place, lambda: said(w, beginning(w, later, gated=True, again=True)))


@row("begin", "call", "awaiting_completion", "its handle is known")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease, long=True)
    handle(w, lease)
    later = again(w, place)
    return of_call(w, place, lambda: said(w, beginning(w, later, long=True, again=True)))


@row("begin", "call", "awaiting_completion", "under an earlier lease, no handle, not unasked")
def _(w: World) -> Case:
    return on_begun(w, long=True)


@row("begin", "call", "awaiting_completion", "under an earlier lease, no handle, may run again")
def _(w: World) -> Case:
    return on_begun(w, long=True, again=True)


@row("begin", "call", "resolved", "its result is recorded", guards="journal-stored")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease)
    end(w, lease)
    return of_call(w, place, lambda: said(w, beginning(w, lease)))


@row("begin", "call", "resolved", "completed before its question", guards="early-waits")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease, long=True)
    by_token(w, place)
    return of_call(w, place, lambda: said(w, beginning(w, lease, long=True)))


@row("begin", "call", "resolved", "its question ended")
def _(w: World) -> Case:
    place, lease, one = settled(w, Reject(reason="no"))
    return of_call(w, place, lambda: said(w, beginning(w, lease, gated=True, interrupt=one)))


@row("begin", "call", "resolved", "its question ended and is not known")
def _(w: World) -> Case:
    place, lease, _one = settled(w, Reject(reason="no"))
    return of_call(w, place, lambda: said(w, beginning(w, lease, gated=True)))


# handle


@row("handle", "call", "awaiting_completion", "its token")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease, long=True)
    return of_call(w, place, lambda: said(w, entries.handle(lease, "c1", "job-1")))


@row("handle", "call", "awaiting_completion", "another token")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease, long=True)
    return of_call(w, place, lambda: said(w, entries.handle(other(lease), "c1", "job-1")))


@row("handle", "call", "resolved", "completed meanwhile")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease, long=True)
    by_token(w, place)
    return of_call(w, place, lambda: said(w, entries.handle(lease, "c1", "job-1")))


# end


@row("end", "call", "none", "it cannot be begun")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_call(w, place, lambda: said(w, entries.end(lease, "c1", DONE, REFUND.digest)))


@row("end", "call", "none", "nobody began it", guards="end-begun")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_call(w, place, lambda: said(w, entries.end(lease, "c1", DONE)))


@row("end", "call", "awaiting_confirmation", "nobody began it")
def _(w: World) -> Case:
    place, lease, _one = settled(w, Approve())
    return of_call(w, place, lambda: said(w, entries.end(lease, "c1", DONE)))


@row("end", "call", "pending_result", "its token")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease)
    return of_call(w, place, lambda: said(w, entries.end(lease, "c1", DONE)))


@row("end", "call", "pending_result", "another token")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease)
    return of_call(w, place, lambda: said(w, entries.end(other(lease), "c1", DONE)))


@row("end", "call", "awaiting_completion", "it ended at once")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease, long=True)
    return of_call(w, place, lambda: said(w, entries.end(lease, "c1", DONE)))


@row("end", "call", "resolved", "its result is recorded", guards="end-final")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease)
    end(w, lease, value="first")
    return of_call(w, place, lambda: said(w, entries.end(lease, "c1", DONE)))


@row("end", "call", "resolved", "its question ended")
def _(w: World) -> Case:
    place, lease, _one = settled(w, Reject(reason="no"))
    return of_call(w, place, lambda: said(w, entries.end(lease, "c1", DONE)))


@row("end", "call", "resolved", "completed before its question", guards="end-early")
def _(w: World) -> Case:
    place, lease = w.started()
    begin(w, lease, long=True)
    by_token(w, place)
    return of_call(w, place, lambda: said(w, entries.end(lease, "c1", DONE)))


# cut


@row("cut", "run", "leased", "the next number")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: said(w, entries.cut(lease, 1, None)))


@row("cut", "run", "leased", "the same number")
def _(w: World) -> Case:
    place, lease = w.started()
    cut(w, lease)
    return of_run(w, place, lambda: said(w, entries.cut(lease, 1, None)))


@row("cut", "run", "leased", "another number", guards="cut-order")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: said(w, entries.cut(lease, 2, None)))


@row("cut", "run", "leased", "another token")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: said(w, entries.cut(other(lease), 1, None)))
