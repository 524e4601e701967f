# Generated from tests/clients/_async/test_answers.py by tests/tools/unasync.py (make sync): do not edit.
from datetime import timedelta

import pytest

from broker import (
    Accepted,
    Action,
    AlreadyDecided,
    AnswerKind,
    Approve,
    Broker,
    Cancel,
    Complete,
    Conflict,
    Edit,
    Expired,
    Fail,
    Interrupt,
    Invalid,
    InvalidInput,
    OnExpiry,
    Parked,
    Principal,
    PrincipalKind,
    Reject,
    Replayed,
    Respond,
    RunState,
    Settlement,
    Unknown,
    UnknownId,
    Withdrawn,
)
from broker.testing import RunningServer
from tests.clients.asking import ADA, BEN, colour, refund, render
from tests.clock import Clock


def asked(broker: Broker, *interrupts: Interrupt, session: str = "s") -> str:
    return (broker.suspend("support", *interrupts, session=session)).interrupt_ids[0]


def test_an_answer_is_accepted_once(broker: Broker) -> None:
    one = asked(broker, refund())
    record = broker.inbox.get(one)
    assert (record.state, record.resolution, record.problem) == (Settlement.OPEN, None, None)
    told = broker.inbox.answer(one, Approve(note="fine"), by=ADA, seen=record.digest)
    assert isinstance(told, Accepted)
    assert (told.session_id, told.run_id, told.interrupt_ids) == ("s", record.run_id, (one,))
    settled = broker.inbox.get(one)
    assert settled.state is Settlement.RESOLVED
    assert settled.resolution is not None
    assert (settled.resolution.answer, settled.resolution.by) == (Approve(note="fine"), ADA)
    assert (broker.runs.get(record.run_id)).state is RunState.READY


def test_the_same_answer_again_is_the_same(broker: Broker) -> None:
    one = asked(broker, refund())
    broker.inbox.answer(one, Approve(), by=ADA)
    again = broker.inbox.answer(one, Approve(), by=ADA)
    assert isinstance(again, Replayed)
    assert again.interrupt_ids == (one,)
    assert isinstance(broker.inbox.answer(one, Reject(reason="no"), by=ADA, op="o-1"), AlreadyDecided)


def test_who_comes_later_is_told_who_won(broker: Broker) -> None:
    one = asked(broker, refund())
    broker.inbox.answer(one, Approve(), by=ADA, op="first")
    late = broker.inbox.answer(one, Reject(reason="no"), by=BEN)
    assert isinstance(late, AlreadyDecided)
    won = late.winner
    assert (won.by, won.answer, won.op) == (ADA, AnswerKind.APPROVE, "first")
    assert won.at == (broker.inbox.get(one)).resolution.at  # type: ignore[union-attr]


def test_what_does_not_fit_changes_nothing(broker: Broker) -> None:
    approval, question = asked(broker, refund()), asked(broker, colour(), session="s2")
    for one, answer, field in (
        (approval, Complete(value=1), "answer.kind"),
        (approval, Edit(arguments={}), "answer.kind"),
        (question, Respond(payload={"colour": "green"}), "payload.colour"),
        (question, Respond(payload={}), "payload"),
    ):
        told = broker.inbox.answer(one, answer)
        assert isinstance(told, Invalid)
        assert told.field == field
        assert (broker.inbox.get(one)).state is Settlement.OPEN
    told = broker.inbox.answer(approval, Approve(), seen="1:" + "0" * 64)
    assert isinstance(told, Invalid)
    assert (told.field, told.allowed) == ("seen", (broker.inbox.get(approval)).digest)
    assert isinstance(broker.inbox.answer(question, Respond(payload={"colour": "red"})), Accepted)


def test_arguments_are_edited_where_that_is_offered(broker: Broker) -> None:
    offers = (AnswerKind.APPROVE, AnswerKind.EDIT)
    one = asked(broker, refund(40, offers=offers))
    assert isinstance(broker.inbox.answer(one, Edit(arguments={"amount": 20})), Accepted)
    run_id = (broker.inbox.get(one)).run_id
    with broker.take(run_id) as run:
        assert run.resolution("call_1").answer == Edit(arguments={"amount": 20})


def test_a_cancelled_question_is_not_a_rejected_one(broker: Broker) -> None:
    one = asked(broker, refund())
    assert isinstance(broker.cancel(one, "nobody is in", by=ADA), Accepted)
    settled = broker.inbox.get(one)
    assert settled.state is Settlement.CANCELLED
    assert settled.resolution is not None
    assert settled.resolution.answer == Cancel(reason="nobody is in")


def test_a_job_is_completed_or_fails(broker: Broker) -> None:
    done, lost = asked(broker, render()), asked(broker, render("job_2"), session="s2")
    assert isinstance(broker.complete(done, None, by=ADA, op="hook-1"), Accepted)
    assert isinstance(broker.complete(done, None, by=ADA, op="hook-1"), Replayed)
    assert isinstance(broker.fail(lost, "no disk", by=ADA), Accepted)
    found = [(broker.inbox.get(one)).resolution for one in (done, lost)]
    assert [each.answer for each in found if each] == [Complete(value=None), Fail(error="no disk")]


def test_nobody_may_answer_without_a_name(server: RunningServer, namespace: str) -> None:
    with Broker(server.url, namespace=namespace) as nameless:
        one = asked(nameless, refund())
        with pytest.raises(InvalidInput) as fault:
            nameless.inbox.answer(one, Approve())
        assert fault.value.field == "by"
        robot = Principal(id="bot", kind=PrincipalKind.SERVICE, verified=True)
        assert isinstance(nameless.inbox.answer(one, Approve(), by=robot), Accepted)


