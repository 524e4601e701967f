# Generated from tests/clients/_async/test_runs.py by tests/tools/unasync.py (make sync): do not edit.
import pytest
from pydantic import BaseModel

from broker import (
    Accepted,
    AlreadyDecided,
    AlreadyLeased,
    Broker,
    Conflict,
    InvalidInput,
    Refused,
    Replayed,
    RunState,
    StaleLease,
    UnknownId,
)
from tests.clients.asking import ADA, BEN, refund


class Question(BaseModel):
    text: str


def test_a_start_makes_a_run_that_is_ready(broker: Broker) -> None:
    started = broker.start(
        "support", Question(text="hello"), session="s", priority=2, metadata={"tenant": "acme"}, by=ADA
    )
    assert isinstance(started, Accepted)
    assert (started.session_id, started.interrupt_ids) == ("s", ())
    run = broker.runs.get(started.run_id)
    assert (run.state, run.seq, run.fence, run.queue, run.agent) == (
        RunState.READY,
        0,
        0,
        "agents",
        "support",
    )
    assert (run.input, run.metadata, run.priority) == ({"text": "hello"}, {"tenant": "acme"}, 2)
    assert broker.runs.ready("agents") == (run.id,)
    assert (broker.history("s"))[0].by == ADA


def test_a_start_without_a_key_is_a_new_run_each_time(broker: Broker) -> None:
    first, second = broker.start("support", session="s"), broker.start("support", session="s")
    assert first.run_id != second.run_id


def test_a_start_under_a_key_is_one_run(broker: Broker) -> None:
    first = broker.start("support", {"n": 1}, session="s", key="mail-1")
    again = broker.start("support", {"n": 1}, session="s", key="mail-1")
    elsewhere = broker.start("support", {"n": 1}, session="s2", key="mail-1")
    assert isinstance(again, Replayed)
    assert again.run_id == first.run_id != elsewhere.run_id
    with pytest.raises(Refused) as refused:
        broker.start("support", {"n": 2}, session="s", key="mail-1")
    assert isinstance(refused.value.outcome, Conflict)
    assert (broker.runs.get(first.run_id)).input == {"n": 1}


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("agent", {"agent": "no spaces"}),
        ("session", {"session": ""}),
        ("session", {"session": "a{b}"}),
        ("key", {"key": "\x00"}),
        ("queue", {"queue": "q:1"}),
        ("build", {"build": "-"}),
        ("priority", {"priority": 1001}),
        ("input", {"input": float("nan")}),
    ],
)
def test_what_a_start_cannot_take_is_named(broker: Broker, field: str, given: dict[str, object]) -> None:
    options: dict[str, object] = {"agent": "support", "session": "s"} | given
    with pytest.raises(InvalidInput) as fault:
        broker.start(**options)  # type: ignore[arg-type]
    assert fault.value.field == field
    assert broker.runs.ready("agents") == ()


def test_ready_runs_come_by_priority_then_by_age(broker: Broker) -> None:
    ids = [
        (broker.start(agent, session="s", priority=priority)).run_id
        for agent, priority in (("a", 0), ("b", 0), ("a", 5), ("b", 1), ("a", -1))
    ]
    order = [ids[n] for n in (2, 3, 0, 1, 4)]
    assert list(broker.runs.ready("agents")) == order
    assert list(broker.runs.ready("agents", ("a",))) == [ids[2], ids[0], ids[4]]
    assert list(broker.runs.ready("agents", limit=2)) == order[:2]
    assert broker.runs.ready("other") == ()


def test_a_run_nobody_knows(broker: Broker) -> None:
    for strange in ("run_nothing", "run_" + "0" * 30, "4711"):
        with pytest.raises(UnknownId):
            broker.runs.get(strange)
        with pytest.raises(UnknownId):
            broker.runs.withdraw(strange)
    with pytest.raises(InvalidInput):
        broker.runs.get("")


def test_a_run_is_taken_for_the_length_of_a_block(broker: Broker) -> None:
    started = broker.start("support", {"n": 1}, session="s")
    with broker.take(started.run_id, holder="me") as run:
        assert (run.input, run.seq, run.fence, run.attempt, run.state) == ({"n": 1}, 0, 1, 1, None)
        record = broker.runs.get(run.id)
        assert (record.state, record.holder) == (RunState.LEASED, "me")
        with pytest.raises(AlreadyLeased) as told:
            with broker.take(run.id):
                pass
        assert (told.value.code, told.value.holder) == ("already_leased", "me")
    assert (broker.runs.get(run.id)).state is RunState.READY
    assert (broker.runs.get(run.id)).tries == 0
    with pytest.raises(StaleLease):
        run.finish()


