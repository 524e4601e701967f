"""Rows of start, adopt, lease, renew, release, fail, finish, requeue."""

from dataclasses import replace
from datetime import timedelta

from broker.core.states import Mode
from broker.store.commands import runs
from broker.store.commands.runs import Leased, Place
from tests.records import poke

from ..world import World, approval
from .case import Case, of_run, row, said

FAR = timedelta(hours=2)
PAST = timedelta()


def dead(w: World) -> tuple[Place, Leased]:
    """A run that died at its first attempt, and the lease it died under."""
    place, lease = w.started()
    w.fail(lease, final=True)
    return place, lease


def finished(w: World) -> tuple[Place, Leased]:
    """A finished run and its last lease."""
    place, lease = w.started()
    w.finish(lease)
    return place, lease


def each(w: World, answered: int = 1) -> tuple[Place, Leased, tuple[str, ...]]:
    """A run in mode each with two questions, leased again after some answers."""
    place, ids = w.asked(approval("c1"), approval("c2"), mode=Mode.EACH)
    for one in ids[:answered]:
        w.answer(one)
    return place, w.leased(place, "n2"), ids


def out_of_tries(w: World) -> Place:
    """A leased run whose last attempt ran out."""
    place = w.place()
    w.start(place)
    for n in range(w.settings.tries):
        w.leased(place, f"n{n}")
        w.forward(seconds=16)
    return place


def handed(w: World) -> Place:
    """A run that was handed to a job of another system, under the nonce `h1`."""
    place = w.place()
    w.start(place)
    assert w.hand(place) == 1
    return place


def stranger(lease: Leased) -> Leased:
    """The same lease number with another nonce."""
    return replace(lease, token=replace(lease.token, nonce="stranger"))


# start, adopt


@row("start", "run", "none", "in time")
def _(w: World) -> Case:
    place = w.place()
    return of_run(w, place, lambda: w.start(place).code)


@row("start", "run", "none", "its time is over", guards="start-in-time")
def _(w: World) -> Case:
    place = w.place()
    return of_run(w, place, lambda: w.start(place, within=PAST).code)


@row("start", "run", "none", "good for longer than the server accepts", guards="start-window")
def _(w: World) -> Case:
    place = w.place()
    return of_run(w, place, lambda: w.start(place, within=FAR).code)


@row("start", "run", "ready", "by the same op")
def _(w: World) -> Case:
    place = w.place()
    w.start(place)
    return of_run(w, place, lambda: w.start(place).code)


@row("start", "run", "leased", "by the same op")
def _(w: World) -> Case:
    place, _lease = w.started()
    return of_run(w, place, lambda: w.start(place).code)


@row("start", "run", "finished", "by the same op")
def _(w: World) -> Case:
    place, _lease = finished(w)
    return of_run(w, place, lambda: w.start(place).code)


@row("start", "run", "ready", "by another op", guards="start-op")
def _(w: World) -> Case:
    place = w.place()
    w.start(place)
    return of_run(w, place, lambda: w.start(place, op="start-2").code)


@row("start", "run", "finished", "by another op")
def _(w: World) -> Case:
    place, _lease = finished(w)
    return of_run(w, place, lambda: w.start(place, op="start-2").code)


def adopted(w: World, place: Place, nonce: str, within: timedelta = timedelta(minutes=10)) -> str:
    """What an adoption is told; `replayed` where it got a lease that was there before."""
    before = w.field("run", place.run, "lease_until")
    found = w.adopt(place, nonce=nonce, within=within)
    if not isinstance(found, Leased):
        return found.code
    return "replayed" if str(found.until) == before else "leased"


@row("adopt", "run", "none", "in time")
def _(w: World) -> Case:
    place = w.place()
    return of_run(w, place, lambda: adopted(w, place, "n1"))


@row("adopt", "run", "none", "its time is over", guards="adopt-in-time")
def _(w: World) -> Case:
    place = w.place()
    return of_run(w, place, lambda: adopted(w, place, "n1", PAST))


@row("adopt", "run", "none", "good for longer than the server accepts", guards="adopt-window")
def _(w: World) -> Case:
    place = w.place()
    return of_run(w, place, lambda: adopted(w, place, "n1", FAR))


