"""Rows of lease, renew, release, fail."""

from broker.store.commands import runs
from broker.store.commands.runs import Leased, Place

from ..world import World
from .case import Case, of_run, row, told
from .runs import dead, finished, handed, out_of_tries, stranger

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


@row("lease", "run", "ready", "handed to a job, whose time is not over")
def _(w: World) -> Case:
    place = handed(w)
    return of_run(w, place, lambda: taken(w, place, "n1"))


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


# hand


def given(w: World, place: Place, nonce: str = "h2") -> str:
    """What one who hands a run to a job is told."""
    return "nothing" if w.hand(place, nonce) is None else "handed"


@row("hand", "run", "ready", "free")
def _(w: World) -> Case:
    place = w.place()
    w.start(place)
    return of_run(w, place, lambda: given(w, place))


@row("hand", "run", "ready", "the same nonce")
def _(w: World) -> Case:
    place = handed(w)
    return of_run(w, place, lambda: given(w, place, "h1"))


@row("hand", "run", "ready", "handed to a job already", guards="hand-once")
def _(w: World) -> Case:
    place = handed(w)
    return of_run(w, place, lambda: given(w, place))


@row("hand", "run", "ready", "its back-off is not over")
def _(w: World) -> Case:
    place, lease = w.started()
    w.fail(lease, pause=5)
    return of_run(w, place, lambda: given(w, place))


@row("hand", "run", "leased", "whatever", guards="hand-state")
def _(w: World) -> Case:
    place, _lease = w.started()
    return of_run(w, place, lambda: given(w, place))


@row("hand", "run", "waiting", "whatever")
def _(w: World) -> Case:
    place, _ids = w.asked()
    return of_run(w, place, lambda: given(w, place))


@row("hand", "run", "finished", "whatever")
def _(w: World) -> Case:
    place, _lease = finished(w)
    return of_run(w, place, lambda: given(w, place))


@row("hand", "run", "none", "whatever")
def _(w: World) -> Case:
    place = w.place()
    return of_run(w, place, lambda: given(w, place))


# renew, release, fail: under a lease


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
