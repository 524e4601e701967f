"""Rows RA.. (engines, streams) and RB.. (agent frameworks) of our list of public reports: answers outlive failures."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Approve,
    AsyncBroker,
    Pending,
    Replayed,
    Run,
    RunState,
    Worker,
    current_call,
    gated,
    long_running,
)
from tests.clients._async.journaling import Agent, Model, loop
from tests.clients.asking import refund
from tests.clock import Clock
from tests.journal.asked import call
from tests.worker.fleet import QUICK, ended, run_when

Sweep = Callable[[], Awaitable[object]]
Serve = Callable[..., Worker]
MINUTE = timedelta(minutes=1)


@pytest.mark.report("RA17", "RB57")
async def test_RA17_RB57_a_resume_that_fails_ends_on_record_and_can_be_sent_back(
    broker: AsyncBroker, serve: Serve
) -> None:
    """Off: `tries` set back by fail.lua, or answers that are spent by lease.lua."""
    broken = [True]

    async def a(run: Run[Any]) -> Any:
        if run.seq == 0:
            return await run.suspend(refund())
        if broken:
            raise LookupError("no such order")
        return str(run.resolution("call_1").kind)

    serve(a=a)
    paused = await run_when(broker, (await broker.start("a", session="s")).run_id, RunState.WAITING)
    await broker.inbox.answer(paused.interrupt_ids[0], Approve())
    dead = await ended(broker, paused.id)
    assert (dead.state, len(dead.errors)) == (RunState.DEAD, QUICK.tries)
    assert all("LookupError: no such order" in one for one in dead.errors)
    assert [one.id for one in await broker.dead.list()] == [paused.id]
    events = [one.event for one in await broker.history("s")]
    assert (events.count("failed"), events[-1]) == (QUICK.tries, "dead")
    broken.clear()
    assert (await broker.dead.requeue(paused.id)).ok
    run = await run_when(broker, paused.id, RunState.FINISHED)
    assert run.result == "approve"


@pytest.mark.report("RA22")
async def test_RA22_a_reset_starts_no_finished_job_again_and_late_repeats_are_told(
    broker: AsyncBroker, clock: Clock, sweep: Sweep
) -> None:
    """Off: guard `journal-stored` of begin.lua, or `KEEP_SETTLED` of `close_run`."""
    started: list[str] = []
    broken = [True]
    model = Model([call("c1", "render"), call("c2", "render")])

    @long_running
    async def render() -> Pending:
        started.append(current_call().token)
        return Pending()

    async def handler(run: Run[Any]) -> Any:
        said = await loop(run, model, [render])
        if broken:
            raise LookupError("no such order")
        return said

    agent = Agent(broker, clock, handler)
    await agent.start()
    for token in started:
        assert (await broker.complete(token, "v-9")).ok
    assert [await agent.go() for _ in range(QUICK.tries)][-1] is RunState.DEAD
    broken.clear()
    assert (await broker.dead.requeue(agent.run_id)).ok
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), len(started)) == (["v-9", "v-9"], 2)
    for _ in range(5):
        clock.advance(10 * MINUTE)
        await sweep()
        assert isinstance(await broker.complete(started[0], "v-9"), Replayed)


@pytest.mark.report("RB31", "RB52")
@pytest.mark.row("X4")
async def test_RB31_RB52_a_run_that_fails_behind_its_tool_keeps_answer_and_result(
    broker: AsyncBroker, serve: Serve
) -> None:
    """Off: end.lua that records nothing, or answers that are spent by lease.lua."""
    paid: list[str] = []

    @gated
    async def pay() -> str:
        paid.append(current_call().key)
        return "paid"

    async def a(run: Run[Any]) -> str:
        said: str = await run.call(pay, call_id="c1")
        if run.fence == 2:
            raise ConnectionError("the ledger does not reply")
        return said

    serve(a=a)
    paused = await run_when(broker, (await broker.start("a", session="s")).run_id, RunState.WAITING)
    await broker.inbox.answer(paused.interrupt_ids[0], Approve())
    run = await ended(broker, paused.id)
    assert (run.state, run.result, run.fence, paid) == (RunState.FINISHED, "paid", 3, [f"{run.id}:c1"])
    assert "ConnectionError" in run.errors[0]
    assert (await broker.fleet()).open == 0  # and nobody was asked again


@pytest.mark.report("RB67")
async def test_F56_RB67_an_answer_is_given_out_until_somebody_has_gone_on_with_it(
    broker: AsyncBroker, clock: Clock, sweep: Sweep
) -> None:
    """The promise is P6 of our design: at least once. Off: answers that are spent by lease.lua."""
    paused = await broker.suspend("a", refund(), session="s")
    await broker.inbox.answer(paused.interrupt_ids[0], Approve())
    for fence in (1, 2, 3):  # each of these workers dies before its handler begins
        (run,) = await broker.queue("agents").lease(("a",))
        assert (run.fence, run.resolution("call_1").answer) == (fence, Approve())
        assert await broker.queue("agents").lease(("a",)) == ()
        clock.advance(MINUTE)
        await sweep()
        clock.advance(MINUTE)
        await sweep()
        if fence == QUICK.tries:
            assert (await broker.dead.requeue(paused.run_id)).ok
    async with broker.take(paused.run_id) as run:
        assert run.resolution("call_1").answer == Approve()
        await run.finish("went on")
    assert await broker.queue("agents").lease(("a",)) == ()
    assert (await broker.runs.get(paused.run_id)).result == "went on"
