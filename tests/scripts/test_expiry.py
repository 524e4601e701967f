"""Deadlines: by the server's time, decided in one place, by policy."""

from datetime import timedelta

import pytest

from broker.core.answers import Approve, Reject, Respond
from broker.core.models import Interrupt, OnExpiry
from broker.core.outcomes import Expired
from broker.core.states import Mode
from broker.errors import BrokerError
from broker.store.commands import sweep
from broker.store.commands.address import Address
from broker.store.commands.values import StaleAddress

from .guarded import shows_guard
from .snapshot import changed
from .world import BOB, World, approval, completion

DAY = timedelta(hours=24)


def test_a_deadline_is_a_day_unless_said_otherwise(world: World) -> None:
    """F21: 24 h by default, the caller's own, or never, said explicitly."""
    _place, ids = world.asked(
        approval("c1"), approval("c2", expires_in=timedelta(minutes=15)), approval("c3", expires_in=None)
    )
    records = [world.record(i) for i in ids]
    spans = [r.deadline - r.opened_at if r.deadline else None for r in records]
    assert spans == [DAY, timedelta(minutes=15), None]


@pytest.mark.parametrize("ahead", [-1, 0, 1])
def test_answer_and_deadline_have_one_winner(world: World, ahead: int) -> None:
    """F13, F14, P8: around the deadline, to the second; the answer is accepted or expired, and both see the same."""
    place, (one,) = world.asked(approval(expires_in=timedelta(seconds=100)))
    world.forward(seconds=100 + ahead)
    told = world.answer(one)
    swept = world.expire(one)
    if ahead < 0:
        assert (told.code, swept, world.settled(one)) == ("accepted", [False], "resolved")
    else:
        assert (told.code, swept, world.settled(one)) == ("expired", [False], "expired")
    assert world.state(place) == "ready"


def test_the_sweeper_that_was_first_leaves_nothing_to_answer(world: World) -> None:
    """F14 from the other side, and rule 2: told `Expired` only when it is."""
    _place, (one,) = world.asked()
    world.forward(hours=25)
    assert world.expire(one) == [True]
    told = world.answer(one)
    assert isinstance(told, Expired)
    assert told.at == world.record(one).resolution.at  # type: ignore[union-attr]


def test_two_sweepers_at_once_do_no_harm(world: World) -> None:
    """Rule 3: the lists they read were true once; the second finds nothing to do."""
    _place, ids = world.asked(approval("c1"), approval("c2"))
    world.forward(hours=25)
    assert world.expire(*ids) == [True, True]
    before = world.snapshot()
    assert world.expire(*ids) == [False, False]
    assert changed(before, world.snapshot()) == []


def test_a_sweeper_does_not_expire_what_was_superseded_meanwhile(world: World) -> None:
    """Rule 3, mode first: it read "a is due" before b was answered."""
    _place, (a, b) = world.asked(
        approval("c1", expires_in=timedelta(minutes=1)), approval("c2", expires_in=None), mode=Mode.FIRST
    )
    world.answer(b)
    world.forward(minutes=2)
    assert world.expire(a) == [False]
    assert world.settled(a) == "superseded"


@pytest.mark.report("RA29")
@pytest.mark.parametrize(
    ("question", "why"),
    [
        (approval(), "deny"),
        (completion(), "deny"),
        (Interrupt.question("go on?"), "cancel"),
        (approval(on_expiry=OnExpiry.CANCEL), "cancel"),
    ],
)
def test_what_expires_is_expired_and_says_by_which_policy(
    world: World, question: Interrupt, why: str
) -> None:
    """F22 deny and cancel, RA29: never a rejection, never an approval, nobody's answer."""
    place, (one,) = world.asked(question)
    world.forward(hours=25)
    world.expire(one)
    found = world.record(one).resolution
    assert found is not None
    assert (found.state, found.answer, found.by, found.reason) == ("expired", None, None, why)
    assert world.state(place) == "ready"
    assert world.field("interrupt", one, "approved") == ""


