import pytest
from pydantic import BaseModel

from broker import (
    Accepted,
    AlreadyDecided,
    AlreadyLeased,
    AsyncBroker,
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


async def test_a_start_makes_a_run_that_is_ready(broker: AsyncBroker) -> None:
    started = await broker.start(
        "support", Question(text="hello"), session="s", priority=2, metadata={"tenant": "acme"}, by=ADA
    )
    assert isinstance(started, Accepted)
    assert (started.session_id, started.interrupt_ids) == ("s", ())
    run = await broker.runs.get(started.run_id)
    assert (run.state, run.seq, run.fence, run.queue, run.agent) == (
        RunState.READY,
        0,
        0,
        "agents",
        "support",
    )
    assert (run.input, run.metadata, run.priority) == ({"text": "hello"}, {"tenant": "acme"}, 2)
    assert await broker.runs.ready("agents") == (run.id,)
    assert (await broker.history("s"))[0].by == ADA


async def test_a_start_without_a_key_is_a_new_run_each_time(broker: AsyncBroker) -> None:
    first, second = await broker.start("support", session="s"), await broker.start("support", session="s")
    assert first.run_id != second.run_id


async def test_a_start_under_a_key_is_one_run(broker: AsyncBroker) -> None:
    first = await broker.start("support", {"n": 1}, session="s", key="mail-1")
    again = await broker.start("support", {"n": 1}, session="s", key="mail-1")
    elsewhere = await broker.start("support", {"n": 1}, session="s2", key="mail-1")
    assert isinstance(again, Replayed)
    assert again.run_id == first.run_id != elsewhere.run_id
    with pytest.raises(Refused) as refused:
        await broker.start("support", {"n": 2}, session="s", key="mail-1")
    assert isinstance(refused.value.outcome, Conflict)
    assert (await broker.runs.get(first.run_id)).input == {"n": 1}


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
async def test_what_a_start_cannot_take_is_named(
    broker: AsyncBroker, field: str, given: dict[str, object]
) -> None:
    options: dict[str, object] = {"agent": "support", "session": "s"} | given
    with pytest.raises(InvalidInput) as fault:
        await broker.start(**options)  # type: ignore[arg-type]
    assert fault.value.field == field
    assert await broker.runs.ready("agents") == ()


async def test_ready_runs_come_by_priority_then_by_age(broker: AsyncBroker) -> None:
    ids = [
        (await broker.start(agent, session="s", priority=priority)).run_id
        for agent, priority in (("a", 0), ("b", 0), ("a", 5), ("b", 1), ("a", -1))
    ]
    order = [ids[n] for n in (2, 3, 0, 1, 4)]
    assert list(await broker.runs.ready("agents")) == order
    assert list(await broker.runs.ready("agents", ("a",))) == [ids[2], ids[0], ids[4]]
    assert list(await broker.runs.ready("agents", limit=2)) == order[:2]
    assert await broker.runs.ready("other") == ()


async def test_a_run_nobody_knows(broker: AsyncBroker) -> None:
    for strange in ("run_nothing", "run_" + "0" * 30, "4711"):
        with pytest.raises(UnknownId):
            await broker.runs.get(strange)
        with pytest.raises(UnknownId):
            await broker.runs.withdraw(strange)
    with pytest.raises(InvalidInput):
        await broker.runs.get("")


async def test_a_run_is_taken_for_the_length_of_a_block(broker: AsyncBroker) -> None:
    started = await broker.start("support", {"n": 1}, session="s")
    async with broker.take(started.run_id, holder="me") as run:
        assert (run.input, run.seq, run.fence, run.attempt, run.state) == ({"n": 1}, 0, 1, 1, None)
        record = await broker.runs.get(run.id)
        assert (record.state, record.holder) == (RunState.LEASED, "me")
        with pytest.raises(AlreadyLeased) as told:
            async with broker.take(run.id):
                pass
        assert (told.value.code, told.value.holder) == ("already_leased", "me")
    assert (await broker.runs.get(run.id)).state is RunState.READY
    assert (await broker.runs.get(run.id)).tries == 0
    with pytest.raises(StaleLease):
        await run.finish()


async def test_a_block_that_finishes_has_finished(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    async with broker.take(started.run_id) as run:
        assert await run.finish({"answer": 42}, by=ADA) is RunState.FINISHED
    record = await broker.runs.get(run.id)
    assert (record.state, record.result, record.errors) == (RunState.FINISHED, {"answer": 42}, ())
    assert (await broker.history("s"))[-1].by == ADA
    with pytest.raises(UnknownId):
        async with broker.take(run.id):
            pass


async def test_a_block_that_raises_has_failed_an_attempt(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    with pytest.raises(ZeroDivisionError):
        async with broker.take(started.run_id):
            raise ZeroDivisionError("by zero")
    record = await broker.runs.get(started.run_id)
    assert (record.state, record.tries) == (RunState.READY, 1)
    assert len(record.errors) == 1
    assert "ZeroDivisionError: by zero" in record.errors[0]
    assert await broker.runs.ready("agents") == ()  # it comes back after a while


async def test_a_run_may_fail_for_good(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    async with broker.take(started.run_id) as run:
        assert await run.fail("Hopeless", "why", final=True) is RunState.DEAD
    assert [dead.id for dead in await broker.dead.list()] == [run.id]


async def test_an_execution_under_way_is_adopted_once(broker: AsyncBroker) -> None:
    async with broker.adopt("support", {"n": 1}, session="s", key="job-1", holder="arq") as run:
        assert (run.fence, run.attempt, run.seq, run.input) == (1, 1, 0, {"n": 1})
        with pytest.raises(Refused) as refused:
            async with broker.adopt("support", {"n": 1}, session="s", key="job-1"):
                pass
        assert isinstance(refused.value.outcome, Conflict)
        await run.finish("done")
    assert (await broker.runs.get(run.id)).result == "done"


async def test_a_run_that_waits_is_withdrawn_with_its_questions(broker: AsyncBroker) -> None:
    paused = await broker.suspend("support", refund(), session="s", key="k")
    run_id = paused.run_id
    gone = await broker.runs.withdraw(run_id, reason="not needed", by=ADA)
    assert isinstance(gone, Accepted)
    assert isinstance(await broker.runs.withdraw(run_id, reason="not needed", by=ADA), Replayed)
    assert isinstance(await broker.runs.withdraw(run_id, by=BEN), AlreadyDecided)
    assert (await broker.runs.get(run_id)).state is RunState.WITHDRAWN
    assert await broker.active("s") == {}
    assert (await broker.inbox.list()).items == ()


async def test_a_withdrawal_is_about_one_pause(broker: AsyncBroker) -> None:
    paused = await broker.suspend("support", refund(), session="s", key="k")
    assert isinstance(await broker.runs.withdraw(paused.run_id, seq=2), AlreadyDecided)
    assert (await broker.runs.get(paused.run_id)).state is RunState.WAITING


async def test_a_withdrawal_refused_under_a_lease_stays_refused(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    async with broker.take(started.run_id) as run:
        assert isinstance(await broker.runs.withdraw(run.id, op="w-1"), Conflict)
    assert isinstance(await broker.runs.withdraw(run.id, op="w-1"), Conflict)
    assert isinstance(await broker.runs.withdraw(run.id, op="w-2"), Accepted)
    with pytest.raises(InvalidInput):
        await broker.runs.withdraw(run.id, op="w 3")


async def test_a_run_moves_to_another_queue_with_its_questions(broker: AsyncBroker) -> None:
    paused = await broker.suspend("support", refund(), session="s", key="k")
    assert isinstance(await broker.runs.move(paused.run_id, "slow", by=ADA), Accepted)
    assert isinstance(await broker.runs.move(paused.run_id, "slow", by=ADA), Accepted)
    assert [one.queue for one in (await broker.inbox.list(queue="slow")).items] == ["slow"]
    assert (await broker.inbox.list(queue="agents")).items == ()
    ready = await broker.start("support", session="s")
    await broker.runs.move(ready.run_id, "slow")
    assert await broker.runs.ready("slow") == (ready.run_id,)
    assert await broker.runs.ready("agents") == ()


async def test_the_state_of_a_run_that_never_paused(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    assert await broker.runs.state(started.run_id) is None
