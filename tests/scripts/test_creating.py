"""What makes a run out of nothing: start, adopt, the first suspend."""

from dataclasses import replace
from datetime import timedelta

import pytest

from broker.core.states import Mode
from broker.store.commands.runs import Leased

from .guarded import shows_guard
from .snapshot import changed
from .world import World, approval


def test_a_creating_request_after_the_run_was_deleted_makes_no_second_run(world: World) -> None:
    """P3, rules 14 and 15: the repeat comes after the records were collected, and is too late by then."""
    place = world.place()
    world.start(place)
    world.finish(world.leased(place))
    world.forward(hours=1, seconds=1)
    world.collect()
    assert world.state(place) == ""
    before = world.snapshot()
    assert world.start(place, within=timedelta(minutes=10) - timedelta(hours=1, seconds=1)).code == "unknown"
    assert changed(before, world.snapshot()) == []


def test_records_of_a_closed_run_stay_until_no_creating_request_can_arrive(world: World) -> None:
    """Rule 14: within the window the closed run answers its own creation's repeat."""
    place = world.place()
    world.start(place)
    world.finish(world.leased(place))
    world.forward(minutes=59)
    assert world.collect() == 0
    assert world.start(place).code == "replayed"


def test_a_run_is_created_with_a_key_of_the_callers_choice_once(world: World) -> None:
    """F05, F06: the same start gives the first run again, another one under its key is a conflict."""
    place = world.place("order-7")
    assert [world.start(place).code for _ in range(3)] == ["accepted", "replayed", "replayed"]
    assert world.start(place, op="other").code == "conflict"
    assert world.ready() == [place.run]


@shows_guard("new-interrupt")
def test_a_question_that_is_there_without_its_run_is_not_asked_again(world: World) -> None:
    """Rule 8: the server lost the run but not the interrupt. The card that is out must not change its meaning."""
    place = world.place()
    pause = world.pause(place, approval())
    world.suspend(pause)
    world.client.delete(world.key("run", place.run))
    before = world.snapshot()
    assert world.suspend(pause).code == "conflict"
    assert changed(before, world.snapshot()) == []


@shows_guard("suspend-session")
def test_a_run_of_another_session_cannot_be_paused(world: World) -> None:
    """P13, F19: the run id of one session under the name of another."""
    place, _ids = world.asked()
    foreign = world.place("x", session="other")
    stolen = world.pause(place, approval("c2"), seq=2, replace=True)
    before = world.snapshot()
    taken = stolen._replace(place=replace(stolen.place, session=foreign.session))
    assert world.suspend(taken).code == "conflict"
    assert changed(before, world.snapshot()) == []


def test_an_adopted_run_pauses_and_goes_on_like_any_other(world: World) -> None:
    """Rule 28: the first segment is leased too."""
    place = world.place()
    lease = world.adopt(place)
    assert isinstance(lease, Leased)
    assert world.ask(lease, approval()).code == "accepted"
    (at,) = world.run_address(place).interrupts
    assert world.answer(at.interrupt).code == "accepted"
    assert world.finish(world.leased(place, "n2")) == "finished"


def test_one_new_run_delivered_to_two_workers_is_leased_once(world: World) -> None:
    """P6, rule 28."""
    place = world.place()
    world.start(place)
    assert [world.lease(place, nonce) is not None for nonce in ("n1", "n2")] == [True, False]


@pytest.mark.parametrize("mode", list(Mode))
def test_a_pause_without_a_worker_works_in_every_mode(world: World, mode: Mode) -> None:
    place = world.place()
    outcome = world.suspend(world.pause(place, approval("c1"), approval("c2"), mode=mode))
    assert outcome.code == "accepted"
    first, second = (a.interrupt for a in world.run_address(place).interrupts)
    assert world.answer(first).code == "accepted"
    assert world.state(place) == ("waiting" if mode is Mode.ALL else "ready")
    assert world.settled(second) == ("superseded" if mode is Mode.FIRST else "open")
