"""Rows of what nobody calls for: expiry, lost leases, bells; and of withdrawal."""

from broker.core.answers import Reject
from broker.core.models import Audience, OnExpiry
from broker.store.commands import sweep, wakes
from broker.store.commands.runs import Place

from ..world import POOL, World, approval
from .case import Case, of_call, of_interrupt, of_run, row, said
from .runs import dead, each, finished, handed, out_of_tries

GROUP = str(Audience.APPROVALS)


def expired(w: World, interrupt: str) -> str:
    """What the sweeper is told."""
    return said(w, sweep.expire(w.p, [w.at(interrupt)], decider=True)).replace("expired", "ended")


def due(w: World, policy: OnExpiry) -> str:
    """An interrupt whose deadline has passed."""
    answer = Reject(reason="late") if policy is OnExpiry.DEFAULT else None
    _place, ids = w.asked(approval(on_expiry=policy, default_answer=answer))
    w.forward(hours=25)
    return ids[0]


@row("expire", "interrupt", "open", "due, policy deny")
def _(w: World) -> Case:
    i = due(w, OnExpiry.DENY)
    return of_interrupt(w, i, lambda: expired(w, i))


@row("expire", "interrupt", "open", "due, policy cancel")
def _(w: World) -> Case:
    i = due(w, OnExpiry.CANCEL)
    return of_interrupt(w, i, lambda: expired(w, i))


@row("expire", "interrupt", "open", "due, policy default answer")
def _(w: World) -> Case:
    i = due(w, OnExpiry.DEFAULT)
    return of_interrupt(w, i, lambda: expired(w, i))


@row("expire", "interrupt", "open", "due, met by an answer", guards="deadline")
def _(w: World) -> Case:
    i = due(w, OnExpiry.DENY)
    return of_interrupt(w, i, lambda: w.answer(i).code)


@row("expire", "interrupt", "open", "due, met by a withdrawal", guards="withdraw-due")
def _(w: World) -> Case:
    place, ids = w.asked()
    w.forward(hours=25)
    return of_interrupt(w, ids[0], lambda: w.withdraw(place).code)


@row("expire", "interrupt", "open", "due, policy wait")
def _(w: World) -> Case:
    i = due(w, OnExpiry.WAIT)
    return of_interrupt(w, i, lambda: expired(w, i))


@row("expire", "interrupt", "open", "not due", guards="expire-check")
def _(w: World) -> Case:
    _place, ids = w.asked()
    return of_interrupt(w, ids[0], lambda: expired(w, ids[0]))


@row("expire", "interrupt", "resolved", "past its deadline")
def _(w: World) -> Case:
    _place, ids = w.asked()
    w.answer(ids[0])
    w.forward(hours=25)
    return of_interrupt(w, ids[0], lambda: expired(w, ids[0]))


@row("settle", "call", "awaiting_confirmation", "nobody answered")
def _(w: World) -> Case:
    place, ids = w.asked()
    w.forward(hours=25)
    return of_call(w, place, lambda: expired(w, ids[0]))


# withdraw


@row("withdraw", "run", "waiting", "its sequence")
def _(w: World) -> Case:
    place, _ids = w.asked()
    return of_run(w, place, lambda: w.withdraw(place).code)


@row("withdraw", "run", "ready", "its sequence")
def _(w: World) -> Case:
    place, ids = w.asked()
    w.answer(ids[0])
    return of_run(w, place, lambda: w.withdraw(place).code)


@row("withdraw", "run", "dead", "its sequence")
def _(w: World) -> Case:
    place, _lease = dead(w)
    return of_run(w, place, lambda: w.withdraw(place, 0).code)


@row("withdraw", "run", "leased", "something is open")
def _(w: World) -> Case:
    place, _lease, _ids = each(w)
    return of_run(w, place, lambda: w.withdraw(place).code)


def answered_and_leased(w: World) -> Place:
    """A run that a worker has, with nothing open."""
    place, ids = w.asked()
    w.answer(ids[0])
    w.lease(place, "n2")
    return place


@row("withdraw", "run", "leased", "nothing is open", guards="withdraw-leased")
def _(w: World) -> Case:
    place = answered_and_leased(w)
    return of_run(w, place, lambda: w.withdraw(place).code)


@row("withdraw", "run", "ready", "refused before, under a lease", guards="withdraw-refused")
def _(w: World) -> Case:
    place = answered_and_leased(w)
    w.withdraw(place)
    w.forward(seconds=16)
    w.reclaim(place)
    return of_run(w, place, lambda: w.withdraw(place).code)


@row("withdraw", "run", "waiting", "another sequence", guards="withdraw-seq")
def _(w: World) -> Case:
    place, _ids = w.asked()
    return of_run(w, place, lambda: w.withdraw(place, 2).code)


@row("withdraw", "run", "finished", "another op")
def _(w: World) -> Case:
    place, _lease = finished(w)
    return of_run(w, place, lambda: w.withdraw(place, 0).code)


@row("withdraw", "run", "withdrawn", "another op")
def _(w: World) -> Case:
    place, _ids = w.asked()
    w.withdraw(place)
    return of_run(w, place, lambda: w.withdraw(place, op="wd-2").code)


