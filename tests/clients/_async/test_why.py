"""Why a run stands where it stands: one run of each kind, stuck and not."""

from datetime import timedelta
from typing import Any

import pytest

from broker import Approve, AsyncBroker, Cause, Corrupt, Mode, OnExpiry, RunState, UnknownId
from tests.clients.asking import ADA, refund, render
from tests.clients.watching import place, reads, sweeps, works
from tests.clock import Clock
from tests.records import changed


async def test_a_question_that_a_group_reads_waits_for_it(broker: AsyncBroker) -> None:
    await broker._link.client.execute_command(*reads(broker))
    asked = refund(expires_in=None, reviewers=("finance",))
    paused = await broker.suspend("support", asked, session="s")
    found = await broker.runs.why(paused.run_id or "")
    assert (found.state, found.cause, found.stuck) == (RunState.WAITING, Cause.ANSWER, False)
    (one,) = found.awaited
    assert (one.interrupt_id, one.tool, one.audience) == (paused.interrupt_ids[0], "refund", "approvals")
    assert (one.readers, one.reviewers, one.deadline) == (("approvals",), ("finance",), None)
    assert one.interrupt_id in found.reason
    assert "finance" in found.reason
    assert f"broker approve {one.interrupt_id}" in found.remedy
    assert (found.next_timer, found.seq, found.session_id) == (None, 1, "s")


async def test_a_question_nobody_reads_and_nothing_ends_is_stuck(broker: AsyncBroker) -> None:
    await broker._link.client.execute_command(*reads(broker, "approvals"))
    late = refund(on_expiry=OnExpiry.WAIT, expires_in=timedelta(hours=1))
    one = await broker.suspend("support", render(expires_in=None), session="s")
    two = await broker.suspend("support", late, session="s")
    found = await broker.runs.why(one.run_id or "")
    assert found.stuck
    assert "Nobody reads the completions" in found.reason
    assert "broker complete" in found.remedy
    assert not (await broker.runs.why(two.run_id or "")).stuck  # approvals are read
    await broker._link.client.execute_command(*reads(broker, "audit"))  # a group of one's own gets everything
    assert not (await broker.runs.why(one.run_id or "")).stuck


async def test_a_deadline_needs_a_sweeper(broker: AsyncBroker) -> None:
    paused = await broker.suspend(
        "support", refund(1, "a", expires_in=timedelta(hours=2)), refund(2, "b", expires_in=timedelta(hours=1)),
        session="s",
    )  # fmt: skip
    found = await broker.runs.why(paused.run_id or "")
    assert found.stuck
    assert "no process sweeps" in found.reason
    assert found.next_timer == found.awaited[1].deadline
    assert found.timer == f"deadline of {paused.interrupt_ids[1]}"
    assert found.awaited[1].at_deadline is OnExpiry.DENY
    await broker._link.run(sweeps(broker))
    found = await broker.runs.why(paused.run_id or "")
    assert (found.stuck, found.sweeper, found.reason) == (
        False,
        "s-1",
        "It waits for answers to 2 interrupts.",
    )


async def test_all_have_to_be_answered_in_mode_all_one_in_the_others(broker: AsyncBroker) -> None:
    await broker._link.run(sweeps(broker))
    for mode in (Mode.ALL, Mode.FIRST):
        asked = (refund(1, "a", expires_in=None), refund(2, "b", expires_in=timedelta(hours=1)))
        paused = await broker.suspend("support", *asked, session=mode, mode=mode)
        assert (await broker.runs.why(paused.run_id or "")).stuck is (mode is Mode.ALL)


