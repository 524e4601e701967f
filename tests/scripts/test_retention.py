"""What goes, when, and that nothing stays behind."""

from datetime import timedelta

import pytest

from broker.core.answers import Complete
from broker.core.states import Mode
from broker.store.commands import address, sweep

from .guarded import shows_guard
from .rows.runs import each
from .snapshot import changed
from .world import World, approval, completion

INDEXES = {"pools", "counter", "meta", "interrupts", "dispositions", "bell:agents:airline:"}


def kinds(world: World) -> set[str]:
    """What is left, by what follows the hash tag."""
    return {name.partition("}:")[2] for name in world.snapshot()}


def whole_life(world: World, name: str = "a") -> str:
    """A run that fails, pauses twice with every sort of question, is answered early and late, and finishes."""
    place, lease = world.started(name)
    world.fail(lease)
    lease = world.leased(place, "n2")
    world.answer_call("c3", Complete(value=1), run=place.run, seq=1)
    world.ask(lease, approval("c1"), approval("c2"), completion("c3"), mode=Mode.EACH)
    lease = world.leased(place, "n3")
    first, second, _third = (a.interrupt for a in world.run_address(place).interrupts)
    world.ask(lease, approval("c1", 400), mode=Mode.EACH, keep=[second])
    world.answer(second)
    lease = world.leased(place, "n4")
    world.answer(world.run_address(place).interrupts[-1].interrupt)
    world.finish(lease)
    world.finish(world.leased(place, "n5"))
    assert world.state(place) == "finished"
    return first


@pytest.mark.report("RB16", "RB17")
@shows_guard("retention")
def test_RB16_RB17_all_records_of_a_closed_run_go_together(world: World) -> None:
    """Rule 14: not a minute before their time, and then all of them. Off: guard `retention` of collect.lua."""
    whole_life(world)
    world.forward(minutes=59)
    before = world.snapshot()
    for stale in world.stale():
        assert stale.member.startswith("i ")
    run = world.place().run
    (a,) = world.read(address.read_run_addresses(world.p, [run]))
    known = world.read(address.read_addresses(world.p, [one.interrupt for one in a.interrupts]))
    assert world.do(sweep.collect(world.p, [sweep.stale_run(world.p, f"r {run}", a.session, known)])) is False
    assert changed(before, world.snapshot()) == []


def test_nothing_of_a_run_stays_behind(world: World) -> None:
    """Collected after its hour, history after its week; then only the namespace's own keys are left."""
    whole_life(world)
    world.forward(hours=2)
    world.collect()
    assert kinds(world) - INDEXES == {"retention", f"history:{world.place().session}"}
    world.forward(days=8)
    assert world.collect() == 1
    assert kinds(world) <= INDEXES


@pytest.mark.report("RB17")
def test_open_and_dead_runs_are_never_collected(world: World) -> None:
    """Section 6: a record of a run that is not closed has no expiry at all."""
    waiting, _ids = world.asked(approval("c1", expires_in=None), name="waiting")
    dead, lease, ids = each(world)
    world.answer(ids[1])
    world.fail(lease, final=True)
    world.forward(days=400)
    world.collect()
    assert [world.state(one) for one in (waiting, dead)] == ["waiting", "dead"]
    assert [world.record(i).problem for i in ids] == [None, None]


def test_a_spent_interrupt_of_a_run_that_goes_on_is_collected_alone(world: World) -> None:
    place, (one,) = world.asked(approval("c1"))
    world.answer(one)
    world.ask(world.leased(place, "n2"), approval("c2", expires_in=None))
    (two,) = (a.interrupt for a in world.run_address(place).interrupts)
    world.forward(hours=2)
    assert world.collect() == 1
    assert (world.settled(one), world.settled(two)) == ("", "open")
    assert [name for name in world.snapshot() if one in name] == []


def test_history_is_trimmed_entry_by_entry(world: World) -> None:
    """Each entry stays its week, whatever came before and after it."""
    place, (one,) = world.asked(approval(expires_in=None))
    world.forward(days=4)
    world.answer(one)
    world.forward(days=4)
    world.collect()
    assert [e.event for e in world.history()] == ["resolved"]
    world.forward(days=4)
    world.collect()
    assert world.history() == ()
    assert world.state(place) == "ready"


@pytest.mark.report("RA54")
def test_a_long_history_is_trimmed_in_bounded_steps(world: World) -> None:
    place = world.place()
    world.start(place)
    packed = world.client.lindex(world.key("history", place.session), 0)
    world.client.rpush(world.key("history", place.session), *[packed] * 1200)
    world.forward(days=8)
    lengths = []
    while world.collect():
        lengths.append(world.client.llen(world.key("history", place.session)))
    assert lengths == [701, 201, 0]


def test_collecting_twice_does_nothing_more(world: World) -> None:
    whole_life(world)
    world.forward(hours=2)
    stale = world.stale()
    assert all(one is True for one in world.all(sweep.collect(world.p, stale)))
    before = world.snapshot()
    assert all(one is False for one in world.all(sweep.collect(world.p, stale)))
    assert changed(before, world.snapshot()) == []


def test_parked_answers_stay_as_long_as_they_were_promised(world: World) -> None:
    place, lease = world.started()
    world.answer_call("c1", run=place.run, seq=1)
    world.forward(minutes=9)
    assert world.collect() == 0
    world.ask(lease, approval())
    assert world.state(place) == "ready"


def test_every_span_of_retention_is_a_setting(world: World) -> None:
    world.settings = world.settings.model_copy(
        update={"keep_settled": timedelta(minutes=11), "keep_history": timedelta(minutes=12)}
    )
    world.finish(world.started()[1])
    world.forward(minutes=11, seconds=1)
    assert world.collect() == 1
    world.forward(minutes=1)
    assert world.collect() == 1
    assert kinds(world) <= INDEXES
