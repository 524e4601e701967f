"""When a pause is over: at the last answer, at the first, or at each."""

import itertools
from datetime import timedelta

import pytest

from broker.core.answers import Approve, Cancel, Reject
from broker.core.states import Mode

from .rows.runs import each
from .snapshot import changed
from .world import World, approval


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_run_is_ready_once_at_its_last_answer(world: World, order: tuple[int, ...]) -> None:
    """P5: whatever the order and the kinds of answers."""
    place, ids = world.asked(approval("c0"), approval("c1"), approval("c2"))
    bells, answers = world.bells()["ready"], (Approve(), Reject(reason="no"), Cancel())
    for n in order:
        assert world.state(place) == "waiting"
        assert world.ready() == []
        world.answer(ids[n], answers[n])
    assert (world.state(place), world.ready()) == ("ready", [place.run])
    assert world.bells()["ready"] == bells + 1
    assert world.leased(place, "n2").text("shown").split() == [ids[n] for n in order]


def test_the_first_of_n_decides_and_the_others_are_superseded(world: World) -> None:
    """F08: the losers are out of every list, and whoever answers them is told so."""
    place, ids = world.asked(approval("c1"), approval("c2"), approval("c3"), mode=Mode.FIRST)
    world.answer(ids[1])
    assert [world.settled(i) for i in ids] == ["superseded", "resolved", "superseded"]
    assert (world.state(place), world.client.zcard(world.key("open"))) == ("ready", 0)
    assert [world.answer(i, op="late").code for i in ids] == ["superseded", "already_decided", "superseded"]


def test_what_a_deadline_decided_for_others_is_superseded_too(world: World) -> None:
    """Mode first: nobody answered the first one in time; that says nothing about the second one's deadline."""
    place, (a, b) = world.asked(
        approval("c1", expires_in=timedelta(minutes=1)), approval("c2"), mode=Mode.FIRST
    )
    world.forward(minutes=2)
    assert world.expire(a) == [True]
    assert (world.answer(a).code, world.answer(b).code, world.state(place)) == (
        "expired",
        "superseded",
        "ready",
    )


@pytest.mark.report("RA27")
def test_each_answer_makes_the_run_ready_and_none_is_lost(world: World) -> None:
    """P5, rules 25 and 26: an answer that comes while the worker works on another one is handed out after it."""
    place, (a, b, c) = world.asked(approval("c1"), approval("c2"), approval("c3"), mode=Mode.EACH)
    world.answer(a)
    lease = world.leased(place, "n2")
    assert lease.text("shown").split() == [a]
    world.answer(b)
    assert world.finish(lease) == "ready"
    lease = world.leased(place, "n3")
    assert lease.text("shown").split() == [b]
    assert world.finish(lease) == "waiting"
    world.answer(c)
    lease = world.leased(place, "n4")
    assert lease.text("shown").split() == [c]
    assert world.finish(lease) == "finished"
    assert world.client.exists(world.key("active", place.session)) == 0


def test_a_lost_lease_eats_no_answer(world: World) -> None:
    """Rule 25: what was handed out is spent by finish or the next pause, not by being handed out."""
    place, lease, ids = each(world)
    world.fail(lease)
    assert world.leased(place, "n3").text("shown").split() == [ids[0]]
    world.forward(seconds=16)
    assert world.leased(place, "n4").text("shown").split() == [ids[0]]


def test_a_spent_answer_is_not_handed_out_again(world: World) -> None:
    place, lease, ids = each(world)
    world.ask(lease, approval("c3"), mode=Mode.EACH, keep=[ids[1]])
    world.answer(ids[1])
    assert world.leased(place, "n3").text("shown").split() == [ids[1]]


def test_kept_questions_go_along_and_the_others_do_not(world: World) -> None:
    """Decisions: `keep` carries open interrupts with their ids to the next sequence."""
    place, (a, b, c) = world.asked(approval("c1"), approval("c2"), approval("c3"), mode=Mode.EACH)
    world.answer(a)
    world.ask(world.leased(place, "n2"), approval("c4"), mode=Mode.EACH, keep=[b])
    assert [world.settled(i) for i in (a, b, c)] == ["resolved", "open", "superseded"]
    assert [world.field("interrupt", i, "seq") for i in (a, b, c)] == ["1", "2", "1"]
    assert world.run_address(place).interrupts[0].interrupt == b
    assert world.answer(b).code == "accepted"
    assert world.state(place) == "ready"


@pytest.mark.parametrize("mode", [Mode.ALL, Mode.FIRST])
def test_a_kept_question_follows_the_mode_of_its_new_pause(world: World, mode: Mode) -> None:
    """Mode each, then another: the kept one is answered as one of the new pause, siblings included."""
    place, (a, b) = world.asked(approval("c1"), approval("c2"), mode=Mode.EACH)
    world.answer(a)
    world.ask(world.leased(place, "n2"), approval("c3"), mode=mode, keep=[b])
    assert world.answer(b).code == "accepted"
    assert world.state(place) == ("waiting" if mode is Mode.ALL else "ready")


def test_a_pause_that_only_keeps_questions_is_on_record(world: World) -> None:
    """P14: it asks nothing new, and is a transition all the same."""
    place, (a, b) = world.asked(approval("c1"), approval("c2"), mode=Mode.EACH)
    world.answer(a)
    assert world.ask(world.leased(place, "n2"), mode=Mode.EACH, keep=[b]).code == "accepted"
    last = world.history()[-1]
    assert (last.event, last.run_id, last.seq, last.interrupt_id) == ("suspended", place.run, 2, None)


def test_a_dead_run_takes_answers_and_stays_dead(world: World) -> None:
    """Rule 24: B's answer wakes nothing; after the operator both are handed out."""
    place, lease, (a, b) = each(world)
    world.fail(lease, final=True)
    assert world.answer(b).code == "accepted"
    assert (world.state(place), world.ready()) == ("dead", [])
    world.requeue(place, lease.token.fence)
    assert world.leased(place, "n3").text("shown").split() == [a, b]


def test_a_pause_that_only_waits_on_keeps_its_questions(world: World) -> None:
    """A pause without new questions: the kept ones are all it waits for; with none open it is refused."""
    place, lease, (_a, b) = each(world)
    assert world.ask(lease, mode=Mode.EACH, keep=[b]).code == "accepted"
    assert (world.state(place), world.field("run", place.run, "seq")) == ("waiting", "2")
    world.answer(b)
    lease = world.leased(place, "n3")
    before = world.snapshot()
    assert world.ask(lease, mode=Mode.EACH, keep=[b]).code == "conflict"
    assert changed(before, world.snapshot()) == []
    assert world.finish(lease) == "finished"