@row("withdraw", "run", "withdrawn", "its own op", guards="withdraw-op")
def _(w: World) -> Case:
    place, _ids = w.asked()
    w.withdraw(place)
    return of_run(w, place, lambda: w.withdraw(place).code)


@row("withdraw", "run", "none", "no such run")
def _(w: World) -> Case:
    place = w.place()
    return of_run(w, place, lambda: w.withdraw(place).code)


@row("withdraw", "interrupt", "open", "its run is withdrawn")
def _(w: World) -> Case:
    place, ids = w.asked()
    return of_interrupt(w, ids[0], lambda: w.withdraw(place).code)


# leases that ran out


def reclaimed(w: World, place: Place, pause: float = 0) -> str:
    return w.reclaim(place, pause=pause)


@row("reclaim", "run", "leased", "run out, no pause")
def _(w: World) -> Case:
    place, _lease = w.started()
    w.forward(seconds=16)
    return of_run(w, place, lambda: reclaimed(w, place))


@row("reclaim", "run", "leased", "run out, after a pause")
def _(w: World) -> Case:
    place, _lease = w.started()
    w.forward(seconds=16)
    return of_run(w, place, lambda: reclaimed(w, place, 2))


@row("reclaim", "run", "leased", "run out, the last attempt")
def _(w: World) -> Case:
    place = out_of_tries(w)
    return of_run(w, place, lambda: reclaimed(w, place))


@row("reclaim", "run", "leased", "not run out", guards="reclaim-time")
def _(w: World) -> Case:
    place, _lease = w.started()
    return of_run(w, place, lambda: reclaimed(w, place))


@row("reclaim", "run", "ready", "its back-off is over")
def _(w: World) -> Case:
    place, lease = w.started()
    w.fail(lease, pause=5)
    w.forward(seconds=6)
    return of_run(w, place, lambda: reclaimed(w, place))


@row("reclaim", "run", "ready", "its back-off is not over", guards="offer-time")
def _(w: World) -> Case:
    place, lease = w.started()
    w.fail(lease, pause=5)
    return of_run(w, place, lambda: reclaimed(w, place))


@row("reclaim", "run", "ready", "handed to a job, whose time is over")
def _(w: World) -> Case:
    place = handed(w)
    w.forward(seconds=31)
    return of_run(w, place, lambda: reclaimed(w, place))


@row("reclaim", "run", "ready", "handed to a job, whose time is not over")
def _(w: World) -> Case:
    place = handed(w)
    return of_run(w, place, lambda: reclaimed(w, place))


# bells


def unread(w: World, *, period: bool = True) -> str:
    """An open interrupt nobody has seen, a ring period later, with a group that was there from the beginning."""
    w.client.execute_command("XGROUP", "CREATE", w.key("interrupts"), GROUP, "0", "MKSTREAM")
    _place, ids = w.asked()
    if period:
        w.forward(seconds=2)
    return ids[0]


def handed_out(w: World) -> str:
    """The id of the entry that a reader of the group was given."""
    reply = w.client.execute_command("XREADGROUP", "GROUP", GROUP, "r", "STREAMS", w.key("interrupts"), ">")
    rows = reply[w.key("interrupts").encode()] if isinstance(reply, dict) else reply[0][1]
    entry: bytes = rows[-1][0]
    return entry.decode()


@row("ring again", "interrupt", "open", "its bell was trimmed")
def _(w: World) -> Case:
    i = unread(w)
    w.client.execute_command("XTRIM", w.key("interrupts"), "MAXLEN", 0)
    return of_interrupt(w, i, lambda: w.ring(i))


@row("ring again", "interrupt", "open", "its bell was handed out and lost")
def _(w: World) -> Case:
    i = unread(w)
    w.client.xack(w.key("interrupts"), GROUP, handed_out(w))
    return of_interrupt(w, i, lambda: w.ring(i))


@row("ring again", "interrupt", "open", "its bell is on its way", guards="ring-ahead ring-lost")
def _(w: World) -> Case:
    i = unread(w)
    return of_interrupt(w, i, lambda: w.ring(i))


@row("ring again", "interrupt", "open", "its bell is in a reader's hands", guards="ring-pending")
def _(w: World) -> Case:
    i = unread(w)
    handed_out(w)
    return of_interrupt(w, i, lambda: w.ring(i))


@row("ring again", "interrupt", "open", "rung within the period", guards="ring-period")
def _(w: World) -> Case:
    i = unread(w, period=False)
    return of_interrupt(w, i, lambda: w.ring(i))


@row("ring again", "interrupt", "open", "seen", guards="ring-seen")
def _(w: World) -> Case:
    i = unread(w)
    entry = sweep.Entry(w.p, handed_out(w), GROUP, w.at(i))
    w.do(sweep.seen(w.p, GROUP, [entry]))
    return of_interrupt(w, i, lambda: w.ring(i))


@row("ring again", "interrupt", "resolved", "whatever")
def _(w: World) -> Case:
    i = unread(w)
    w.answer(i)
    return of_interrupt(w, i, lambda: w.ring(i))


@row("ring again", "run", "ready", "nobody took it")
def _(w: World) -> Case:
    place = w.place()
    w.start(place)
    return of_run(w, place, lambda: said(w, wakes.ring_ready(w.p, [POOL], 1)))
