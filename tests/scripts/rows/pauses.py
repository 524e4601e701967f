"""Rows of suspend and replace: what they do to runs, interrupts and calls."""

from dataclasses import replace as with_fields
from datetime import UTC, datetime, timedelta

from broker.core.answers import Complete
from broker.core.models import Interrupt
from broker.core.states import Mode
from broker.errors import StaleLease
from broker.store.commands.pauses import Pause
from broker.store.commands.runs import Leased, Place

from ..world import ANN, World, approval, completion
from .case import Case, of_call, of_interrupt, of_run, row
from .runs import FAR, PAST, dead, each, finished, stranger


def suspended(w: World, pause: Pause) -> str:
    """What one who suspends is told."""
    try:
        return w.suspend(pause).code
    except StaleLease as error:
        return error.code


def held(w: World, place: Place, lease: Leased, *interrupts: Interrupt, seq: int = 1) -> Pause:
    """A pause under a lease."""
    return w.pause(place, *(interrupts or (approval(),)), seq=seq, token=lease.token)


def alone(w: World) -> tuple[Place, Pause]:
    """A run that no worker of the broker holds, and its first pause."""
    place = w.place()
    pause = w.pause(place, approval())
    return place, pause


def early(w: World, place: Place, seq: int = 1, call: str = "c1") -> None:
    """An answer to a call that comes before its question."""
    w.answer_call(call, run=place.run, seq=seq)


def of_pause(w: World, place: Place, pause: Pause) -> Case:
    return of_run(w, place, lambda: suspended(w, pause))


# nothing there


@row("suspend", "run", "none", "the first thing known of it")
def _(w: World) -> Case:
    return of_pause(w, *alone(w))


@row("suspend", "run", "none", "all was answered early", guards="early-match")
def _(w: World) -> Case:
    place, pause = alone(w)
    early(w, place)
    return of_pause(w, place, pause)


@row("suspend", "run", "none", "not its first pause", guards="suspend-first")
def _(w: World) -> Case:
    place = w.place()
    return of_pause(w, place, w.pause(place, approval(), seq=2))


@row("suspend", "run", "none", "its time is over", guards="suspend-in-time")
def _(w: World) -> Case:
    place = w.place()
    return of_pause(w, place, w.pause(place, approval(), within=PAST))


@row("suspend", "run", "none", "good for longer than the server accepts", guards="suspend-window")
def _(w: World) -> Case:
    place = w.place()
    return of_pause(w, place, w.pause(place, approval(), within=FAR))


@row("suspend", "run", "none", "with a token")
def _(w: World) -> Case:
    _place, lease = w.started()
    other = w.place("other")
    return of_pause(w, other, held(w, other, lease))


# from a lease


@row("suspend", "run", "leased", "token and next sequence")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_pause(w, place, held(w, place, lease))


@row("suspend", "run", "leased", "all was answered early")
def _(w: World) -> Case:
    place, lease = w.started()
    early(w, place)
    return of_pause(w, place, held(w, place, lease))


@row("suspend", "run", "leased", "mode each, news nobody has read", guards="carry-ready carry-unread")
def _(w: World) -> Case:
    place, lease, ids = each(w)
    w.answer(ids[1])
    return of_pause(w, place, w.pause(place, approval("c3"), seq=2, mode=Mode.EACH, token=lease.token))


@row("suspend", "run", "leased", "another token")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_pause(w, place, held(w, place, stranger(lease)))


@row("suspend", "run", "leased", "another sequence", guards="suspend-seq")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_pause(w, place, held(w, place, lease, seq=2))


@row("suspend", "run", "leased", "no token")
def _(w: World) -> Case:
    place, _lease = w.started()
    return of_pause(w, place, w.pause(place, approval()))


@row("suspend", "run", "leased", "nothing that could end it", guards="nothing-open")
def _(w: World) -> Case:
    place, lease, ids = each(w, answered=2)
    return of_pause(w, place, w.pause(place, seq=2, mode=Mode.EACH, token=lease.token, keep=ids))


