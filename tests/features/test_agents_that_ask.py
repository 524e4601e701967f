"""Rows RA.. (engines, streams) and RB.. (agent frameworks) of our list of public reports: how an agent pauses."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
import redis.asyncio

from broker import (
    Approve,
    AsyncBroker,
    InvalidInput,
    Run,
    RunState,
    Worker,
    current_call,
    gated,
)
from broker.testing import RunningServer, await_until
from tests.clients._async.journaling import Agent, talking
from tests.clients.asking import refund
from tests.clients.watching import reads, sweeps
from tests.clock import Clock
from tests.features.bells import rung
from tests.journal.asked import call
from tests.worker.fleet import ended

Sweep = Callable[[], Awaitable[object]]
Serve = Callable[..., Worker]
HOUR = timedelta(hours=1)


@pytest.mark.report("RA11")
async def test_RA11_a_pause_waits_for_what_is_under_way_and_something_ends_it(
    broker: AsyncBroker, clock: Clock
) -> None:
    """Off: a pause at the first call that asks (`Attempt._is_settled` without `_busy`), or `NOBODY_ANSWERS`."""
    asked: list[str] = []
    seen: list[Any] = []

    def ask(amount: int) -> str:
        asked.append("asked")
        return f"May I pay {amount}?"

    @gated(expires_in=None, message=ask)
    async def pay(amount: int) -> str:
        return f"paid {amount}"

    async def slow() -> str:
        await await_until(lambda: asked)
        record = await agent.record()
        seen.append((record.state, record.interrupt_ids, (await broker.inbox.list()).items))
        return "sent"

    async def handler(run: Run[Any]) -> list[str]:
        paying = run.call(pay, {"amount": 4}, call_id="c1")
        return list(await asyncio.gather(paying, run.call(slow, call_id="c2")))

    agent = Agent(broker, clock, handler)
    assert await agent.start() is RunState.WAITING
    assert seen == [(RunState.LEASED, (), ())]
    await broker._link.run(sweeps(broker))
    (nobody,) = (await broker.check()).findings
    assert (nobody.trouble, nobody.run_id) == ("nobody_answers", agent.run_id)
    await broker._link.client.execute_command(*reads(broker))
    assert (await broker.check()).ok
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), len(seen)) == (["paid 4", "sent"], 1)


@pytest.mark.report("RA13", "RB22", "RB36")
async def test_RA13_RB22_RB36_a_second_pause_is_as_loud_as_the_first(
    broker: AsyncBroker, serve: Serve
) -> None:
    """Off: the bell (`ring_interrupt`) or the history of suspend.lua for later pauses."""
    paid: list[int] = []

    @gated
    async def pay(amount: int) -> str:
        paid.append(amount)
        return f"paid {amount}"

    async def handler(run: Run[Any]) -> list[str]:
        return [await run.call(pay, {"amount": n}, call_id=f"c{n}") for n in (1, 2)]

    async def answering() -> None:
        async for one in broker.inbox.follow("approvals"):
            assert (await broker.inbox.answer(one.record.id, Approve(), seen=one.record.digest)).ok

    serve(a=handler)
    answers = asyncio.create_task(answering())
    run = await ended(broker, (await broker.start("a", session="s")).run_id)
    answers.cancel()
    await asyncio.gather(answers, return_exceptions=True)
    assert (run.state, run.result, paid, run.seq) == (RunState.FINISHED, ["paid 1", "paid 2"], [1, 2], 2)
    pause = ["leased", "suspended", "resolved"]
    history = await broker.history("s")
    assert [one.event for one in history] == ["started", *pause, *pause, "leased", "finished"]
    assert await rung(broker, "interrupts", b"interrupt") == [
        one.interrupt_id for one in history if one.event == "resolved"
    ]


@pytest.mark.report("RA15")
async def test_RA15_nobody_there_is_a_no_after_a_day(broker: AsyncBroker, clock: Clock, sweep: Sweep) -> None:
    """Off: `Settings.deadline` without a default."""
    paid: list[int] = []

    @gated
    async def pay(amount: int) -> None:
        paid.append(amount)

    agent = Agent(broker, clock, talking([call("c1", "pay", amount=4)], tools=[pay]))
    assert await agent.start() is RunState.WAITING
    for hours, state in ((23, RunState.WAITING), (1, RunState.READY)):
        clock.advance(hours * HOUR)
        await sweep()
        assert (await agent.record()).state is state
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), paid) == (
        ["Error (expired): Nobody answered in time. It was not run."],
        [],
    )


@pytest.mark.report("RB14", "RB15")
async def test_RB14_RB15_a_pause_can_be_read_when_its_bell_rings(
    broker: AsyncBroker, server: RunningServer
) -> None:
    """Off: a bell before the rest: suspend.lua without the mark, or without the question (`add`)."""
    async with redis.asyncio.Redis.from_url(server.url) as reader:
        bells = broker._link.space.partition(0).key("interrupts")
        asking = asyncio.gather(
            *(broker.suspend("a", refund(n), session=f"s{n}", key=f"k{n}") for n in range(30))
        )
        last: Any = b"0"
        seen = set[str]()
        while len(seen) < 30:
            found: Any = await reader.xread({bells: last}, block=20_000)
            assert found, "no bell for 20 s"
            entries = found[0][1]
            last = entries[-1][0]
            for _, fields in entries:
                record = await broker.inbox.get(fields[b"interrupt"].decode())
                assert record.interrupt.action is not None
                assert record.interrupt.action.arguments == {"amount": int(record.session_id[1:])}
                assert await broker.active(record.session_id) == {record.run_id: 1}
                assert await broker.runs.state(record.run_id) is not None
                seen.add(record.id)
        assert {paused.interrupt_ids[0] for paused in await asking} == seen


@pytest.mark.report("RB33")
async def test_RB33_one_approval_is_for_one_of_two_calls_with_one_id(
    broker: AsyncBroker, clock: Clock
) -> None:
    """Off: `Attempt.claim`, or `check_suspension`, which lets no call id in twice."""
    paid: list[int] = []

    @gated
    async def pay(amount: int) -> str:
        paid.append(amount)
        return f"paid {amount}"

    turn = [call("c1", "pay", amount=40), call("c1", "pay", amount=400)]
    agent = Agent(broker, clock, talking(turn, tools=[pay]))
    assert await agent.start() is RunState.WAITING
    assert len((await agent.record()).interrupt_ids) == 1
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.FINISHED
    refused = "Error (InvalidCall): its id was used before in this run"
    assert (await agent.result(), paid) == (["paid 40", refused], [40])
    with pytest.raises(InvalidInput):
        await broker.suspend("a", refund(40, "c1"), refund(400, "c1"), session="t")
    assert await broker.active("t") == {}


@pytest.mark.report("RB34")
async def test_RB34_what_a_helper_did_before_its_coordinator_is_asked_has_one_key(
    broker: AsyncBroker, clock: Clock
) -> None:
    """Off: a key with the attempt in it (`Calling._key`), or end.lua that records nothing."""
    acted: list[tuple[str, int]] = []

    async def helper() -> str:
        known = current_call()
        acted.append((known.key, known.attempt))
        if len(acted) == 1:
            agent.die()  # after the effect, before anybody wrote down that it happened
        return "booked"

    @gated
    async def confirm() -> str:
        return "confirmed"

    async def coordinator(run: Run[Any]) -> list[str]:
        return [await run.call(helper, call_id="h"), await run.call(confirm, call_id="c")]

    agent = Agent(broker, clock, coordinator)
    assert [await agent.start(), await agent.go()] == [RunState.LEASED, RunState.WAITING]
    await agent.answer("c", Approve())
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["booked", "confirmed"]
    assert acted == [(f"{agent.run_id}:h", 1), (f"{agent.run_id}:h", 2)]