async def test_a_ready_run_needs_a_worker_of_its_pool(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s", build="v2")
    run_id = started.run_id or ""
    for name, more in (
        ("a", {"queue": "slow"}),
        ("b", {"agents": ("other",)}),
        ("c", {"build": "v1"}),
        ("d", {}),
    ):
        await broker._link.run(works(broker, name, **more))
    found = await broker.runs.why(run_id)
    assert (found.cause, found.stuck, found.workers, found.ahead) == (Cause.WORKER, True, (), 0)
    assert "agent support on queue agents, build v2" in found.reason
    assert "Start a worker" in found.remedy
    await broker._link.run(works(broker, "e", build="v2", holding=4))
    found = await broker.runs.why(run_id)
    assert (found.stuck, [one.name for one in found.workers]) == (False, ["e"])
    assert "has no room" in found.reason
    await broker._link.run(works(broker, "e", build="v2"))
    assert (await broker.runs.why(run_id)).reason == "It is ready: a worker takes it."


async def test_it_says_how_many_stand_before_it(broker: AsyncBroker) -> None:
    await broker._link.run(works(broker))
    started = [await broker.start("support", session=f"s{n}") for n in range(3)]
    found = await broker.runs.why(started[2].run_id or "")
    assert found.ahead == 2
    assert found.reason == "It is ready, behind 2 others: a worker takes it."


async def test_workers_that_went_away_do_not_count(timed: AsyncBroker, clock: Clock) -> None:
    clock.advance(-timedelta(minutes=40))
    await timed._link.run(works(timed))
    started = await timed.start("support", session="s")
    assert (await timed.runs.why(started.run_id or "")).stuck


async def test_a_ready_run_that_is_not_listed_is_stuck(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    ready = place(broker).key("ready", "agents:support:")
    await broker._link.client.execute_command("ZREM", ready, started.run_id or "")
    await broker._link.run(works(broker))
    found = await broker.runs.why(started.run_id or "")
    assert (found.stuck, found.ahead) == (True, None)
    await broker.runs.move(started.run_id or "", "slow")
    await broker._link.run(works(broker, queue="slow"))
    assert not (await broker.runs.why(started.run_id or "")).stuck


async def test_a_failed_attempt_comes_back_by_itself(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    async with broker.take(started.run_id or "") as run:
        await run.fail("Boom", "no")
    found = await broker.runs.why(started.run_id or "")
    assert (found.state, found.cause, found.stuck) == (RunState.READY, Cause.BACK_OFF, True)
    assert found.back_off_until == found.next_timer
    assert "Boom: no" in (found.error or "")
    await broker._link.run(sweeps(broker))
    found = await broker.runs.why(started.run_id or "")
    assert (found.stuck, found.timer) == (False, "end of the back-off")


async def test_a_leased_run_is_its_workers(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    async with broker.take(started.run_id or "", holder="w-7"):
        found = await broker.runs.why(started.run_id or "")
        assert (found.state, found.cause, found.stuck) == (RunState.LEASED, Cause.LEASE, False)
        assert (found.holder, found.lease_until) == ("w-7", found.next_timer)
        assert found.lease_until is not None
        assert found.lease_until > found.at


async def test_a_lost_lease_needs_a_sweeper(timed: AsyncBroker, clock: Clock) -> None:
    clock.advance(-timedelta(minutes=40))
    started = await timed.start("support", session="s")
    await timed.queue("agents").lease(("support",), holder="w-7")
    found = await timed.runs.why(started.run_id or "")
    assert (found.cause, found.stuck, found.reason) == (
        Cause.LEASE, True, "w-7 has lost its lease, and no process sweeps.",
    )  # fmt: skip
    await timed._link.run(sweeps(timed))
    assert not (await timed.runs.why(started.run_id or "")).stuck


async def test_a_dead_run_waits_for_an_operator(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    async with broker.take(started.run_id or "") as run:
        await run.fail("Hopeless", final=True)
    found = await broker.runs.why(started.run_id or "")
    assert (found.cause, found.stuck) == (Cause.OPERATOR, True)
    assert f"broker requeue {started.run_id}" in found.remedy
    assert [entry.event for entry in found.history] == ["started", "leased", "failed", "dead"]


async def test_a_closed_run_needs_nothing(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    async with broker.take(started.run_id or "") as run:
        await run.finish()
    found = await broker.runs.why(started.run_id or "")
    assert (found.cause, found.stuck, found.timer) == (Cause.NOTHING, False, "its records are deleted")
    assert found.next_timer is not None
    assert found.next_timer > found.at


async def test_a_question_that_cannot_be_read_can_only_be_cancelled(broker: AsyncBroker) -> None:
    await broker._link.client.execute_command(*reads(broker))
    paused = await broker.suspend("support", refund(), session="s")
    one = paused.interrupt_ids[0]
    await broker._link.client.execute_command("SET", place(broker).key("question", one), b"\xff")
    found = await broker.runs.why(paused.run_id or "")
    assert found.awaited[0].problem is not None
    assert f"broker cancel {one}" in found.remedy
    call: Any = broker._link.client.execute_command
    key = place(broker).key("run", paused.run_id)
    await call("SET", key, changed(await call("GET", key), state="odd"))
    with pytest.raises(Corrupt):
        await broker.runs.why(paused.run_id or "")


async def test_a_run_that_waits_for_nothing_is_stuck(broker: AsyncBroker) -> None:
    paused = await broker.suspend("support", refund(), session="s")
    key = place(broker).key("interrupt", paused.interrupt_ids[0])
    call: Any = broker._link.client.execute_command
    await call("SET", key, changed(await call("GET", key), state="expired"))
    found = await broker.runs.why(paused.run_id or "")
    assert (found.stuck, found.awaited) == (True, ())
    assert "broker withdraw" in found.remedy


async def test_only_its_own_events_and_the_last_ones_are_told(broker: AsyncBroker) -> None:
    other = await broker.suspend("support", refund(call="x"), session="s")
    paused = await broker.suspend("support", refund(call="y"), session="s")
    for n in range(12):
        await broker.inbox.answer(
            (await broker.runs.get(paused.run_id or "")).interrupt_ids[0], Approve(), by=ADA
        )
        async with broker.take(paused.run_id or "") as run:
            await run.suspend(refund(n, f"c{n}"))
    found = await broker.runs.why(paused.run_id or "")
    assert len(found.history) == 10
    assert {entry.run_id for entry in found.history} == {paused.run_id}
    assert other.run_id != paused.run_id


async def test_a_run_nobody_knows(broker: AsyncBroker) -> None:
    for strange in ("run_" + "0" * 30, "4711"):
        with pytest.raises(UnknownId):
            await broker.runs.why(strange)
