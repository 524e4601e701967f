"""A run that cannot go on without an answer pauses: its state is frozen, its questions are asked, and it is let go."""

from broker import Action, Approve, AsyncBroker, Interrupt, InterruptState


async def test_a_run_pauses_and_goes_on_with_the_answer(broker: AsyncBroker) -> None:
    started = await broker.start("airline", session="chat-1")

    async with broker.take(started.run_id) as run:
        cancel = Action(tool="cancel_reservation", arguments={"id": "ZFA04Y"})
        messages = [{"role": "user", "content": "Cancel it, please."}]
        paused = await run.suspend(
            Interrupt.approval(cancel, call_id="call_1"), state=InterruptState(context_snapshot=messages)
        )

    # Nobody holds the run now. One read tells anybody that its session is interrupted.
    assert await broker.active("chat-1") == {run.id: 1}

    await broker.inbox.answer(paused.interrupt_ids[0], Approve())

    async with broker.take(run.id) as again:
        assert again.state is not None
        assert again.state.context_snapshot == messages
        assert again.resolution("call_1").answer == Approve()
        await again.finish("cancelled")

    assert await broker.active("chat-1") == {}
