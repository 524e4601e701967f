"""Rows RA.. (engines, approval systems, streams) of our list of public reports: what this release must not repeat."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Accepted,
    AlreadyDecided,
    AnswerKind,
    Approve,
    AsyncBroker,
    Complete,
    Conflict,
    Expired,
    Interrupt,
    Parked,
    Reject,
    Replayed,
    RunState,
    Settlement,
    Superseded,
    Sweeper,
    Withdrawn,
    Worker,
)
from broker.store import prepare
from broker.store.commands import address, answers
from broker.store.commands.values import Command
from tests.clients.asking import ADA, BEN, refund, render
from tests.clock import Clock
from tests.features.bells import rung, waiting
from tests.worker.fleet import ended

Serve = Callable[..., Worker]
HOUR = timedelta(hours=1)
EARLY, AT_ONCE = 10_000, 64


@pytest.mark.report("RA1")
async def test_RA1_ten_thousand_completions_before_anybody_waits_and_none_is_lost(
    broker: AsyncBroker,
) -> None:
    """Off: guard `early-match` of suspend.lua, or answers that are matched only by who listens already."""
    sessions = {f"s{n}": [f"job_{n}_{m}" for m in range(AT_ONCE)] for n in range(EARLY // AT_ONCE + 1)}
    lanes = asyncio.Semaphore(4)

    async def early(session: str, calls: list[str]) -> None:
        async with lanes:
            assert {type(told) for told in await answer_all(broker, session, calls)} == {Parked}

    async def ask(session: str, calls: list[str]) -> None:
        async with lanes:
            questions = [Interrupt(call_id=call, offers=(AnswerKind.COMPLETE,)) for call in calls]
            await broker.suspend("a", *questions, session=session)

    await asyncio.gather(*(early(*each) for each in sessions.items()))
    await asyncio.gather(*(ask(*each) for each in sessions.items()))
    assert (await broker.fleet()).open == 0  # every question was answered when it was asked
    assert sum((await broker.queue("agents").counts()).values()) == len(sessions)
    for run in await broker.queue("agents").lease(("a",), limit=5):  # and each by what was meant for it
        found = [run.resolution(call).answer for call in sessions[run.session_id]]
        assert found == [Complete(value=call) for call in sessions[run.session_id]]


async def answer_all(broker: AsyncBroker, session: str, calls: list[str]) -> list[Any]:
    """What `Inbox.answer_call` sends for each of the calls, in one message."""
    link = broker._link
    p, until = link.space.of_session(session), await link.not_after()
    commands = [
        answers.answer_call(
            p,
            answers.CallAddress(session, call, address.early_slot(session, "", 0, call)),
            prepare.verdict_of(
                None, address.early_identity(session, call), Complete(value=call), ADA, op=None, seen=None
            ),
            not_after=until, longest=link.settings.keep_settled,
        )
        for call in calls
    ]  # fmt: skip
    items = tuple(item for command in commands for item in command.items)
    return await link.run_all(Command("answer", p, items, commands[0].decode))


@pytest.mark.report("RA2")
@pytest.mark.parametrize("step", range(1, 8))
async def test_RA2_register_or_consume_at_every_step(
    broker: AsyncBroker, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Off: answers looked for before the suspension instead of in its script (guard `early-match`)."""
    sends, steps = broker._link._persist, 0
    answered: list[Any] = []

    async def before_one_step(call: Any, **how: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == step:
            answered.append(await broker.inbox.answer_call("s", "job_1", Complete(value=1)))
        return await sends(call, **how)

    monkeypatch.setattr(broker._link, "_persist", before_one_step)
    paused = await broker.suspend("a", colour_job(), session="s")
    monkeypatch.undo()
    if not answered:  # it took fewer steps: after the last one
        answered.append(await broker.inbox.answer_call("s", "job_1", Complete(value=1)))
    assert answered[0].ok
    found = await broker.inbox.wait(paused.interrupt_ids[0], 5)
    assert found.answer == Complete(value=1)
    assert (await broker.runs.get(paused.run_id)).state is RunState.READY


def colour_job() -> Interrupt:
    """A job whose result has a schema: an early one is looked at on the way, which takes more steps."""
    return render(response_schema={"type": "integer"})


@pytest.mark.report("RA8")
async def test_RA8_a_repeat_of_a_lost_completion_succeeds_and_rings_again(
    broker: AsyncBroker, serve: Serve
) -> None:
    """Off: the bell in guard `own-op` of answer.lua."""
    paused = await broker.suspend("a", refund(), session="s")
    one = paused.interrupt_ids[0]
    first = await broker.inbox.answer(one, Approve(), op="o-1")
    with waiting(
        broker
    ) as workers:  # who did not hear the first wake-up, as the caller did not hear the reply
        again = await broker.inbox.answer(one, Approve(), op="o-1")
        assert isinstance(first, Accepted)
        assert isinstance(again, Replayed)
        assert workers.woken_for() == [paused.run_id]

    async def a(run: Any) -> str:
        return str(run.resolution("call_1").kind)

    serve(a=a, options={"sweeps": False})
    assert (await ended(broker, paused.run_id)).result == "approve"


@pytest.mark.report("RA9")
async def test_RA9_what_was_acknowledged_can_be_read(broker: AsyncBroker) -> None:
    """Off: a bell before its record, or an entry acknowledged before its handler returned (`Follower.deliveries`)."""
    paused = await broker.suspend("a", refund(), session="s")
    assert await rung(broker, "interrupts", b"interrupt") == list(paused.interrupt_ids)
    async with aclosing(broker.inbox.follow("approvals")) as deliveries:
        delivery = await anext(deliveries)
        assert await pending(broker) == 1
        assert isinstance(await broker.inbox.answer(delivery.record.id, Approve()), Accepted)
        assert (
            await broker.inbox.get(delivery.record.id)
        ).state is Settlement.RESOLVED  # done, and then told
        assert await pending(broker) == 1
        await broker.suspend("a", refund(), session="s2")
        await anext(deliveries)  # the handler has returned: that one is acknowledged, this one is not
        assert await pending(broker) == 1


async def pending(broker: AsyncBroker) -> int:
    """How many entries the group still owes an acknowledgement."""
    stream = broker._link.space.partition(0).key("interrupts")
    return len(await broker._link.client.execute_command("XPENDING", stream, "approvals", "-", "+", 10))


@pytest.mark.report("RA12", "RA30")
async def test_RA12_a_wait_that_timed_out_eats_no_later_answer(broker: AsyncBroker, clock: Clock) -> None:
    """Off: an interrupt that stays registered after its expiry (`settle` without its index, guard `call-seq`)."""
    started = await broker.start("a", session="s")
    async with broker.take(started.run_id) as run:
        first = await run.suspend(render(expires_in=HOUR))
    clock.advance(HOUR)
    await Sweeper(broker).sweep(broker._link.space.partition(0))
    async with broker.take(started.run_id) as run:
        assert run.resolution("job_1").state is Settlement.EXPIRED
        second = await run.suspend(render(expires_in=HOUR))
    told = await broker.inbox.answer_call("s", "job_1", Complete(value=2), run_id=run.id, seq=2)
    assert isinstance(told, Accepted)
    states = [(await broker.inbox.get(one)).state for one in (*first.interrupt_ids, *second.interrupt_ids)]
    assert states == [Settlement.EXPIRED, Settlement.RESOLVED]


@pytest.mark.report("RA18", "RB11")
async def test_RA18_RB11_a_wait_is_consumed_once(broker: AsyncBroker) -> None:
    """Off: guard `decided` of answer.lua: the second value would be accepted, and a second continuation made ready."""
    paused = await broker.suspend("a", refund(), session="s")
    one = paused.interrupt_ids[0]
    told = [
        await broker.inbox.answer(one, Approve(), by=ADA),
        await broker.inbox.answer(one, Reject(reason="no"), by=BEN),
    ]
    assert [type(each) for each in told] == [Accepted, AlreadyDecided]
    taken = [
        *await broker.queue("agents").lease(("a",), limit=5),
        *await broker.queue("agents").lease(("a",), limit=5),
    ]
    assert [run.resolution("call_1").answer for run in taken] == [Approve()]


@pytest.mark.report("RA19", "RB3")
async def test_RA19_RB3_answers_are_addressed_by_id_never_by_position(broker: AsyncBroker) -> None:
    """Off: ids that do not cover the sequence or the content (`ids.interrupt_id`), guard `sole-call` of answer.lua."""
    started = await broker.start("a", session="s")
    ids: list[str] = []
    for amount in (40, 40, 400):
        async with broker.take(started.run_id) as run:
            ids += (await run.suspend(refund(amount))).interrupt_ids
        if len(ids) < 3:
            await broker.inbox.answer(ids[-1], Approve())
            again = await broker.inbox.answer(ids[-1], Approve())  # one extra
            assert isinstance(again, Replayed)
    assert len(set(ids)) == 3
    assert (await broker.inbox.get(ids[2])).state is Settlement.OPEN
    assert isinstance(await broker.inbox.answer_call("s", "call_1", Reject(reason="no")), Conflict)
    assert (await broker.inbox.get(ids[2])).state is Settlement.OPEN


@pytest.mark.report("RA25")
async def test_RA25_lists_never_show_an_old_state_after_the_answer(broker: AsyncBroker) -> None:
    """Off: an index written by another call than the one that settles (`settle` of the prelude)."""
    ids = [(await broker.suspend("a", refund(n), session=f"s{n}")).interrupt_ids[0] for n in range(30)]

    async def answer(one: str) -> None:
        await broker.inbox.answer(one, Approve())
        for listed in (await broker.inbox.list(), await broker.inbox.list(tool="refund")):
            assert one not in {item.id for item in listed.items}
        settled = await broker.inbox.get(one)
        assert (settled.state, settled.resolution is not None) == (Settlement.RESOLVED, True)

    await asyncio.gather(*(answer(one) for one in ids))
    assert (await broker.fleet()).open == 0


@pytest.mark.report("RA29")
async def test_RA29_expired_rejected_withdrawn_and_superseded_are_different_facts(
    broker: AsyncBroker, clock: Clock
) -> None:
    """Off: `answers._settled`, or `settle` called with one state for several ends."""
    first: dict[str, str] = {}
    for name in ("rejected", "expired", "withdrawn", "superseded", "cancelled"):
        paused = await broker.suspend("a", refund(expires_in=HOUR), session=name, key="k")
        first[name] = paused.interrupt_ids[0]
    await broker.inbox.answer(first["rejected"], Reject(reason="no"), by=ADA)
    await broker.cancel(first["cancelled"], by=ADA)
    await broker.runs.withdraw((await broker.inbox.get(first["withdrawn"])).run_id, by=ADA)
    await broker.suspend("a", Interrupt(), session="superseded", key="k", seq=2, replace=True)
    clock.advance(HOUR)
    told = {name: await broker.inbox.answer(one, Approve(), by=BEN) for name, one in first.items()}
    assert {name: type(each) for name, each in told.items()} == {
        "rejected": AlreadyDecided, "cancelled": AlreadyDecided, "expired": Expired, "withdrawn": Withdrawn,
        "superseded": Superseded,
    }  # fmt: skip
    states = {name: str((await broker.inbox.get(one)).state) for name, one in first.items()}
    assert states == {name: name for name in first} | {"rejected": "resolved"}
    for name in first:
        events = [entry.event for entry in await broker.history(name)]
        assert states[name] in events