def test_a_block_that_finishes_has_finished(broker: Broker) -> None:
    started = broker.start("support", session="s")
    with broker.take(started.run_id) as run:
        assert run.finish({"answer": 42}, by=ADA) is RunState.FINISHED
    record = broker.runs.get(run.id)
    assert (record.state, record.result, record.errors) == (RunState.FINISHED, {"answer": 42}, ())
    assert (broker.history("s"))[-1].by == ADA
    with pytest.raises(UnknownId):
        with broker.take(run.id):
            pass


def test_a_block_that_raises_has_failed_an_attempt(broker: Broker) -> None:
    started = broker.start("support", session="s")
    with pytest.raises(ZeroDivisionError):
        with broker.take(started.run_id):
            raise ZeroDivisionError("by zero")
    record = broker.runs.get(started.run_id)
    assert (record.state, record.tries) == (RunState.READY, 1)
    assert len(record.errors) == 1
    assert "ZeroDivisionError: by zero" in record.errors[0]
    assert broker.runs.ready("agents") == ()  # it comes back after a while


def test_a_run_may_fail_for_good(broker: Broker) -> None:
    started = broker.start("support", session="s")
    with broker.take(started.run_id) as run:
        assert run.fail("Hopeless", "why", final=True) is RunState.DEAD
    assert [dead.id for dead in broker.dead.list()] == [run.id]


def test_an_execution_under_way_is_adopted_once(broker: Broker) -> None:
    with broker.adopt("support", {"n": 1}, session="s", key="job-1", holder="arq") as run:
        assert (run.fence, run.attempt, run.seq, run.input) == (1, 1, 0, {"n": 1})
        with pytest.raises(Refused) as refused:
            with broker.adopt("support", {"n": 1}, session="s", key="job-1"):
                pass
        assert isinstance(refused.value.outcome, Conflict)
        run.finish("done")
    assert (broker.runs.get(run.id)).result == "done"


def test_a_run_that_waits_is_withdrawn_with_its_questions(broker: Broker) -> None:
    paused = broker.suspend("support", refund(), session="s", key="k")
    run_id = paused.run_id
    gone = broker.runs.withdraw(run_id, reason="not needed", by=ADA)
    assert isinstance(gone, Accepted)
    assert isinstance(broker.runs.withdraw(run_id, reason="not needed", by=ADA), Replayed)
    assert isinstance(broker.runs.withdraw(run_id, by=BEN), AlreadyDecided)
    assert (broker.runs.get(run_id)).state is RunState.WITHDRAWN
    assert broker.active("s") == {}
    assert (broker.inbox.list()).items == ()


def test_a_withdrawal_is_about_one_pause(broker: Broker) -> None:
    paused = broker.suspend("support", refund(), session="s", key="k")
    assert isinstance(broker.runs.withdraw(paused.run_id, seq=2), AlreadyDecided)
    assert (broker.runs.get(paused.run_id)).state is RunState.WAITING


def test_a_withdrawal_refused_under_a_lease_stays_refused(broker: Broker) -> None:
    started = broker.start("support", session="s")
    with broker.take(started.run_id) as run:
        assert isinstance(broker.runs.withdraw(run.id, op="w-1"), Conflict)
    assert isinstance(broker.runs.withdraw(run.id, op="w-1"), Conflict)
    assert isinstance(broker.runs.withdraw(run.id, op="w-2"), Accepted)
    with pytest.raises(InvalidInput):
        broker.runs.withdraw(run.id, op="w 3")


def test_a_run_moves_to_another_queue_with_its_questions(broker: Broker) -> None:
    paused = broker.suspend("support", refund(), session="s", key="k")
    assert isinstance(broker.runs.move(paused.run_id, "slow", by=ADA), Accepted)
    assert isinstance(broker.runs.move(paused.run_id, "slow", by=ADA), Accepted)
    assert [one.queue for one in (broker.inbox.list(queue="slow")).items] == ["slow"]
    assert (broker.inbox.list(queue="agents")).items == ()
    ready = broker.start("support", session="s")
    broker.runs.move(ready.run_id, "slow")
    assert broker.runs.ready("slow") == (ready.run_id,)
    assert broker.runs.ready("agents") == ()


def test_the_state_of_a_run_that_never_paused(broker: Broker) -> None:
    started = broker.start("support", session="s")
    assert broker.runs.state(started.run_id) is None