# again


def first_pause(w: World) -> tuple[Place, Pause]:
    """A run that waits, and the pause it was made by."""
    place, lease = w.started()
    pause = held(w, place, lease)
    w.suspend(pause)
    return place, pause


@row("suspend", "run", "waiting", "the same point and content")
def _(w: World) -> Case:
    return of_pause(w, *first_pause(w))


@row("suspend", "run", "ready", "the same point and content")
def _(w: World) -> Case:
    place, pause = first_pause(w)
    w.answer(pause.questions[0].id)
    return of_pause(w, place, pause)


@row("suspend", "run", "leased", "the same point and content")
def _(w: World) -> Case:
    place, pause = first_pause(w)
    w.answer(pause.questions[0].id)
    w.lease(place, "n2")
    return of_pause(w, place, pause)


@row("suspend", "run", "finished", "the same point and content")
def _(w: World) -> Case:
    place, pause = first_pause(w)
    w.answer(pause.questions[0].id)
    w.finish(w.leased(place, "n2"))
    return of_pause(w, place, pause)


@row("suspend", "run", "waiting", "the same point, other content", guards="point-digest")
def _(w: World) -> Case:
    place, pause = first_pause(w)
    other = held(w, place, w.started("other")[1], approval(message="may I?"))
    assert other.op == pause.op
    return of_pause(w, place, other)


@row("suspend", "run", "waiting", "another point")
def _(w: World) -> Case:
    place, _pause = first_pause(w)
    return of_pause(w, place, w.pause(place, approval("c9")))


@row("suspend", "run", "waiting", "a token")
def _(w: World) -> Case:
    place, lease = w.started()
    w.suspend(held(w, place, lease))
    return of_pause(w, place, held(w, place, lease, approval("c9"), seq=2))


@row("suspend", "run", "ready", "no token")
def _(w: World) -> Case:
    place = w.place()
    w.start(place)
    return of_pause(w, place, w.pause(place, approval()))


@row("suspend", "run", "dead", "the token it died with")
def _(w: World) -> Case:
    place, lease = dead(w)
    return of_pause(w, place, held(w, place, lease))


@row("suspend", "run", "finished", "no token")
def _(w: World) -> Case:
    place, _lease = finished(w)
    return of_pause(w, place, w.pause(place, approval()))


@row("suspend", "run", "withdrawn", "no token")
def _(w: World) -> Case:
    place, _ids = w.asked()
    w.withdraw(place)
    return of_pause(w, place, w.pause(place, approval(), seq=2))


# replace


def instead(w: World, place: Place, seq: int) -> Pause:
    """New input on a paused thread."""
    return w.pause(place, approval("c2"), seq=seq, replace=True)


@row("replace", "run", "waiting", "next sequence")
def _(w: World) -> Case:
    place, _ids = w.asked()
    return of_pause(w, place, instead(w, place, 2))


@row("replace", "run", "waiting", "all was answered early")
def _(w: World) -> Case:
    place, _ids = w.asked()
    early(w, place, 2, "c2")
    return of_pause(w, place, instead(w, place, 2))


@row("replace", "run", "waiting", "another sequence", guards="replace-seq")
def _(w: World) -> Case:
    place, _ids = w.asked()
    return of_pause(w, place, instead(w, place, 3))


@row("replace", "run", "leased", "no token")
def _(w: World) -> Case:
    place, ids = w.asked()
    w.answer(ids[0])
    w.lease(place, "n2")
    return of_pause(w, place, instead(w, place, 2))


@row("replace", "run", "ready", "no token")
def _(w: World) -> Case:
    place, ids = w.asked()
    w.answer(ids[0])
    return of_pause(w, place, instead(w, place, 2))


# the interrupts


@row("suspend", "interrupt", "none", "asked")
def _(w: World) -> Case:
    _place, pause = alone(w)
    return of_interrupt(w, pause.questions[0].id, lambda: suspended(w, pause))


