"""F23: a job done elsewhere has to tell that it still runs; one that misses it fails, or is rung for."""

from datetime import timedelta
from typing import Any

import pytest

from broker.core.answers import Complete
from broker.core.entries import Result
from broker.core.models import Interrupt, OnExpiry, OnMissed
from broker.core.outcomes import Accepted, Expired, Unknown
from broker.core.states import Mode
from broker.errors import InvalidInput
from broker.store.commands import answers
from broker.store.commands.address import Address

from .guarded import shows_guard
from .snapshot import changed
from .world import World, approval, completion

TEN = timedelta(minutes=10)
NEAR = timedelta(minutes=1)
"""What may have passed meanwhile by the server's own clock."""


def rendering(w: World, **rest: Any) -> str:
    """A job that has to tell every ten minutes."""
    _place, (one,) = w.asked(completion(heartbeat=TEN, **rest))
    return one


def timer(w: World, interrupt: str) -> timedelta:
    """When something is to happen to an interrupt by itself, since 1970."""
    return timedelta(microseconds=float(w.client.zscore(w.key("timers"), f"i {interrupt}")))


def bells(w: World) -> int:
    return int(w.client.xlen(w.key("interrupts")))


def test_a_job_that_tells_in_time_goes_on(world: World) -> None:
    one = rendering(world)
    for _ in range(5):
        world.forward(minutes=9)
        assert isinstance(world.heartbeat(one), Accepted)
        assert world.expire(one) == [False]
    record = world.record(one)
    assert record.heartbeat_by is not None
    assert timedelta() <= record.heartbeat_by - record.opened_at - timedelta(minutes=55) < NEAR
    assert world.answer(one, Complete(value=1)).ok


@shows_guard("beat-missed")
def test_a_job_that_misses_one_fails_and_its_run_goes_on(world: World) -> None:
    place, (one,) = world.asked(completion(heartbeat=TEN))
    world.forward(minutes=11)
    assert world.expire(one) == [True]
    ended = world.record(one)
    assert (world.settled(one), world.state(place)) == ("expired", "ready")
    assert ended.resolution is not None
    assert ended.resolution.reason == "heartbeat"
    failure = Result.of(ended).failure
    assert failure is not None
    assert (failure.kind, failure.text) == ("expired", "It missed a heartbeat. It was started.")


@pytest.mark.parametrize("ahead", [-1, 0, 1])
def test_a_heartbeat_and_its_miss_have_one_winner(world: World, ahead: int) -> None:
    """P8: around the moment, to the second, whoever comes first; both see the same."""
    one = rendering(world)
    world.forward(seconds=600 + ahead)
    told, swept = world.heartbeat(one), world.expire(one)
    if ahead < 0:
        assert (told.code, swept, world.settled(one)) == ("accepted", [False], "open")
    else:
        assert (told.code, swept, world.settled(one)) == ("expired", [False], "expired")


@shows_guard("beat-in-time")
def test_a_heartbeat_that_comes_too_late_revives_nothing(world: World) -> None:
    """Also where nobody has swept yet: then it ends the interrupt itself."""
    one = rendering(world)
    world.forward(minutes=11)
    assert isinstance(world.heartbeat(one), Expired)
    assert world.settled(one) == "expired"


@shows_guard("beat-open")
def test_a_heartbeat_after_the_end_changes_nothing(world: World) -> None:
    one = rendering(world)
    world.answer(one, Complete(value=1))
    before = world.snapshot()
    assert world.heartbeat(one).code == "already_decided"
    assert changed(before, world.snapshot()) == []


def test_a_result_that_comes_after_a_miss_is_told_so(world: World) -> None:
    """Before the sweeper comes, too: the answer and the miss have one winner."""
    one = rendering(world)
    world.forward(minutes=11)
    assert world.answer(one, Complete(value=1)).code == "expired"


@shows_guard("beat-ring")
def test_a_miss_that_only_rings_rings_at_each_span(world: World) -> None:
    one = rendering(world, on_missed=OnMissed.RING)
    rung = bells(world)
    for n in (1, 2):
        world.forward(minutes=11)
        assert world.expire(one) == [False]
        assert world.expire(one) == [False]
        assert bells(world) == rung + n
    assert [entry.event for entry in world.history()].count("heartbeat_missed") == 2
    assert isinstance(world.heartbeat(one), Accepted)
    assert world.answer(one, Complete(value=1)).ok


def test_the_deadline_ends_a_job_that_tells_for_ever(world: World) -> None:
    one = rendering(world, expires_in=timedelta(minutes=15), on_missed=OnMissed.RING)
    world.forward(minutes=9)
    world.heartbeat(one)
    world.forward(minutes=7)
    assert world.expire(one) == [True]
    ended = world.record(one).resolution
    assert ended is not None
    assert ended.reason == "deny"


def test_without_a_deadline_a_silent_job_fails_all_the_same(world: World) -> None:
    for rest in ({"expires_in": None}, {"expires_in": timedelta(minutes=5), "on_expiry": OnExpiry.WAIT}):
        _place, (one,) = world.asked(completion(heartbeat=TEN, **rest), name=str(rest))
        world.forward(minutes=11)
        assert world.expire(one) == [True]


def test_timers_are_one_for_each_interrupt_and_leave_with_it(world: World) -> None:
    """The earlier of deadline and heartbeat; nothing is left when it has ended."""
    one = rendering(world, expires_in=timedelta(minutes=30))
    first = timer(world, one)
    world.forward(minutes=9)
    world.heartbeat(one)
    assert timedelta() <= timer(world, one) - first - timedelta(minutes=9) < NEAR
    world.forward(minutes=9)
    world.heartbeat(one)
    world.forward(minutes=9)
    world.heartbeat(one)
    assert timedelta() <= timer(world, one) - first - timedelta(minutes=20) < NEAR
    world.answer(one, Complete(value=1))
    assert world.client.zscore(world.key("timers"), f"i {one}") is None


def test_where_nobody_asked_for_heartbeats_one_changes_nothing(world: World) -> None:
    _place, ids = world.asked(completion("c1"), approval("c2"))
    before = world.snapshot()
    assert [world.heartbeat(one).code for one in ids] == ["accepted", "accepted"]
    assert changed(before, world.snapshot()) == []


def test_a_silent_job_supersedes_the_others_of_a_pause_that_takes_the_first(world: World) -> None:
    place, (one, two) = world.asked(completion("c1", heartbeat=TEN), approval("c2"), mode=Mode.FIRST)
    world.forward(minutes=11)
    assert isinstance(world.heartbeat(one), Expired)
    assert (world.settled(two), world.state(place)) == ("superseded", "ready")


def test_nobody_knows_an_interrupt_that_never_was(world: World) -> None:
    nobody = "int_0000" + "f" * 32
    gone = Address.gone(nobody)
    assert isinstance(world.do(answers.heartbeat(world.p, gone)), Unknown)


@pytest.mark.parametrize(
    ("rest", "field"),
    [
        ({"heartbeat": timedelta()}, "heartbeat"),
        ({"on_missed": OnMissed.RING}, "on_missed"),
        ({"heartbeat": TEN, "audience": None}, "heartbeat"),
        ({"heartbeat": TEN, "on_expiry": OnExpiry.DEFAULT, "default_answer": Complete(value=1)}, "heartbeat"),
    ],
)
def test_what_makes_no_sense_is_refused(rest: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as fault:
        Interrupt(**({"reason": "awaiting_completion", "audience": "completions"} | rest))
    assert fault.value.field == field