@pytest.mark.parametrize("answer", [Approve(), Reject(reason="nobody came")])
def test_a_default_answer_is_given_at_the_deadline(world: World, answer: Approve | Reject) -> None:
    """F22 default: only where asked for does expiry approve; the verdict is there for the worker to read."""
    _place, (one,) = world.asked(approval(on_expiry=OnExpiry.DEFAULT, default_answer=answer))
    world.forward(hours=25)
    assert world.expire(one) == [True]
    record = world.record(one)
    assert record.problem is None
    assert record.resolution is not None
    assert (record.resolution.state, record.resolution.answer) == ("resolved", answer)
    approved = answer.kind == "approve"
    assert world.field("interrupt", one, "approved") == (
        world.field("interrupt", one, "action") if approved else ""
    )
    assert isinstance(world.answer(one, by=BOB), Expired)


def test_a_default_answer_that_was_lost_approves_nothing(world: World) -> None:
    """P8: without its bytes there is no verdict, and the question expires."""
    _place, (one,) = world.asked(approval(on_expiry=OnExpiry.DEFAULT, default_answer=Approve()))
    world.client.delete(world.key("default", one))
    world.forward(hours=25)
    assert world.expire(one) == [True]
    assert (world.settled(one), world.field("interrupt", one, "approved")) == ("expired", "")


def test_a_sweeper_that_may_not_write_verdicts_gives_no_default_answer(world: World) -> None:
    """Decisions: the worker's sweeper only denies, cancels or waits."""
    _place, (one,) = world.asked(approval(on_expiry=OnExpiry.DEFAULT, default_answer=Approve()))
    world.forward(hours=25)
    before = world.snapshot()
    (told,) = world.expire(one, decider=False)
    assert isinstance(told, StaleAddress)
    assert changed(before, world.snapshot()) == []


def test_policy_wait_keeps_the_question_open_beyond_its_deadline(world: World) -> None:
    """F22 wait: the deadline was a reminder, a late answer counts."""
    _place, (one,) = world.asked(approval(on_expiry=OnExpiry.WAIT))
    world.forward(days=3)
    assert world.expire(one) == [False]
    assert world.answer(one).code == "accepted"


@pytest.mark.report("RA12")
def test_an_expired_wait_eats_no_later_answer(world: World) -> None:
    """RA12: expire, ask again, answer: the dead one is out of every list and takes nothing."""
    place, (one,) = world.asked(Interrupt.question("go on?"))
    world.forward(hours=25)
    world.expire(one)
    world.ask(world.leased(place, "n2"), Interrupt.question("go on?"))
    two = world.run_address(place).interrupts[-1].interrupt
    assert world.answer(two, Respond(payload=False)).code == "accepted"
    assert (world.settled(one), world.settled(two)) == ("expired", "resolved")


@shows_guard("suspend-due")
def test_what_is_due_when_a_run_asks_again_is_expired_not_superseded(world: World) -> None:
    """Rule 2, section 4 step 5: mode each, the open one's deadline passed while the worker worked."""
    place, (first, second) = world.asked(
        approval("c1"), approval("c2", expires_in=timedelta(seconds=5)), mode=Mode.EACH
    )
    world.answer(first)
    lease = world.leased(place, "n2")
    world.forward(seconds=6)
    assert world.ask(lease, approval("c3"), mode=Mode.EACH).code == "accepted"
    assert world.settled(second) == "expired"
    assert world.state(place) == "ready"
    assert world.leased(place, "n3").text("shown") == second


def test_a_pause_whose_last_question_is_due_is_not_replaced(world: World) -> None:
    """Rule 2: it was over when the replacement came; the run is ready and says so."""
    place, (one,) = world.asked()
    world.forward(hours=25)
    assert world.suspend(world.pause(place, approval("c2"), seq=2, replace=True)).code == "conflict"
    assert (world.settled(one), world.state(place)) == ("expired", "ready")


def test_an_expiry_of_one_in_mode_first_ends_the_pause(world: World) -> None:
    place, (one, two) = world.asked(
        approval("c1", expires_in=timedelta(seconds=5)), approval("c2"), mode=Mode.FIRST
    )
    world.forward(seconds=6)
    assert world.expire(one) == [True]
    assert (world.settled(one), world.settled(two), world.state(place)) == ("expired", "superseded", "ready")


def test_sweeping_what_is_no_record_takes_it_off_the_list(world: World) -> None:
    """A timer without its record does not come up for ever."""
    gone = "int_0000" + "e" * 32
    world.client.zadd(world.key("timers"), {f"i {gone}": 1})
    results = world.all(sweep.expire(world.p, [Address.gone(gone)], decider=True))
    assert not any(isinstance(one, BrokerError) for one in results)
    assert world.client.zcard(world.key("timers")) == 0