@row("suspend", "interrupt", "none", "its deadline is past", guards="past-deadline")
def _(w: World) -> Case:
    past = datetime.fromtimestamp(w.now() / 1e6, UTC) - timedelta(seconds=1)
    pause = w.pause(w.place(), approval("c1"), approval("c2", expires_at=past))
    return of_interrupt(w, pause.questions[0].id, lambda: suspended(w, pause))


@row("supersede", "interrupt", "open", "mode first: another one is answered")
def _(w: World) -> Case:
    _place, ids = w.asked(approval("c1"), approval("c2"), mode=Mode.FIRST)
    return of_interrupt(w, ids[1], lambda: w.answer(ids[0]).code)


@row("supersede", "interrupt", "open", "its pause is replaced")
def _(w: World) -> Case:
    place, ids = w.asked()
    pause = instead(w, place, 2)
    return of_interrupt(w, ids[0], lambda: suspended(w, pause))


@row("supersede", "interrupt", "open", "mode each: the run asks again and does not keep it")
def _(w: World) -> Case:
    place, lease, ids = each(w)
    pause = w.pause(place, approval("c3"), seq=2, mode=Mode.EACH, token=lease.token)
    return of_interrupt(w, ids[1], lambda: suspended(w, pause))


# the calls


def asks(w: World, lease: Leased, *interrupts: Interrupt, keep: tuple[str, ...] = ()) -> str:
    return w.ask(lease, *interrupts, mode=Mode.EACH, keep=keep).code


@row("suspend", "call", "none", "asks whether it may run")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_call(w, place, lambda: asks(w, lease, approval()))


@row("suspend", "call", "none", "waits for its end elsewhere")
def _(w: World) -> Case:
    place, lease = w.started()
    return of_call(w, place, lambda: asks(w, lease, completion()))


def approved(w: World) -> tuple[Place, Leased]:
    """A run whose call was approved, leased again."""
    place, ids = w.asked(approval())
    w.answer(ids[0])
    return place, w.leased(place, "n2")


@row("suspend", "call", "awaiting_confirmation", "approved, asked again")
def _(w: World) -> Case:
    place, lease = approved(w)
    return of_call(w, place, lambda: asks(w, lease, approval()))


@row("suspend", "call", "awaiting_confirmation", "approved, now it runs elsewhere")
def _(w: World) -> Case:
    place, lease = approved(w)
    return of_call(w, place, lambda: asks(w, lease, completion()))


@row("suspend", "call", "awaiting_completion", "asked again beside the kept one")
def _(w: World) -> Case:
    place, ids = w.asked(completion("c1"), approval("c2"), mode=Mode.EACH)
    w.answer(ids[1])
    lease = w.leased(place, "n2")
    return of_call(w, place, lambda: asks(w, lease, completion("c1"), keep=ids[:1]))


def completed(w: World) -> tuple[Place, Leased]:
    """A run whose call was completed, leased again."""
    place, ids = w.asked(completion())
    w.answer(ids[0], Complete(value=1), ANN)
    return place, w.leased(place, "n2")


@row("suspend", "call", "resolved", "another action under its id")
def _(w: World) -> Case:
    place, lease = completed(w)
    return of_call(w, place, lambda: asks(w, lease, approval()))


@row("suspend", "call", "resolved", "it runs elsewhere again")
def _(w: World) -> Case:
    place, lease = completed(w)
    return of_call(w, place, lambda: asks(w, lease, completion()))


@row("suspend", "call", "resolved", "its completion came first")
def _(w: World) -> Case:
    place, ids = w.asked(completion("c1"))
    w.answer_call("c1", Complete(value=2), run=place.run, seq=2)
    w.answer(ids[0], Complete(value=1))
    lease = w.leased(place, "n2")
    again = with_fields(lease)
    return of_call(w, place, lambda: asks(w, again, completion("c1")))
