"""One answer per interrupt, and everybody is told the truth."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from broker.core.answers import AnswerKind, Approve, Cancel, Edit, Principal, Reject
from broker.core.digest import action_digest
from broker.core.outcomes import AlreadyDecided, Expired, Outcome, Superseded, Withdrawn
from broker.core.states import Mode, Settlement
from broker.store.commands import answers

from .guarded import shows_guard
from .snapshot import changed
from .world import ANN, BOB, World, approval

OFFERS = (AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT)


@pytest.mark.report("RA18")
def test_of_fifty_racers_one_is_accepted_and_the_others_are_told_who_won(world: World) -> None:
    """P4, F10, F11, RA18: fifty clients on connections of their own."""
    _place, (one,) = world.asked()
    racers = [Principal(id=f"racer-{n}") for n in range(50)]
    said = [world.say(one, Approve() if n % 2 else Reject(reason="no"), by) for n, by in enumerate(racers)]

    def race(n: int) -> Outcome:
        return world.do(answers.answer(world.p, [said[n]]))

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(race, range(50)))
    (winner,) = [n for n, told in enumerate(outcomes) if told.code == "accepted"]
    losers = [told for told in outcomes if isinstance(told, AlreadyDecided)]
    assert len(losers) == 49
    first = (f"racer-{winner}", "approve" if winner % 2 else "reject", said[winner][1].op)
    assert {
        (told.winner.by.id if told.winner.by else "", told.winner.answer, told.winner.op) for told in losers
    } == {first}
    assert all(told.winner.at is not None for told in losers)


@pytest.mark.report("RA8")
def test_the_winner_that_asks_again_gets_its_success_again(world: World) -> None:
    """P3, rule 1, F12, RA8: and the ready bell rings again, since the first one may have been lost."""
    place, (one,) = world.asked()
    first, bells = world.answer(one), world.bells()["ready"]
    assert [world.answer(one).code for _ in range(3)] == ["replayed"] * 3
    assert first.code == "accepted"
    assert world.bells()["ready"] == bells + 3
    assert world.ready() == [place.run]


@pytest.mark.report("RA18")
def test_an_answer_once_given_stands(world: World) -> None:
    """F10, RA18: a second value gets `already decided` with the first one, and changes nothing."""
    _place, (one,) = world.asked()
    world.answer(one)
    before = world.snapshot()
    told = world.answer(one, Reject(reason="changed my mind"))
    assert isinstance(told, AlreadyDecided)
    assert told.winner.by is not None
    assert (told.winner.by.id, told.winner.answer) == ("ann", "approve")
    assert changed(before, world.snapshot()) == []


@pytest.mark.report("RA29")
def test_ends_are_told_apart_down_to_the_record(world: World) -> None:
    """F15, F37, RA29, rule 11: rejected, cancelled, expired, withdrawn, superseded are five facts."""
    _a, (rejected,) = world.asked(name="a")
    _b, (cancelled,) = world.asked(name="b")
    _c, (expired,) = world.asked(name="c")
    d, (withdrawn,) = world.asked(name="d")
    _e, (_won, superseded) = world.asked(approval("c1"), approval("c2"), name="e", mode=Mode.FIRST)
    world.answer(rejected, Reject(reason="too much"))
    world.answer(cancelled, Cancel())
    world.withdraw(d)
    world.answer(_won)
    world.forward(hours=25)
    world.expire(expired)
    ids = (rejected, cancelled, expired, withdrawn, superseded)
    assert [world.settled(i) for i in ids] == ["resolved", "cancelled", "expired", "withdrawn", "superseded"]
    told = [world.answer(i, by=BOB) for i in ids]
    assert [type(t) for t in told] == [AlreadyDecided, AlreadyDecided, Expired, Withdrawn, Superseded]
    kinds = [world.record(i).resolution for i in ids]
    assert [r.kind if r else "none" for r in kinds] == ["reject", "cancel", None, None, None]


@pytest.mark.report("RA43", "RB83")
def test_an_approval_is_bound_to_what_was_shown(world: World) -> None:
    """Rule 8: `seen` is the digest of the question; with it an answer to another one is refused."""
    _place, (one,) = world.asked(approval(amount=40))
    other = approval(amount=400)
    assert world.answer(one, seen=other.content_digest).code == "invalid"
    assert world.answer(one, seen=world.record(one).digest).code == "accepted"
    assert world.field("interrupt", one, "approved") == action_digest("refund", {"amount": 40})


def test_an_edit_lets_the_edited_action_run(world: World) -> None:
    _place, (one,) = world.asked(approval(offers=OFFERS))
    world.answer(one, Edit(arguments={"amount": 30}))
    assert world.field("interrupt", one, "approved") == action_digest("refund", {"amount": 30})


@pytest.mark.parametrize("answer", [Reject(reason="no"), Cancel()])
def test_what_was_not_approved_lets_nothing_run(world: World, answer: Reject | Cancel) -> None:
    _place, (one,) = world.asked()
    world.answer(one, answer)
    assert world.field("interrupt", one, "approved") == ""


@shows_guard("unknown-receipt")
def test_who_was_told_unknown_is_told_unknown_for_good(world: World) -> None:
    """Rule 9: the server lost the pause; A was told no; the run pauses again with the same question, so the same id.

    A late copy of A's answer must not be taken then.
    """
    place = world.place()
    world.start(place)
    lease = world.leased(place)
    pause = world.pause(place, approval(), token=lease.token)
    (question,) = pause.questions
    assert world.answer_unknown(question.id, op="op-1").code == "unknown"
    world.suspend(pause)
    assert world.answer(question.id, op="op-1").code == "unknown"
    assert world.settled(question.id) == Settlement.OPEN
    assert world.answer(question.id, op="op-2").code == "accepted"


@shows_guard("run-gone")
def test_an_answer_to_a_run_that_was_lost_makes_no_run(world: World) -> None:
    """The server lost the run, not its question: the answer is taken, and no half of a run comes to life."""
    place, (one,) = world.asked()
    world.client.delete(world.key("run", place.run))
    assert world.answer(one).code == "accepted"
    assert world.client.exists(world.key("run", place.run)) == 0
    assert world.answer(one, by=BOB).code == "already_decided"


def test_receipts_of_unknown_end_and_leave_nothing(world: World) -> None:
    first, second = ("int_0000" + digit * 32 for digit in "ab")
    world.answer_unknown(first)
    world.forward(hours=1, seconds=1)
    world.answer_unknown(second)
    assert world.client.zrange(world.key("unknown"), 0, -1) == [f"{second} op-1".encode()]


def test_answer_and_run_are_one_step(world: World) -> None:
    """F57, P2: with the answer the run is ready, its bell rung, the indexes clean, the history written."""
    place, (one,) = world.asked()
    bells = world.bells()
    world.answer(one)
    assert (world.state(place), world.ready()) == ("ready", [place.run])
    assert {name: n - bells[name] for name, n in world.bells().items() if n != bells[name]} == {
        "dispositions": 1,
        "ready": 1,
    }
    for index in ("open", "timers"):
        assert world.client.zcard(world.key(index)) == 0
    assert world.history()[-1].event == "resolved"


def test_history_names_who_when_what_and_a_digest(world: World) -> None:
    """P14, F47."""
    place, (one,) = world.asked()
    world.answer(one, by=ANN, op="op-1")
    entries = world.history()
    assert [e.event for e in entries] == ["started", "leased", "suspended", "resolved"]
    last = entries[-1]
    assert (last.run_id, last.seq, last.interrupt_id, last.by, last.op) == (place.run, 1, one, ANN, "op-1")
    assert last.digest == world.field("interrupt", one, "mark")
    assert [e.at for e in entries] == sorted(e.at for e in entries)


def test_an_op_that_settled_another_interrupt_is_no_success_here(world: World) -> None:
    """Rule 1: what a sibling's answer superseded carries its op, and is superseded all the same."""
    _place, (first, second) = world.asked(approval("c1"), approval("c2"), mode=Mode.FIRST)
    assert world.answer(first, op="click").code == "accepted"
    assert world.answer(second, op="click").code == "superseded"
