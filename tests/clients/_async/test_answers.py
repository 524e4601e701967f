from datetime import timedelta

import pytest

from broker import (
    Accepted,
    Action,
    AlreadyDecided,
    AnswerKind,
    Approve,
    AsyncBroker,
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


async def asked(broker: AsyncBroker, *interrupts: Interrupt, session: str = "s") -> str:
    return (await broker.suspend("support", *interrupts, session=session)).interrupt_ids[0]


async def test_an_answer_is_accepted_once(broker: AsyncBroker) -> None:
    one = await asked(broker, refund())
    record = await broker.inbox.get(one)
    assert (record.state, record.resolution, record.problem) == (Settlement.OPEN, None, None)
    told = await broker.inbox.answer(one, Approve(note="fine"), by=ADA, seen=record.digest)
    assert isinstance(told, Accepted)
    assert (told.session_id, told.run_id, told.interrupt_ids) == ("s", record.run_id, (one,))
    settled = await broker.inbox.get(one)
    assert settled.state is Settlement.RESOLVED
    assert settled.resolution is not None
    assert (settled.resolution.answer, settled.resolution.by) == (Approve(note="fine"), ADA)
    assert (await broker.runs.get(record.run_id)).state is RunState.READY


async def test_the_same_answer_again_is_the_same(broker: AsyncBroker) -> None:
    one = await asked(broker, refund())
    await broker.inbox.answer(one, Approve(), by=ADA)
    again = await broker.inbox.answer(one, Approve(), by=ADA)
    assert isinstance(again, Replayed)
    assert again.interrupt_ids == (one,)
    assert isinstance(await broker.inbox.answer(one, Reject(reason="no"), by=ADA, op="o-1"), AlreadyDecided)


async def test_who_comes_later_is_told_who_won(broker: AsyncBroker) -> None:
    one = await asked(broker, refund())
    await broker.inbox.answer(one, Approve(), by=ADA, op="first")
    late = await broker.inbox.answer(one, Reject(reason="no"), by=BEN)
    assert isinstance(late, AlreadyDecided)
    won = late.winner
    assert (won.by, won.answer, won.op) == (ADA, AnswerKind.APPROVE, "first")
    assert won.at == (await broker.inbox.get(one)).resolution.at  # type: ignore[union-attr]


async def test_what_does_not_fit_changes_nothing(broker: AsyncBroker) -> None:
    approval, question = await asked(broker, refund()), await asked(broker, colour(), session="s2")
    for one, answer, field in (
        (approval, Complete(value=1), "answer.kind"),
        (approval, Edit(arguments={}), "answer.kind"),
        (question, Respond(payload={"colour": "green"}), "payload.colour"),
        (question, Respond(payload={}), "payload"),
    ):
        told = await broker.inbox.answer(one, answer)
        assert isinstance(told, Invalid)
        assert told.field == field
        assert (await broker.inbox.get(one)).state is Settlement.OPEN
    told = await broker.inbox.answer(approval, Approve(), seen="1:" + "0" * 64)
    assert isinstance(told, Invalid)
    assert (told.field, told.allowed) == ("seen", (await broker.inbox.get(approval)).digest)
    assert isinstance(await broker.inbox.answer(question, Respond(payload={"colour": "red"})), Accepted)


async def test_arguments_are_edited_where_that_is_offered(broker: AsyncBroker) -> None:
    offers = (AnswerKind.APPROVE, AnswerKind.EDIT)
    one = await asked(broker, refund(40, offers=offers))
    assert isinstance(await broker.inbox.answer(one, Edit(arguments={"amount": 20})), Accepted)
    run_id = (await broker.inbox.get(one)).run_id
    async with broker.take(run_id) as run:
        assert run.resolution("call_1").answer == Edit(arguments={"amount": 20})


async def test_a_cancelled_question_is_not_a_rejected_one(broker: AsyncBroker) -> None:
    one = await asked(broker, refund())
    assert isinstance(await broker.cancel(one, "nobody is in", by=ADA), Accepted)
    settled = await broker.inbox.get(one)
    assert settled.state is Settlement.CANCELLED
    assert settled.resolution is not None
    assert settled.resolution.answer == Cancel(reason="nobody is in")


async def test_a_job_is_completed_or_fails(broker: AsyncBroker) -> None:
    done, lost = await asked(broker, render()), await asked(broker, render("job_2"), session="s2")
    assert isinstance(await broker.complete(done, None, by=ADA, op="hook-1"), Accepted)
    assert isinstance(await broker.complete(done, None, by=ADA, op="hook-1"), Replayed)
    assert isinstance(await broker.fail(lost, "no disk", by=ADA), Accepted)
    found = [(await broker.inbox.get(one)).resolution for one in (done, lost)]
    assert [each.answer for each in found if each] == [Complete(value=None), Fail(error="no disk")]


async def test_nobody_may_answer_without_a_name(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace) as nameless:
        one = await asked(nameless, refund())
        with pytest.raises(InvalidInput) as fault:
            await nameless.inbox.answer(one, Approve())
        assert fault.value.field == "by"
        robot = Principal(id="bot", kind=PrincipalKind.SERVICE, verified=True)
        assert isinstance(await nameless.inbox.answer(one, Approve(), by=robot), Accepted)


async def test_an_interrupt_nobody_knows(broker: AsyncBroker) -> None:
    strange = "int_" + "0" * 36
    assert isinstance(await broker.inbox.answer(strange, Approve()), Unknown)
    with pytest.raises(UnknownId):
        await broker.inbox.get(strange)
    with pytest.raises(UnknownId):
        await broker.inbox.answer("4711", Approve())


async def test_after_the_deadline_it_is_too_late(timed: AsyncBroker, clock: Clock) -> None:
    one = await asked(timed, refund(expires_in=timedelta(minutes=5)))
    clock.advance(timedelta(minutes=5))
    late = await timed.inbox.answer(one, Approve())
    assert isinstance(late, Expired)
    record = await timed.inbox.get(one)
    assert record.state is Settlement.EXPIRED
    assert record.resolution is not None
    assert (record.resolution.at, record.resolution.by, record.resolution.answer) == (late.at, None, None)
    assert (await timed.runs.get(record.run_id)).state is RunState.READY


async def test_a_deadline_may_be_no_more_than_a_reminder(timed: AsyncBroker, clock: Clock) -> None:
    one = await asked(timed, refund(expires_in=timedelta(minutes=5), on_expiry=OnExpiry.WAIT))
    clock.advance(timedelta(hours=5))
    assert isinstance(await timed.inbox.answer(one, Approve()), Accepted)


async def test_a_question_taken_back_says_so(broker: AsyncBroker) -> None:
    one = await asked(broker, refund())
    await broker.runs.withdraw((await broker.inbox.get(one)).run_id, by=ADA)
    told = await broker.inbox.answer(one, Approve(), by=BEN)
    assert isinstance(told, Withdrawn)
    assert told.by == ADA


async def test_an_answer_before_its_question_is_kept(broker: AsyncBroker) -> None:
    told = await broker.inbox.answer_call("s", "call_1", Approve(), by=ADA)
    assert isinstance(told, Parked)
    assert told.until is not None
    assert isinstance(await broker.inbox.answer_call("s", "call_1", Approve(), by=ADA), Replayed)
    late = await broker.inbox.answer_call("s", "call_1", Reject(reason="no"), by=BEN)
    assert isinstance(late, AlreadyDecided)
    assert (late.winner.by, late.winner.answer) == (ADA, AnswerKind.APPROVE)
    one = await asked(broker, refund())
    settled = await broker.inbox.get(one)
    assert settled.state is Settlement.RESOLVED
    assert settled.resolution is not None
    assert (settled.resolution.by, settled.resolution.answer) == (ADA, Approve())
    again = await broker.inbox.answer_call("s", "call_1", Approve(), by=ADA)
    assert isinstance(again, Replayed)


async def test_an_answer_by_call_names_run_and_pause(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    run_id = started.run_id
    early = await broker.inbox.answer_call("s", "call_1", Approve(), run_id=run_id, seq=1, by=ADA)
    assert isinstance(early, Parked)
    async with broker.take(run_id) as run:
        await run.suspend(refund(40))
    async with broker.take(run_id) as run:
        assert run.resolution("call_1").by == ADA
        again = await run.suspend(refund(400))
    answers = broker.inbox.answer_call
    assert isinstance(await answers("s", "call_1", Approve(), run_id=run_id, seq=1, by=ADA), Replayed)
    assert isinstance(await answers("s", "call_1", Reject(reason="no"), run_id=run_id, seq=1), AlreadyDecided)
    assert isinstance(await answers("s", "call_1", Reject(reason="no")), Conflict)
    assert (await broker.inbox.get(again.interrupt_ids[0])).state is Settlement.OPEN
    assert isinstance(await answers("s", "call_1", Approve(), run_id=run_id, seq=2, by=ADA), Accepted)
    assert isinstance(await answers("s", "call_1", Approve(), run_id=run_id, seq=2, by=ADA), Replayed)
    assert isinstance(await answers("s", "call_9", Approve(), run_id=run_id, seq=1), Unknown)
    with pytest.raises(InvalidInput):
        await answers("s", "call_1", Approve(), run_id=run_id)


async def test_an_answer_by_call_is_repeated_after_the_run_went_on(broker: AsyncBroker) -> None:
    one = await asked(broker, refund())
    assert isinstance(await broker.inbox.answer_call("s", "call_1", Approve(), by=ADA), Accepted)
    async with broker.take((await broker.inbox.get(one)).run_id) as run:
        assert isinstance(await broker.inbox.answer_call("s", "call_1", Approve(), by=ADA), Replayed)
        await run.finish()
    assert isinstance(await broker.inbox.answer_call("s", "call_1", Approve(), by=ADA), Replayed)
    told = await broker.inbox.answer_call("s", "call_1", Approve(), by=BEN)
    assert isinstance(told, AlreadyDecided)
    assert told.winner.by == ADA


async def test_an_early_answer_is_held_against_the_schema(broker: AsyncBroker) -> None:
    await broker.inbox.answer_call("s", "call_1", Respond(payload={"colour": "green"}))
    one = await asked(broker, colour(call_id="call_1", action=Action(tool="paint", arguments={})))
    assert (await broker.inbox.get(one)).state is Settlement.OPEN
    assert "unmatched" in [entry.event for entry in await broker.history("s")]
    await broker.inbox.answer_call("s2", "call_1", Respond(payload={"colour": "red"}))
    two = await asked(
        broker, colour(call_id="call_1", action=Action(tool="paint", arguments={})), session="s2"
    )
    assert (await broker.inbox.get(two)).state is Settlement.RESOLVED
    told = await broker.inbox.answer_call("s", "call_1", Respond(payload={"colour": "green"}), by=BEN)
    assert isinstance(told, Invalid)
