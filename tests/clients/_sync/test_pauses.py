# Generated from tests/clients/_async/test_pauses.py by tests/tools/unasync.py (make sync): do not edit.
from datetime import UTC, datetime, timedelta

import pytest

from broker import (
    Accepted,
    Approve,
    Broker,
    Conflict,
    InterruptState,
    Invalid,
    InvalidInput,
    Mode,
    PendingToolCall,
    Refused,
    Reject,
    Replayed,
    RunState,
    Settlement,
    StaleLease,
    Superseded,
    UnknownId,
)
from tests.clients.asking import colour, refund, render

STATE = InterruptState(
    context_snapshot=[{"role": "user", "content": "help"}], system_prompt="Be kind.", model="m-1"
)


def test_a_pause_is_there_as_a_whole(broker: Broker) -> None:
    paused = broker.suspend("support", refund(), render(), session="s", key="k", state=STATE)
    assert isinstance(paused, Accepted)
    run_id = paused.run_id
    assert broker.active("s") == {run_id: 1}
    record = broker.runs.get(run_id)
    assert (record.state, record.seq, record.interrupt_ids) == (RunState.WAITING, 1, paused.interrupt_ids)
    frozen = broker.runs.state(run_id)
    assert frozen is not None
    assert (frozen.context_snapshot, frozen.system_prompt, frozen.model) == (
        STATE.context_snapshot, STATE.system_prompt, STATE.model,
    )  # fmt: skip
    assert frozen.interrupted_at is not None
    assert [call.tool_call_id for call in frozen.pending_tool_calls] == ["call_1", "job_1"]
    assert [one.id for one in (broker.inbox.list()).items] == list(paused.interrupt_ids)


def test_the_same_pause_again_is_the_same(broker: Broker) -> None:
    first = broker.suspend("support", refund(), session="s", key="k")
    again = broker.suspend("support", refund(), session="s", key="k")
    assert isinstance(again, Replayed)
    assert again.interrupt_ids == first.interrupt_ids
    assert len((broker.inbox.list()).items) == 1


def test_other_questions_at_the_same_point_are_a_conflict(broker: Broker) -> None:
    broker.suspend("support", refund(40), session="s", key="k")
    with pytest.raises(Refused) as refused:
        broker.suspend("support", refund(400), session="s", key="k")
    assert isinstance(refused.value.outcome, Conflict)
    assert len((broker.inbox.list()).items) == 1


def test_new_input_replaces_the_questions(broker: Broker) -> None:
    first = broker.suspend("support", refund(40), session="s", key="k")
    second = broker.suspend("support", refund(400), session="s", key="k", seq=2, replace=True)
    assert second.run_id == first.run_id
    assert isinstance(broker.inbox.answer(first.interrupt_ids[0], Approve()), Superseded)
    assert (broker.inbox.get(first.interrupt_ids[0])).state is Settlement.SUPERSEDED
    assert [one.id for one in (broker.inbox.list()).items] == list(second.interrupt_ids)
    assert broker.active("s") == {first.run_id: 2}


def test_a_run_id_must_be_of_the_session(broker: Broker) -> None:
    elsewhere = broker.start("support", session="other")
    for run_id in (elsewhere.run_id, "foreign-7"):
        with pytest.raises(InvalidInput) as fault:
            broker.suspend("support", refund(), session="s", run_id=run_id)
        assert fault.value.field == "run_id"
    started = broker.start("support", session="s")
    with pytest.raises(Refused):  # it is ready: a worker's
        broker.suspend("support", refund(), session="s", run_id=started.run_id)


