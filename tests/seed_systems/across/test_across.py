"""What must hold across all four systems, since workers are many."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Accepted,
    Approve,
    AsyncBroker,
    Complete,
    Expired,
    Interrupt,
    Mode,
    Parked,
    Reject,
    Replayed,
    Run,
    RunState,
    Settlement,
    Worker,
)
from broker.store.commands import reads
from broker.testing import RunningServer
from tests.clients.asking import ADA, BEN, refund, render
from tests.clock import MOVABLE, Clock
from tests.features.bells import rung, waiting
from tests.worker.fleet import QUICK, ROOT, ended, run_when

Connect = Callable[..., Any]
Serve = Callable[..., Worker]
Sweep = Callable[[], Awaitable[object]]
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.mark.row("X2")
async def test_X2_answered_is_not_spent(broker: AsyncBroker, clock: Clock, sweep: Sweep) -> None:
    """Off: answers spent by the lease (`lease.lua`), or a lost lease that keeps its run (`reclaim.lua`)."""
    paused = await broker.suspend("a", refund(), session="s")

    async def state() -> tuple[str, str | None, bool]:
        run = await broker.runs.get(paused.run_id)
        return run.state, run.holder if run.state is RunState.LEASED else None, run.lease_until is not None

    told = [await state()]
    await broker.inbox.answer(paused.interrupt_ids[0], Approve())
    told.append(await state())
    (dead,) = await broker.queue("agents").lease(("a",), holder="worker-1")
    told.append(await state())
    clock.advance(QUICK.lease)
    await sweep()
    clock.advance(MINUTE)
    await sweep()
    told.append(await state())
    (run,) = await broker.queue("agents").lease(("a",), holder="worker-2")
    assert run.resolution("call_1") == dead.resolution("call_1")
    told.append(await state())
    await run.finish()
    told.append(await state())
    assert [one[:2] for one in told] == [
        ("waiting", None), ("ready", None), ("leased", "worker-1"), ("ready", None), ("leased", "worker-2"),
        ("finished", None),
    ]  # fmt: skip
    assert told[2][2], "a claim has an end"


@pytest.mark.row("X3")
async def test_X3_a_run_that_does_not_start_keeps_its_answer_and_says_why(
    broker: AsyncBroker, serve: Serve
) -> None:
    """Off: `fail` that forgets what was shown, or an attempt whose fault is not kept."""
    attempts: list[int] = []
    may_start = asyncio.Event()

    async def boots(run: Run[Any]) -> str:
        if run.seq == 0:
            await run.suspend(refund())
            return ""
        attempts.append(run.attempt)
        if not may_start.is_set():
            raise RuntimeError("boot failed")
        return str(run.resolution("call_1").kind)

    serve(boots=boots)
    started = await broker.start("boots", session="s")
    paused = await run_when(broker, started.run_id, RunState.WAITING)
    await broker.inbox.answer(paused.interrupt_ids[0], Approve(), by=ADA)
    dead = await ended(broker, started.run_id)
    assert dead.state is RunState.DEAD, "it failed as often as it may"
    assert [error.partition("RuntimeError: ")[2] for error in dead.errors] == ["boot failed"] * QUICK.tries
    answered = await broker.inbox.get(paused.interrupt_ids[0])
    assert answered.resolution is not None
    assert (answered.resolution.answer, answered.resolution.by) == (Approve(), ADA)
    may_start.set()
    await broker.dead.requeue(started.run_id)
    assert (await ended(broker, started.run_id)).result == "approve"
    assert attempts == [*range(1, QUICK.tries + 1), 1]


@pytest.mark.row("X6")
async def test_X6_an_answer_before_its_question_is_parked_for_a_time(
    broker: AsyncBroker, connect: Connect, clock: Clock, sweep: Sweep
) -> None:
    """Off: guards `early-match` (the run waits for ever) or `park-window`; parked answers that are never collected."""
    other = await connect(by=BEN, rendering=MOVABLE)
    clock.advance(-QUICK.keep_parked - MINUTE)  # what is new may not be older than the window of repeats
    now = (await broker.suspend("a", refund(1, "first"), session="t")).run_id
    at = (await broker.runs.get(now)).created_at
    told = await other.inbox.answer_call("s", "tu_90", Approve())
    assert isinstance(told, Parked)
    assert told.until is not None
    assert timedelta(0) <= told.until - at - QUICK.keep_parked < MINUTE
    assert QUICK.keep_parked == timedelta(minutes=10)
    paused = await broker.suspend("a", refund(40, "tu_90"), session="s")
    assert (await broker.runs.get(paused.run_id)).state is RunState.READY
    found = (await broker.inbox.get(paused.interrupt_ids[0])).resolution
    assert found is not None
    assert (found.answer, found.by) == (Approve(), BEN)
    assert isinstance(await other.inbox.answer_call("s", "tu_91", Approve()), Parked)
    clock.advance(QUICK.keep_parked + MINUTE)
    await sweep()
    late = await broker.suspend("a", refund(40, "tu_91"), session="s")
    assert (await broker.runs.get(late.run_id)).state is RunState.WAITING
    assert "unmatched" in [one.event for one in await broker.history("s")], "said, not dropped in silence"


@pytest.mark.row("X7")
async def test_X7_no_id_is_made_twice_by_brokers_that_start_again(
    server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    """Off: ids from a counter, the clock or seeded chance. Two at the same moment, twice in one namespace."""
    one, two = new_namespace(), new_namespace()

    async def minted(namespace: str) -> list[str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.seed_systems.across.minting", server.url, namespace,
            cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        ids: list[str] = json.loads((await process.communicate())[0])
        return ids

    found = [*await asyncio.gather(minted(one), minted(two)), *await asyncio.gather(minted(one), minted(two))]
    ids = [id for each in found for id in each]
    assert len(ids) == 4 * 80
    assert len(set(ids)) == len(ids)


@pytest.mark.row("X8")
async def test_X8_a_deadline_ends_the_same_whoever_finds_it_and_once(
    broker: AsyncBroker, connect: Connect, clock: Clock, sweep: Sweep
) -> None:
    """Off: guard `deadline` of answer.lua or `withdraw-due` of withdraw.lua: each would end it in its own way."""
    ids = {}
    for name in ("read", "swept", "withdrawn"):
        ids[name] = (await broker.suspend("a", refund(expires_in=HOUR), session=name)).interrupt_ids[0]
    clock.advance(HOUR)
    reader = await connect(rendering=MOVABLE)
    assert isinstance(await reader.inbox.answer(ids["read"], Approve(), by=BEN), Expired)
    await broker.runs.withdraw((await broker.inbox.get(ids["withdrawn"])).run_id)
    for _ in range(2):
        await sweep()
    found = {name: await broker.inbox.get(one) for name, one in ids.items()}
    for one in found.values():
        assert one.resolution is not None
        ended_ = one.resolution
        assert (one.state, ended_.answer, ended_.by, ended_.reason, ended_.op) == (
            Settlement.EXPIRED, None, None, "deny", "expire 0",
        )  # fmt: skip
        events = [entry.event for entry in await broker.history(one.session_id)]
        assert events.count("expired") == 1


@pytest.mark.row("X10")
async def test_X10_answers_of_a_session_come_in_the_order_they_were_accepted(
    broker: AsyncBroker, connect: Connect
) -> None:
    """Off: a list of history that is not appended to, or `complete` of the prelude: released at each answer."""
    names = ["one", "two", "three"]
    paused = await broker.suspend("a", *(refund(n, name) for n, name in enumerate(names)), session="s")
    other = await connect(by=BEN)
    order = [2, 0, 1]
    with waiting(broker) as workers:
        for n in order:
            assert workers.woken_for() == []
            assert isinstance(await other.inbox.answer(paused.interrupt_ids[n], Approve()), Accepted)
        assert workers.woken_for() == [paused.run_id], "one release"
    accepted = [paused.interrupt_ids[n] for n in order]
    record = [one.interrupt_id for one in await broker.history("s") if one.event == "resolved"]
    assert record == accepted
    told = await rung(broker, "dispositions", b"interrupt")
    assert told == accepted
    assert [run.id for run in await broker.queue("agents").lease(("a",), limit=5)] == [paused.run_id]


@pytest.mark.row("X10")
async def test_X10_one_by_one_they_are_handed_out_in_that_order_too(broker: AsyncBroker) -> None:
    names = ["1", "2", "3"]
    paused = await broker.suspend(
        "a", *(refund(n, name) for n, name in enumerate(names)), session="s", mode=Mode.EACH
    )
    got: list[str | None] = []
    for one in paused.interrupt_ids:
        await broker.inbox.answer(one, Approve())
        (run,) = await broker.queue("agents").lease(("a",))
        got += [each.interrupt.call_id for each in run.interrupts]
        await run.finish()
    assert got == names


@pytest.mark.row("X11")
async def test_X11_settled_records_outlive_their_repeats_and_live_ones_everything(
    broker: AsyncBroker, clock: Clock, sweep: Sweep
) -> None:
    """Off: `KEEP_SETTLED` below the retry window, or a time to live on what is open."""
    live = [(await broker.suspend("a", refund(expires_in=None), session=f"s{n}")) for n in range(3)]
    settled = await broker.suspend("a", refund(expires_in=None), session="t")
    one = settled.interrupt_ids[0]
    await broker.inbox.answer(one, Approve(), op="o-1")
    async with broker.take(settled.run_id) as run:
        await run.finish()
    assert QUICK.retry_window < QUICK.keep_settled
    clock.advance(QUICK.retry_window)
    await sweep()
    assert isinstance(await broker.inbox.answer(one, Approve(), op="o-1"), Replayed)
    clock.advance(timedelta(days=1000))
    for _ in range(3):
        await sweep()
    assert (await broker.inbox.answer(one, Approve(), op="o-1")).code == "unknown"
    assert (await broker.fleet()).open == 3
    for paused in live:
        assert isinstance(await broker.inbox.answer(paused.interrupt_ids[0], Approve()), Accepted)


@pytest.mark.row("X12")
async def test_X12_every_step_says_who_when_what_and_a_digest(broker: AsyncBroker, connect: Connect) -> None:
    """Off: `history` of the prelude, or a verdict without `action_digest`."""
    before = (await broker.suspend("a", refund(), session="before")).run_id
    paused = await broker.suspend("a", refund(), refund(50, "call_2"), session="s", by=ADA)
    other = await connect(by=BEN)
    for one, answer in zip(paused.interrupt_ids, (Approve(), Reject(reason="no")), strict=True):
        await other.inbox.answer(one, answer)
    async with other.take(paused.run_id, holder="worker-1") as run:
        await run.finish(by=ADA)
    entries = await broker.history("s")
    assert [(one.event, one.interrupt_id, one.by and one.by.id) for one in entries] == [
        ("suspended", paused.interrupt_ids[0], None), ("suspended", paused.interrupt_ids[1], None),
        ("resolved", paused.interrupt_ids[0], "ben"), ("resolved", paused.interrupt_ids[1], "ben"),
        ("leased", None, None), ("finished", None, "ada"),
    ]  # fmt: skip
    assert entries[4].detail == "worker-1"
    start = (await broker.runs.get(before)).created_at
    assert all(start <= one.at < start + MINUTE for one in entries)
    asked = [await broker.inbox.get(one) for one in paused.interrupt_ids]
    assert [one.digest for one in entries[:2]] == [one.digest for one in asked]
    assert len({one.digest for one in entries[:4]}) == 4
    p = broker._link.space.of_session("s")
    verdicts = [await broker._link.fetch(reads.read_verdict(p, one)) for one in paused.interrupt_ids]
    actions = [one.interrupt.action for one in asked]
    assert actions[0] is not None
    assert [one.action_digest for one in verdicts if one] == [actions[0].digest, None]


async def test_a_question_is_followed_while_others_are_parked(broker: AsyncBroker) -> None:
    """Early answers disturb no reader of the doorbells."""
    await broker.inbox.answer_call("s", "tu_1", Complete(value=1))
    paused = await broker.suspend("a", render("tu_1"), Interrupt.question("go on?"), session="s")
    async with aclosing(broker.inbox.follow("approvals")) as deliveries:
        assert (await anext(deliveries)).record.id == paused.interrupt_ids[1]