@row("adopt", "run", "leased", "the same nonce, before the first pause")
def _(w: World) -> Case:
    place = w.place()
    w.adopt(place, nonce="n1")
    return of_run(w, place, lambda: adopted(w, place, "n1"))


@row("adopt", "run", "leased", "another nonce")
def _(w: World) -> Case:
    place = w.place()
    w.adopt(place, nonce="n1")
    return of_run(w, place, lambda: adopted(w, place, "n2"))


@row("adopt", "run", "ready", "it was started")
def _(w: World) -> Case:
    place = w.place()
    w.start(place)
    return of_run(w, place, lambda: adopted(w, place, "n1"))


# finish, requeue


def ended(w: World, lease: Leased) -> str:
    """What one who finishes is told."""
    return said(w, runs.finish(lease, by=b"", result=b"r"))


@row("finish", "run", "leased", "its token")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: ended(w, lease))


@row("finish", "run", "leased", "mode each: news nobody has read", guards="unread")
def _(w: World) -> Case:
    place, lease, ids = each(w)
    w.answer(ids[1])
    return of_run(w, place, lambda: ended(w, lease))


@row("finish", "run", "leased", "mode each: one is open", guards="spent")
def _(w: World) -> Case:
    place, lease, _ids = each(w)
    return of_run(w, place, lambda: ended(w, lease))


@row("finish", "run", "leased", "another token", guards="fence")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: ended(w, stranger(lease)))


@row("finish", "run", "finished", "its last token")
def _(w: World) -> Case:
    place, lease = finished(w)
    return of_run(w, place, lambda: ended(w, lease))


@row("finish", "run", "finished", "another token")
def _(w: World) -> Case:
    place, lease = finished(w)
    return of_run(w, place, lambda: ended(w, stranger(lease)))


@row("finish", "run", "ready", "the token it had")
def _(w: World) -> Case:
    place, lease = w.started()
    w.release(lease)
    return of_run(w, place, lambda: ended(w, lease))


@row("requeue", "run", "dead", "nothing is open")
def _(w: World) -> Case:
    place, lease = dead(w)
    return of_run(w, place, lambda: w.requeue(place, lease.token.fence).code)


@row("requeue", "run", "dead", "one is open, nothing is unread")
def _(w: World) -> Case:
    place, lease, _ids = each(w)
    w.fail(lease, final=True)
    # By hand: a run that dies in this mode had news. The table says all the same what would become of one without.
    poke(w.client, w.key("run", place.run), fresh=None)
    return of_run(w, place, lambda: w.requeue(place, lease.token.fence).code)


@row("requeue", "run", "dead", "one is open, one is unread")
def _(w: World) -> Case:
    place, lease, _ids = each(w)
    w.fail(lease, final=True)
    return of_run(w, place, lambda: w.requeue(place, lease.token.fence).code)


@row("requeue", "run", "dead", "another fence", guards="requeue-fence")
def _(w: World) -> Case:
    place, lease = dead(w)
    return of_run(w, place, lambda: w.requeue(place, lease.token.fence + 1).code)


@row("requeue", "run", "ready", "its own op")
def _(w: World) -> Case:
    place, lease = dead(w)
    w.requeue(place, lease.token.fence)
    return of_run(w, place, lambda: w.requeue(place, lease.token.fence).code)


@row("requeue", "run", "dead", "its own op, about an earlier death", guards="requeue-op")
def _(w: World) -> Case:
    place, lease = dead(w)
    w.requeue(place, lease.token.fence)
    w.fail(w.leased(place, "n2"), final=True)
    return of_run(w, place, lambda: w.requeue(place, lease.token.fence).code)


@row("requeue", "run", "waiting", "another op")
def _(w: World) -> Case:
    place, _ids = w.asked()
    return of_run(w, place, lambda: w.requeue(place, 1).code)


@row("requeue", "run", "none", "no such run")
def _(w: World) -> Case:
    place = w.place()
    return of_run(w, place, lambda: w.requeue(place, 1).code)
