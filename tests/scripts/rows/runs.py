"""Rows of start, adopt, lease, renew, release, fail, finish, requeue."""

from dataclasses import replace
from datetime import timedelta

from broker.core.states import Mode
from broker.store.commands import runs
from broker.store.commands.runs import Leased, Place

from ..world import World, approval
from .case import Case, of_run, row, said, told

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


# lease


def taken(w: World, place: Place, nonce: str, seq: str = "") -> str:
    """What one who wants a lease is told; `replayed` where it has it already."""
    before = w.field("run", place.run, "fence")
    at, span = (place.run, place.pool, place.session), w.settings.lease
    found = w.do(runs.lease(w.p, [at], nonces=[nonce], holder="w", span=span, seq=seq))
    if found is None:
        return "nothing"
    return "replayed" if str(found.token.fence) == before else "leased"


@row("lease", "run", "ready", "free")
def _(w: World) -> Case:
    place = w.place()
    w.start(place)
    return of_run(w, place, lambda: taken(w, place, "n1"))


@row("lease", "run", "leased", "run out")
def _(w: World) -> Case:
    place, _lease = w.started()
    w.forward(seconds=16)
    return of_run(w, place, lambda: taken(w, place, "n2"))


@row("lease", "run", "leased", "the same nonce")
def _(w: World) -> Case:
    place, _lease = w.started()
    return of_run(w, place, lambda: taken(w, place, "n1"))


@row("lease", "run", "leased", "held by another", guards="lease-state")
def _(w: World) -> Case:
    place, _lease = w.started()
    return of_run(w, place, lambda: taken(w, place, "n2"))


@row("lease", "run", "ready", "another sequence", guards="lease-seq")
def _(w: World) -> Case:
    place = w.place()
    w.start(place)
    return of_run(w, place, lambda: taken(w, place, "n1", "1"))


@row("lease", "run", "ready", "its back-off is not over", guards="back-off")
def _(w: World) -> Case:
    place, lease = w.started()
    w.fail(lease, pause=5)
    return of_run(w, place, lambda: taken(w, place, "n2"))


@row("lease", "run", "ready", "too many attempts", guards="lease-tries")
def _(w: World) -> Case:
    place, lease = w.started()
    w.fail(lease)
    w.settings = w.settings.model_copy(update={"tries": 1})
    return of_run(w, place, lambda: taken(w, place, "n2"))


@row("lease", "run", "leased", "run out, too many attempts")
def _(w: World) -> Case:
    place = out_of_tries(w)
    return of_run(w, place, lambda: taken(w, place, "late"))


@row("lease", "run", "waiting", "whatever")
def _(w: World) -> Case:
    place, _ids = w.asked()
    return of_run(w, place, lambda: taken(w, place, "n2"))


@row("lease", "run", "dead", "whatever")
def _(w: World) -> Case:
    place, _lease = dead(w)
    return of_run(w, place, lambda: taken(w, place, "n2"))


@row("lease", "run", "finished", "whatever")
def _(w: World) -> Case:
    place, _lease = finished(w)
    return of_run(w, place, lambda: taken(w, place, "n2"))


@row("lease", "run", "none", "whatever")
def _(w: World) -> Case:
    place = w.place()
    return of_run(w, place, lambda: taken(w, place, "n1"))


# renew, release, fail: under a lease


def stranger(lease: Leased) -> Leased:
    """The same lease number with another nonce."""
    return replace(lease, token=replace(lease.token, nonce="stranger"))


def renewed(w: World, lease: Leased) -> str:
    """What one who renews is told."""
    return "stale_lease" if w.renew(lease) is None else "ok"


@row("renew", "run", "leased", "its token")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: renewed(w, lease))


@row("renew", "run", "leased", "its token, run out, nobody came")
def _(w: World) -> Case:
    place, lease = w.started()
    w.forward(minutes=5)
    return of_run(w, place, lambda: renewed(w, lease))


@row("renew", "run", "leased", "another token")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: renewed(w, stranger(lease)))


@row("renew", "run", "ready", "the token it had")
def _(w: World) -> Case:
    place, lease = w.started()
    w.release(lease)
    return of_run(w, place, lambda: renewed(w, lease))


@row("release", "run", "leased", "its token")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: told(lambda: w.release(lease)))


@row("release", "run", "leased", "another token")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: told(lambda: w.release(stranger(lease))))


@row("release", "run", "ready", "the token it had")
def _(w: World) -> Case:
    place, lease = w.started()
    w.fail(lease)
    return of_run(w, place, lambda: told(lambda: w.release(lease)))


@row("fail", "run", "leased", "attempts left, no pause")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: told(lambda: w.fail(lease)))


@row("fail", "run", "leased", "attempts left, after a pause")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: told(lambda: w.fail(lease, pause=2)))


@row("fail", "run", "leased", "the last attempt", guards="tries")
def _(w: World) -> Case:
    place, lease = w.started()
    for n in range(w.settings.tries - 1):
        w.fail(lease)
        lease = w.leased(place, f"again-{n}")
    return of_run(w, place, lambda: told(lambda: w.fail(lease)))


@row("fail", "run", "leased", "said to be final")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: told(lambda: w.fail(lease, final=True)))


@row("fail", "run", "leased", "another token")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_run(w, place, lambda: told(lambda: w.fail(stranger(lease))))


@row("fail", "run", "ready", "the token it had")
def _(w: World) -> Case:
    place, lease = w.started()
    w.release(lease)
    return of_run(w, place, lambda: told(lambda: w.fail(lease)))


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
    w.client.hdel(w.key("run", place.run), "fresh")
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
