"""Rows RB.. (agent frameworks) of our list of public reports: answers that come twice, at once, or to an old card."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Accepted,
    Approve,
    AsyncBroker,
    Invalid,
    Replayed,
    Run,
    RunState,
    Settlement,
    Superseded,
    Worker,
    current_call,
    gated,
)
from tests.clients._async.journaling import Agent, talking
from tests.clients.asking import ADA, BEN, refund
from tests.clock import Clock
from tests.journal.asked import call
from tests.worker.fleet import ended, run_when

Sweep = Callable[[], Awaitable[object]]
Serve = Callable[..., Worker]


class Till:
    """An agent that pays when somebody agrees, and what was paid."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    async def agent(self, run: Run[Any]) -> str:
        @gated
        async def pay() -> str:
            self.paid.append(current_call().key)
            return "paid"

        return str(await run.call(pay, call_id="c1"))


@pytest.mark.report("RB40")
async def test_RB40_answers_and_a_second_text_at_once_disturb_nobody(
    broker: AsyncBroker, serve: Serve
) -> None:
    """Off: guard `decided` of answer.lua."""
    till = Till()

    async def chats(run: Run[str]) -> str:
        return f"you said {run.input}"

    for name in ("one", "two"):
        serve(pays=till.agent, chats=chats, options={"name": name})
    paused = await run_when(broker, (await broker.start("pays", session="s")).run_id, RunState.WAITING)
    one = paused.interrupt_ids[0]
    texts = [broker.start("chats", f"hello {n}", session="s") for n in range(5)]
    answers = [
        broker.inbox.answer(one, Approve(), by=ADA.model_copy(update={"id": f"p{n}"})) for n in range(5)
    ]
    told, begun = await asyncio.gather(asyncio.gather(*answers), asyncio.gather(*texts))
    assert Counter(each.code for each in told) == {"accepted": 1, "already_decided": 4}
    runs = [await ended(broker, run_id) for run_id in (paused.id, *(each.run_id for each in begun))]
    assert [(run.state, run.errors) for run in runs] == [(RunState.FINISHED, ())] * 6
    assert [run.result for run in runs] == ["paid", *(f"you said hello {n}" for n in range(5))]
    assert till.paid == [f"{paused.id}:c1"]


@pytest.mark.report("RB44")
async def test_RB44_an_approval_sent_many_times_runs_its_call_once(
    broker: AsyncBroker, connect: Callable[..., Any], serve: Serve
) -> None:
    """Off: guard `own-op` of answer.lua, or `lease-state` of lease.lua: each repeat rings the workers."""
    till = Till()
    for name in ("one", "two", "three"):
        serve(pays=till.agent, options={"name": name})
    paused = await run_when(broker, (await broker.start("pays", session="s")).run_id, RunState.WAITING)
    one, brokers = paused.interrupt_ids[0], [broker, await connect(), await connect()]
    told = await asyncio.gather(*(brokers[n % 3].inbox.answer(one, Approve(), by=ADA) for n in range(21)))
    assert Counter(each.code for each in told) == {"accepted": 1, "replayed": 20}
    run = await ended(broker, paused.id)
    for other in brokers:
        assert isinstance(await other.inbox.answer(one, Approve(), by=ADA), Replayed)
    assert await broker.runs.get(paused.id) == run
    assert (run.result, run.fence, till.paid) == ("paid", 2, [f"{paused.id}:c1"])


@pytest.mark.report("RB55")
async def test_RB55_what_was_answered_is_not_asked_again_by_a_restored_process(broker: AsyncBroker) -> None:
    """Off: `suspend_op` of suspend.lua, which knows the same point again."""
    first = await broker.suspend("a", refund(), session="s", key="k")
    await broker.inbox.answer(first.interrupt_ids[0], Approve())
    for _ in range(2):  # from an old checkpoint: before the run went on, and after it ended
        again = await broker.suspend("a", refund(), session="s", key="k")
        assert isinstance(again, Replayed)
        assert again.interrupt_ids == first.interrupt_ids
        record = await broker.inbox.get(first.interrupt_ids[0])
        assert record.state is Settlement.RESOLVED
        assert (await broker.inbox.list()).items == ()
        if (await broker.runs.get(first.run_id)).state is RunState.READY:
            async with broker.take(first.run_id) as run:
                await run.finish()
    assert (await broker.runs.get(first.run_id)).state is RunState.FINISHED
    other = await broker.suspend("a", refund(), session="s", key="other")
    async with aclosing(broker.inbox.follow("a-new-group")) as deliveries:
        assert (await anext(deliveries)).record.id == other.interrupt_ids[0]


@pytest.mark.report("RB70")
async def test_RB70_an_old_card_says_so_and_clears_no_other(broker: AsyncBroker) -> None:
    """Off: guard `seen` of answer.lua."""
    first = await broker.suspend("a", refund(40), session="s", key="k")
    old = await broker.inbox.get(first.interrupt_ids[0])
    second = await broker.suspend("a", refund(400), session="s", key="k", seq=2, replace=True)
    new = second.interrupt_ids[0]
    assert isinstance(await broker.cancel(old.id, "I cannot see it any more", by=BEN), Superseded)
    assert isinstance(await broker.inbox.answer(old.id, Approve(), seen=old.digest), Superseded)
    wrong = await broker.inbox.answer(new, Approve(), seen=old.digest)
    assert isinstance(wrong, Invalid)
    assert wrong.field == "seen"
    assert (await broker.inbox.get(new)).state is Settlement.OPEN
    assert isinstance(await broker.cancel(new, by=BEN), Accepted)


@pytest.mark.report("RB79")
async def test_RB79_a_question_without_a_deadline_waits_for_those_who_stepped_away(
    broker: AsyncBroker, clock: Clock, sweep: Sweep
) -> None:
    """Off: `expires_in=None` taken as the default (`questions.approval`)."""

    @gated(expires_in=None)
    async def pay() -> str:
        return "paid"

    agent = Agent(broker, clock, talking([call("c1", "pay")], tools=[pay]))
    assert await agent.start() is RunState.WAITING
    for _ in range(4):
        clock.advance(timedelta(days=100))
        await sweep()
    assert await agent.answer("c1", Approve()) == "accepted"
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["paid"]
