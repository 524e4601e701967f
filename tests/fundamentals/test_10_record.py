"""Every step is on record: who, when, what."""

from broker import Action, Approve, AsyncBroker, Interrupt, Principal


async def test_the_history_of_a_session(broker: AsyncBroker) -> None:
    ask = Interrupt.approval(Action(tool="refund", arguments={"amount": 40}), call_id="call_1")
    paused = await broker.suspend("airline", ask, session="chat-1")
    await broker.inbox.answer(paused.interrupt_ids[0], Approve(), by=Principal.local("ben"))
    async with broker.take(paused.run_id) as run:
        await run.finish()

    history = await broker.history("chat-1")
    assert [entry.event for entry in history] == ["suspended", "resolved", "leased", "finished"]
    assert history[1].by == Principal.local("ben")
