"""Who works on a run: leases, attempts, dead letters."""

from dataclasses import replace

import pytest

from broker.errors import StaleLease
from broker.store.commands import runs
from tests.records import poke

from .guarded import shows_guard
from .rows.runs import dead
from .snapshot import changed
from .world import POOL, World, approval


@pytest.mark.report("RA23")
def test_a_late_worker_writes_nothing(world: World) -> None:
    """P6, rules 16 and 37, F19: its lease ran out, the run is another's; every write of its own is refused."""
    place, late = world.started()
    world.forward(seconds=16)
    world.leased(place, "n2")
    before = world.snapshot()
    for write in (world.finish, world.fail, world.release, lambda lease: world.ask(lease, approval())):
        with pytest.raises(StaleLease):
            write(late)
    assert world.renew(late) is None
    assert changed(before, world.snapshot()) == []


def test_a_worker_that_was_only_slow_keeps_its_run(world: World) -> None:
    """A lease that ran out and that nobody took is still held: renewing and finishing work."""
    place, lease = world.started()
    world.forward(minutes=10)
    assert world.renew(lease) is not None
    world.forward(minutes=10)
    assert world.finish(lease) == "finished"
    assert world.state(place) == "finished"


def test_a_renewed_lease_is_not_reclaimed(world: World) -> None:
    place, lease = world.started()
    for _ in range(4):
        world.forward(seconds=10)
        world.renew(lease)
        assert world.reclaim(place) == "nothing"
    assert world.state(place) == "leased"


@pytest.mark.report("RA62")
def test_the_fence_only_grows(world: World) -> None:
    """Rule 22: not by failing, dying, being sent back, or going on after a pause does a number come again."""
    place = world.place()
    world.start(place)
    fences = []
    for n in range(world.settings.tries):
        lease = world.leased(place, f"a{n}")
        fences.append(lease.token.fence)
        world.fail(lease)
    world.requeue(place, fences[-1])
    lease = world.leased(place, "b")
    fences.append(lease.token.fence)
    world.ask(lease, approval())
    world.answer(world.run_address(place).interrupts[0].interrupt)
    fences.append(world.leased(place, "c").token.fence)
    assert fences == sorted(set(fences))


@shows_guard("release-try")
def test_a_drain_is_no_failure(world: World) -> None:
    """Rule 21: a released attempt is given back, so any number of drains kills no run."""
    place = world.place()
    world.start(place)
    for n in range(3 * world.settings.tries):
        world.release(world.leased(place, f"n{n}"))
    assert world.state(place) == "ready"


def test_a_run_that_kills_its_workers_ends_in_the_dead_letters(world: World) -> None:
    """P11, rule 21: the attempt is counted by the lease, where a dying worker cannot skip it; others go on."""
    poison, healthy = world.place("poison"), world.place("healthy")
    world.start(poison)
    world.start(healthy)
    for n in range(world.settings.tries):
        assert world.lease(poison, f"n{n}") is not None
        world.forward(seconds=16)
        world.reclaim(poison)
    assert world.state(poison) == "dead"
    assert world.ready() == [healthy.run]
    assert world.client.lrange(world.key("errors", poison.run), 0, -1)


def test_a_new_answer_begins_the_attempts_anew(world: World) -> None:
    """Rule 21: tries are zeroed when a new answer makes the run ready."""
    place = world.place()
    world.start(place)
    for n in range(world.settings.tries - 1):
        world.fail(world.leased(place, f"a{n}"))
    world.ask(world.leased(place, "b"), approval())
    world.answer(world.run_address(place).interrupts[0].interrupt)
    world.fail(world.leased(place, "c"))
    assert world.state(place) == "ready"


def test_dead_letters_keep_their_answers_until_an_operator_wakes_them(world: World) -> None:
    """P11, rule 24, F54."""
    place, ids = world.asked()
    world.answer(ids[0])
    world.fail(lease := world.leased(place, "n2"), final=True)
    assert world.lease(place, "n3") is None
    assert world.requeue(place, lease.token.fence).code == "accepted"
    again = world.leased(place, "n4")
    assert again.text("shown") == ids[0]


def test_a_requeue_is_about_one_death(world: World) -> None:
    """Rule 23: its repeat after the next death wakes nobody."""
    place, lease = dead(world)
    fence = lease.token.fence
    world.requeue(place, fence)
    world.fail(world.leased(place, "n2"), final=True)
    assert world.requeue(place, fence).code == "replayed"
    assert world.requeue(place, fence, op="other").code == "conflict"
    assert world.state(place) == "dead"


def test_a_backing_off_run_is_offered_when_its_time_has_come(world: World) -> None:
    place, lease = world.started()
    world.fail(lease, pause=30)
    assert (world.ready(), world.reclaim(place)) == ([], "nothing")
    world.forward(seconds=31)
    assert (world.reclaim(place), world.ready()) == ("offered", [place.run])


def test_bells_decide_nothing(world: World) -> None:
    """Rules 17 and 18: a bell that rings for a leased run neither frees nor doubles it."""
    place, _lease = world.started()
    for _ in range(3):
        world.client.publish(world.key("wake", "waiter-1"), place.run)
    before = world.snapshot()
    assert world.lease(place, "n2") is None
    assert changed(before, world.snapshot()) == []


def test_ready_runs_are_given_out_by_priority_then_by_age(world: World) -> None:
    order = [("old", 0), ("new", 0), ("urgent", 5), ("idle", -5)]
    places = {name: replace(world.place(name), priority=priority) for name, priority in order}
    for place in places.values():
        world.start(place)
    assert world.ready() == [places[name].run for name in ("urgent", "old", "new", "idle")]


def test_the_last_twenty_reasons_of_failure_are_kept(world: World) -> None:
    place = world.place()
    world.start(place)
    for n in range(25):
        world.fail(world.leased(place, f"n{n}"))
        poke(world.client, world.key("run", place.run), tries="0")
    assert world.client.llen(world.key("errors", place.run)) == 20


def test_a_run_that_is_handed_again_and_again_waits_twice_as_long_each_time(world: World) -> None:
    """Up to sixteen times; whoever leases it begins anew, and no try is counted for a job that was lost."""
    place = world.place()
    world.start(place)
    waits = []
    for n in range(7):
        assert world.hand(place, f"h{n}") == n + 1
        waits.append(round((int(world.field("run", place.run, "ready_at")) - world.now()) / 30_000_000))
        world.forward(seconds=30 * waits[-1] + 1)
        assert world.reclaim(place) == "offered"
    assert waits == [1, 2, 4, 8, 16, 16, 16]
    lease = world.leased(place)
    assert world.field("run", place.run, "tries") == "1"
    world.release(lease)
    assert world.hand(place, "h8") == 1


def test_a_run_that_was_handed_is_in_no_list_until_its_time_is_over(world: World) -> None:
    """And may be moved and withdrawn meanwhile: its job finds nothing to do then."""
    place = world.place()
    world.start(place)
    world.hand(place)
    ready = runs.ready_runs(world.p, [POOL], 10)
    assert world.read(ready) == ()
    assert world.move(place, "night").ok
    assert world.read(ready) == ()
    assert world.withdraw(place, 0).ok
    assert world.lease(place) is None
    world.forward(minutes=2)
    assert world.reclaim(place) == "nothing"