def test_an_interrupt_nobody_knows(broker: Broker) -> None:
    strange = "int_" + "0" * 36
    assert isinstance(broker.inbox.answer(strange, Approve()), Unknown)
    with pytest.raises(UnknownId):
        broker.inbox.get(strange)
    with pytest.raises(UnknownId):
        broker.inbox.answer("4711", Approve())


def test_after_the_deadline_it_is_too_late(timed: Broker, clock: Clock) -> None:
    one = asked(timed, refund(expires_in=timedelta(minutes=5)))
    clock.advance(timedelta(minutes=5))
    late = timed.inbox.answer(one, Approve())
    assert isinstance(late, Expired)
    record = timed.inbox.get(one)
    assert record.state is Settlement.EXPIRED
    assert record.resolution is not None
    assert (record.resolution.at, record.resolution.by, record.resolution.answer) == (late.at, None, None)
    assert (timed.runs.get(record.run_id)).state is RunState.READY


def test_a_deadline_may_be_no_more_than_a_reminder(timed: Broker, clock: Clock) -> None:
    one = asked(timed, refund(expires_in=timedelta(minutes=5), on_expiry=OnExpiry.WAIT))
    clock.advance(timedelta(hours=5))
    assert isinstance(timed.inbox.answer(one, Approve()), Accepted)


def test_a_question_taken_back_says_so(broker: Broker) -> None:
    one = asked(broker, refund())
    broker.runs.withdraw((broker.inbox.get(one)).run_id, by=ADA)
    told = broker.inbox.answer(one, Approve(), by=BEN)
    assert isinstance(told, Withdrawn)
    assert told.by == ADA


def test_an_answer_before_its_question_is_kept(broker: Broker) -> None:
    told = broker.inbox.answer_call("s", "call_1", Approve(), by=ADA)
    assert isinstance(told, Parked)
    assert told.until is not None
    assert isinstance(broker.inbox.answer_call("s", "call_1", Approve(), by=ADA), Replayed)
    late = broker.inbox.answer_call("s", "call_1", Reject(reason="no"), by=BEN)
    assert isinstance(late, AlreadyDecided)
    assert (late.winner.by, late.winner.answer) == (ADA, AnswerKind.APPROVE)
    one = asked(broker, refund())
    settled = broker.inbox.get(one)
    assert settled.state is Settlement.RESOLVED
    assert settled.resolution is not None
    assert (settled.resolution.by, settled.resolution.answer) == (ADA, Approve())
    again = broker.inbox.answer_call("s", "call_1", Approve(), by=ADA)
    assert isinstance(again, Replayed)


def test_an_answer_by_call_names_run_and_pause(broker: Broker) -> None:
    started = broker.start("support", session="s")
    run_id = started.run_id
    early = broker.inbox.answer_call("s", "call_1", Approve(), run_id=run_id, seq=1, by=ADA)
    assert isinstance(early, Parked)
    with broker.take(run_id) as run:
        run.suspend(refund(40))
    with broker.take(run_id) as run:
        assert run.resolution("call_1").by == ADA
        again = run.suspend(refund(400))
    answers = broker.inbox.answer_call
    assert isinstance(answers("s", "call_1", Approve(), run_id=run_id, seq=1, by=ADA), Replayed)
    assert isinstance(answers("s", "call_1", Reject(reason="no"), run_id=run_id, seq=1), AlreadyDecided)
    assert isinstance(answers("s", "call_1", Reject(reason="no")), Conflict)
    assert (broker.inbox.get(again.interrupt_ids[0])).state is Settlement.OPEN
    assert isinstance(answers("s", "call_1", Approve(), run_id=run_id, seq=2, by=ADA), Accepted)
    assert isinstance(answers("s", "call_1", Approve(), run_id=run_id, seq=2, by=ADA), Replayed)
    assert isinstance(answers("s", "call_9", Approve(), run_id=run_id, seq=1), Unknown)
    with pytest.raises(InvalidInput):
        answers("s", "call_1", Approve(), run_id=run_id)


def test_an_answer_by_call_is_repeated_after_the_run_went_on(broker: Broker) -> None:
    one = asked(broker, refund())
    assert isinstance(broker.inbox.answer_call("s", "call_1", Approve(), by=ADA), Accepted)
    with broker.take((broker.inbox.get(one)).run_id) as run:
        assert isinstance(broker.inbox.answer_call("s", "call_1", Approve(), by=ADA), Replayed)
        run.finish()
    assert isinstance(broker.inbox.answer_call("s", "call_1", Approve(), by=ADA), Replayed)
    told = broker.inbox.answer_call("s", "call_1", Approve(), by=BEN)
    assert isinstance(told, AlreadyDecided)
    assert told.winner.by == ADA


def test_an_early_answer_is_held_against_the_schema(broker: Broker) -> None:
    broker.inbox.answer_call("s", "call_1", Respond(payload={"colour": "green"}))
    one = asked(broker, colour(call_id="call_1", action=Action(tool="paint", arguments={})))
    assert (broker.inbox.get(one)).state is Settlement.OPEN
    assert "unmatched" in [entry.event for entry in broker.history("s")]
    broker.inbox.answer_call("s2", "call_1", Respond(payload={"colour": "red"}))
    two = asked(broker, colour(call_id="call_1", action=Action(tool="paint", arguments={})), session="s2")
    assert (broker.inbox.get(two)).state is Settlement.RESOLVED
    told = broker.inbox.answer_call("s", "call_1", Respond(payload={"colour": "green"}), by=BEN)
    assert isinstance(told, Invalid)
