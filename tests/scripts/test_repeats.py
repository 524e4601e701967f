"""P3: every transition again, at once and after everything is over, changes nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from broker.core.answers import Complete, Reject
from broker.core.models import OnMissed
from broker.core.states import Mode
from broker.renewer import run_command
from broker.store.commands.values import Command

from .snapshot import Snapshot, changed
from .world import BOB, World, approval, completion

# What a repeat may touch: doorbells, and when they rang last.
BELLS = (":interrupts", ":dispositions", ":idle:agents:airline:", ":unseen:approvals", ":unseen:completions")


class Tape(World):
    """The same namespace as another world's; every script call that is sent is kept."""

    def __init__(self, world: World) -> None:
        vars(self).update(vars(world))
        self.calls: list[Command[Any]] = []

    def all(self, command: Command[Any]) -> list[Any]:
        self.calls.append(command)
        return super().all(command)


def what_it_said(world: World, command: Command[Any]) -> list[str]:
    """The outcome of each item, or its fault, as a word."""
    told = run_command(world.client, command, world.settings, world.rendering)
    return [
        getattr(one, "code", type(one).__name__ if isinstance(one, BaseException) else str(one))
        for one in told
    ]


def unchanged(before: Snapshot, after: Snapshot) -> list[str]:
    return [name for name in changed(before, after) if not name.endswith(BELLS)]


Life = Callable[[Tape], None]


def finishes(w: Tape) -> None:
    place, lease = w.started()
    w.ask(lease, approval("c1"), completion("c2"))
    w.put(place, "and quickly", op="m-1")
    first, second = (a.interrupt for a in w.run_address(place).interrupts)
    w.answer(first)
    w.answer_call("c2", Complete(value=1), run=place.run, seq=1)
    w.answer(second, Complete(value=2), BOB)
    w.finish(w.leased(place, "n2"))


def is_withdrawn(w: Tape) -> None:
    place, _ids = w.asked()
    w.withdraw(place)


def dies_and_comes_back(w: Tape) -> None:
    place, lease = w.started()
    w.fail(lease)
    w.release(w.leased(place, "n2"))
    w.fail(lease := w.leased(place, "n3"), final=True)
    w.requeue(place, lease.token.fence)
    w.finish(w.leased(place, "n4"))


def works_on_each(w: Tape) -> None:
    place, lease = w.started()
    w.ask(lease, approval("c1"), approval("c2"), approval("c3"), mode=Mode.EACH)
    a, b, c = (one.interrupt for one in w.run_address(place).interrupts)
    w.answer(a)
    lease = w.leased(place, "n2")
    w.answer(b, Reject(reason="no"))
    w.ask(lease, approval("c4"), mode=Mode.EACH, keep=[c])
    w.finish(w.leased(place, "n3"))
    w.withdraw(place, 2)


def is_early(w: Tape) -> None:
    place = w.place()
    w.adopt(place)
    w.answer_call("c1", run=place.run, seq=1)
    w.answer_call("c2", Reject(reason="no"))
    lease = w.adopt(place)
    w.ask(lease, approval("c1"), approval("c2"))  # type: ignore[arg-type]
    w.finish(w.leased(place, "n2"))


def expires(w: Tape) -> None:
    place, ids = w.asked(approval("c1"), approval("c2"), mode=Mode.FIRST)
    w.forward(hours=25)
    w.expire(*ids)
    lease = w.leased(place, "n2")
    w.forward(seconds=16)
    w.reclaim(place)
    w.renew(lease)
    w.finish(w.leased(place, "n3"))


def falls_silent(w: Tape) -> None:
    place, (one, two) = w.asked(
        completion("c1", heartbeat=timedelta(minutes=2)),
        completion("c2", heartbeat=timedelta(minutes=2), on_missed=OnMissed.RING),
    )
    w.forward(minutes=3)
    w.expire(one, two)
    w.heartbeat(two)
    w.answer(two, Complete(value=1))
    w.finish(w.leased(place, "n2"))


LIVES = [finishes, is_withdrawn, dies_and_comes_back, works_on_each, is_early, expires, falls_silent]


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_every_call_sent_twice_at_once(world: World, life: Life) -> None:
    """A reply is lost, the client sends again: the same outcome or its repeat, and no key but doorbells changes."""

    class Twice(Tape):
        def all(self, command: Command[Any]) -> list[Any]:
            told = super().all(command)
            before = self.snapshot(fields=("bell",))
            again = what_it_said(self, command)
            # A renewal that is repeated renews to a later time: that is what it is for.
            if command.script not in ("renew", "heartbeat"):
                assert (command.script, again, unchanged(before, self.snapshot(fields=("bell",)))) == (
                    command.script, again, [],
                )  # fmt: skip
            return told

    twice = Twice(world)
    life(twice)
    assert twice.calls


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_every_call_sent_again_after_everything_is_over(world: World, life: Life) -> None:
    """Late copies of all requests, in both orders, a minute after the run was closed: nothing changes."""
    tape = Tape(world)
    life(tape)
    world._ahead = tape._ahead
    world.forward(minutes=1)
    before = world.snapshot(fields=("bell",))
    for command in (*tape.calls, *reversed(tape.calls)):
        words = what_it_said(world, command)
        assert unchanged(before, world.snapshot(fields=("bell",))) == [], (command.script, words)


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_every_call_sent_again_after_the_records_are_gone(world: World, life: Life) -> None:
    """Afterwards a repeat gets `Unknown`, or that its lease is over; no record comes to life again."""
    tape = Tape(world)
    life(tape)
    world._ahead = tape._ahead
    world.forward(days=9)
    world.collect()
    before = world.snapshot("unknown", fields=("bell",))
    words = {word for command in tape.calls for word in what_it_said(world, command)}
    assert words <= {"unknown", "stale_lease", "StaleLease", "conflict", "False", "None", "nothing"}
    assert unchanged(before, world.snapshot("unknown", fields=("bell",))) == []


def test_a_lease_asked_for_again_is_the_same_lease(world: World) -> None:
    """Rule 37: the nonce is new for every lease request and the same for its repeats."""
    place, lease = world.started()
    again = world.lease(place, "n1")
    assert again is not None
    assert (again.token, again.until) == (lease.token, lease.until)
