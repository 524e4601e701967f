"""A question ends in one of five ways, never confused: answered, cancelled, expired, withdrawn, superseded."""

import asyncio
from datetime import timedelta

from broker import (
    Action,
    Approve,
    AsyncBroker,
    Expired,
    Interrupt,
    Settlement,
    Superseded,
    Sweeper,
    Withdrawn,
)


def refund(amount: int = 40, expires_in: timedelta = timedelta(hours=1)) -> Interrupt:
    action = Action(tool="refund", arguments={"amount": amount})
    return Interrupt.approval(action, call_id="call_1", expires_in=expires_in)


async def test_a_question_expires(broker: AsyncBroker) -> None:
    soon = timedelta(milliseconds=10)
    (question,) = (await broker.suspend("airline", refund(expires_in=soon), session="chat-1")).interrupt_ids

    sweeping = asyncio.create_task(Sweeper(broker).run())  # every worker sweeps by itself
    ended = await broker.inbox.wait(question, timeout=10)
    assert (ended.state, ended.answer) == (Settlement.EXPIRED, None)
    assert isinstance(await broker.inbox.answer(question, Approve()), Expired)

    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)


async def test_a_question_is_cancelled_since_nobody_will_answer(broker: AsyncBroker) -> None:
    (question,) = (await broker.suspend("airline", refund(), session="chat-1")).interrupt_ids
    await broker.cancel(question, "The shop is closed.")
    assert (await broker.inbox.get(question)).state is Settlement.CANCELLED


async def test_a_question_is_withdrawn_by_who_asked(broker: AsyncBroker) -> None:
    paused = await broker.suspend("airline", refund(), session="chat-1")
    await broker.runs.withdraw(paused.run_id, reason="Solved by phone.")
    assert isinstance(await broker.inbox.answer(paused.interrupt_ids[0], Approve()), Withdrawn)


async def test_a_question_is_superseded_by_a_new_one(broker: AsyncBroker) -> None:
    first = await broker.suspend("airline", refund(40), session="chat-1", key="case-7")
    await broker.suspend("airline", refund(60), session="chat-1", key="case-7", seq=2, replace=True)
    assert isinstance(await broker.inbox.answer(first.interrupt_ids[0], Approve()), Superseded)
