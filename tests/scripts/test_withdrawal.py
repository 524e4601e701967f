"""Taking a question back, moving a run, and which runs of a session are interrupted."""

from datetime import timedelta

import pytest

from broker.core.outcomes import Withdrawn
from broker.core.states import Mode

from .guarded import shows_guard
from .rows.runs import each
from .snapshot import changed
from .world import BOB, POOL, SESSION, World, approval


def active(world: World) -> list[str]:
    return sorted(field.decode() for field in world.client.hgetall(world.key("active", SESSION)))


def test_who_answers_later_is_told_it_was_withdrawn_and_by_whom(world: World) -> None:
    """F37."""
    place, ids = world.asked(approval("c1"), approval("c2"))
    assert world.withdraw(place).code == "accepted"
    told = [world.answer(i) for i in ids]
    assert [(t.by, t.at is not None) for t in told if isinstance(t, Withdrawn)] == [(BOB, True)] * 2
    assert (world.state(place), active(world)) == ("withdrawn", [])
    assert world.lease(place, "n2") is None


def test_what_new_input_takes_the_place_of_is_superseded(world: World) -> None:
    """The run is closed as by a withdrawal; whoever answers its questions later is told what became of them."""
    place, (one,) = world.asked()
    assert world.withdraw(place, superseded=True).code == "accepted"
    assert (world.settled(one), world.state(place), active(world)) == ("superseded", "withdrawn", [])
    assert world.answer(one).code == "superseded"


def test_a_late_withdrawal_does_not_kill_the_next_pause(world: World) -> None:
    """Rule 5: withdraw(1) is slow; the run was answered, went on and pauses again."""
    place, (one,) = world.asked()
    world.answer(one)
    world.ask(world.leased(place, "n2"), approval("c2"))
    before = world.snapshot()
    assert world.withdraw(place, 1).code == "already_decided"
    assert changed(before, world.snapshot()) == []


def test_a_withdrawal_once_refused_stays_refused(world: World) -> None:
    """Rule 5: told no while a worker had the run; the lease is lost; the repeat must not take effect then."""
    place, (one,) = world.asked()
    world.answer(one)
    world.lease(place, "n2")
    assert world.withdraw(place, op="wd-1").code == "conflict"
    world.forward(seconds=16)
    world.reclaim(place)
    assert world.withdraw(place, op="wd-1").code == "conflict"
    assert world.withdraw(place, op="wd-2").code == "accepted"


def test_what_is_open_is_withdrawn_under_a_lease_and_the_run_goes_on(world: World) -> None:
    """Mode each: the worker keeps the run; the withdrawn one is news for its next lease."""
    place, lease, (_a, b) = each(world)
    assert world.withdraw(place).code == "accepted"
    assert (world.state(place), world.settled(b)) == ("leased", "withdrawn")
    assert world.finish(lease) == "ready"
    lease = world.leased(place, "n3")
    assert lease.text("shown").split() == [b]
    assert world.finish(lease) == "finished"


def test_the_active_mark_is_a_set_of_runs(world: World) -> None:
    """P7, rule 27: one of two runs of a session is withdrawn; the other still waits, and the mark says so."""
    a, _ids = world.asked(name="a")
    b, (two,) = world.asked(name="b")
    assert active(world) == sorted([a.run, b.run])
    world.withdraw(a)
    assert active(world) == [b.run]
    world.answer(two)
    assert active(world) == [b.run]
    world.finish(world.leased(b, "n2"))
    assert world.client.exists(world.key("active", SESSION)) == 0


def test_a_dead_run_stays_interrupted(world: World) -> None:
    """P7: the mark goes when the run is finished or withdrawn, not when it dies."""
    place, (one,) = world.asked()
    world.answer(one)
    world.fail(world.leased(place, "n2"), final=True)
    assert active(world) == [place.run]
    world.withdraw(place)
    assert active(world) == []


@pytest.mark.report("RA20")
def test_two_sessions_do_not_see_each_other(world: World) -> None:
    """P13, RA20: marks, histories and calls of one session are not those of another."""
    place, lease = world.started("a", session="other")
    world.ask(lease, approval("c1"))
    mine, _ids = world.asked(approval("c1"))
    assert active(world) == [mine.run]
    assert {e.run_id for e in world.history()} == {mine.run}
    assert {e.run_id for e in world.history("other")} == {place.run}


@pytest.mark.parametrize("state", ["ready", "waiting", "dead"])
def test_an_operator_moves_a_run_to_another_queue(world: World, state: str) -> None:
    """F54, F25: its state stays; from then on the workers of that queue get it, and the lists follow."""
    place, (one,) = world.asked()
    if state != "waiting":
        world.answer(one)
    if state == "dead":
        world.fail(world.leased(place, "n2"), final=True)
    assert world.move(place, "night").code == "accepted"
    assert (world.state(place), world.ready()) == (state, [])
    if state == "waiting":
        assert world.client.smembers(world.key("lists")) == {b"night:approval_pending:refund"}
        assert world.client.zcard(world.key("open", "night:approval_pending:refund")) == 1
        assert world.answer(one).code == "accepted"
    elif state == "dead":
        world.requeue(place, 2)
    assert world.client.zrange(world.key("ready", f"night:{POOL.agent}:"), 0, -1) == [place.run.encode()]
    again = world.snapshot()
    assert world.move(place, "night").code == "accepted"
    assert changed(again, world.snapshot()) == []


@shows_guard("move-leased")
def test_a_run_is_not_moved_under_its_worker(world: World) -> None:
    """Its worker writes under the old queue; after the lease it can be moved."""
    place, lease = world.started()
    before = world.snapshot()
    assert world.move(place, "night").code == "conflict"
    assert changed(before, world.snapshot()) == []
    world.release(lease)
    assert world.move(place, "night").code == "accepted"


def test_a_closed_run_is_not_moved(world: World) -> None:
    place, _ids = world.asked()
    world.withdraw(place)
    assert world.move(place, "night").code == "conflict"


def test_withdrawing_expires_what_is_due_first(world: World) -> None:
    """Rule 2: mode each, one is due, one is not."""
    place, (a, b) = world.asked(
        approval("c1", expires_in=timedelta(seconds=1)), approval("c2"), mode=Mode.EACH
    )
    world.forward(seconds=2)
    assert world.withdraw(place).code == "accepted"
    assert (world.settled(a), world.settled(b), world.state(place)) == ("expired", "withdrawn", "withdrawn")
    assert world.ready() == []


def test_one_that_is_due_may_take_the_others_with_it(world: World) -> None:
    """Mode first: the deadline of the second one ends the first one too, and the run is withdrawn all the same."""
    late = approval("c2", expires_in=timedelta(minutes=1))
    place, (one, two) = world.asked(approval("c1"), late, mode=Mode.FIRST)
    world.forward(minutes=2)
    assert world.withdraw(place).code == "accepted"
    assert (world.state(place), world.settled(one), world.settled(two)) == (
        "withdrawn",
        "superseded",
        "expired",
    )