@pytest.mark.report("RB49")
def test_RB49_a_leased_run_pauses_and_goes_on_with_the_answers(broker: Broker) -> None:
    """State and answers come together. Off: `state` not written by suspend.lua."""
    started = broker.start("support", session="s")
    with broker.take(started.run_id) as run:
        paused = run.suspend(refund(), render(), state=STATE)
        assert isinstance(run.suspend(refund(), render(), state=STATE), Replayed)
        with pytest.raises(StaleLease):
            run.finish()
    approval, job = paused.interrupt_ids
    broker.inbox.answer(approval, Reject(reason="too much"))
    assert (broker.runs.get(run.id)).state is RunState.WAITING
    broker.complete(job, {"video": "v.mp4"})
    with broker.take(run.id) as again:
        assert (again.seq, again.fence) == (1, 2)
        assert again.state is not None
        assert again.state.context_snapshot == STATE.context_snapshot
        assert [one.kind for one in again.resolutions] == ["reject", "complete"]
        assert again.resolution("job_1").answer is not None
        assert again.resolution("call_1").reason is None
        with pytest.raises(UnknownId):
            again.resolution("call_2")
        again.finish()


def test_pending_calls_become_approvals(broker: Broker) -> None:
    calls = (PendingToolCall(tool_call_id="c1", tool_name="pay", arguments={"n": 1}),)
    paused = broker.suspend("support", session="s", state=InterruptState(pending_tool_calls=calls))
    record = broker.inbox.get(paused.interrupt_ids[0])
    assert record.interrupt.action is not None
    assert (record.interrupt.call_id, record.interrupt.action.tool) == ("c1", "pay")


def test_calls_and_questions_that_disagree_are_refused(broker: Broker) -> None:
    calls = (PendingToolCall(tool_call_id="c1", tool_name="pay", arguments={"n": 1}),)
    state = InterruptState(pending_tool_calls=calls)
    for wrong in ((refund(),), (refund(), refund())):
        with pytest.raises(InvalidInput):
            broker.suspend("support", *wrong, session="s", key="k", state=state)
    with pytest.raises(InvalidInput):
        broker.suspend("support", session="s", key="k")
    assert (broker.inbox.list()).items == ()
    assert broker.history("s") == ()


def test_a_deadline_that_has_passed_is_refused(broker: Broker) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    with pytest.raises(Refused) as refused:
        broker.suspend("support", refund(expires_at=past), session="s", key="k")
    assert isinstance(refused.value.outcome, Invalid)
    assert refused.value.outcome.field == "expires_at"
    assert broker.history("s") == ()


def test_F08_the_first_answer_of_several_decides(broker: Broker) -> None:
    """The others have lost their point. Off: `MODE.FIRST` in `settle` of the prelude."""
    paused = broker.suspend("support", refund(call="a"), refund(call="b"), session="s", mode=Mode.FIRST)
    first, second = paused.interrupt_ids
    assert isinstance(broker.inbox.answer(first, Approve()), Accepted)
    assert isinstance(broker.inbox.answer(second, Approve()), Superseded)
    assert (broker.runs.get(paused.run_id)).state is RunState.READY


def test_each_answer_wakes_and_the_others_are_kept(broker: Broker) -> None:
    paused = broker.suspend("support", refund(call="a"), refund(call="b"), session="s", mode=Mode.EACH)
    first, second = paused.interrupt_ids
    run_id = paused.run_id
    broker.inbox.answer(first, Approve())
    with broker.take(run_id) as run:
        assert [one.interrupt_id for one in run.resolutions] == [first]
        again = run.suspend(colour(), mode=Mode.EACH, keep=[second])
    assert {one.id for one in (broker.inbox.list()).items} == {second, again.interrupt_ids[-1]}
    broker.inbox.answer(second, Approve())
    with broker.take(run_id) as run:
        assert [one.interrupt_id for one in run.resolutions] == [second]
        assert run.finish() is RunState.WAITING  # a question is open: it waits for that


def test_a_release_is_no_failure(broker: Broker) -> None:
    started = broker.start("support", session="s")
    with broker.take(started.run_id) as run:
        run.release()
        assert (broker.runs.get(run.id)).tries == 0
        with pytest.raises(StaleLease):
            run.suspend(refund())
    assert broker.runs.ready("agents") == (started.run_id,)
