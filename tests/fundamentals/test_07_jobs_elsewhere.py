"""A job that takes hours runs elsewhere. The run waits without a worker, and the job's own webhook completes it."""

from broker import Action, AsyncBroker, Complete, Interrupt, Parked


async def test_a_job_is_completed_by_its_webhook(broker: AsyncBroker) -> None:
    render = Action(tool="render_video", arguments={"prompt": "a cat"})
    wait_for_it = Interrupt.completion(render, call_id="job_1", handle="studio-17")
    paused = await broker.suspend("studio", wait_for_it, session="chat-1")

    await broker.complete(paused.interrupt_ids[0], {"video": "cat.mp4"}, op="webhook-delivery-9")

    async with broker.take(paused.run_id) as run:
        assert run.resolution("job_1").answer == Complete(value={"video": "cat.mp4"})
        await run.finish()


async def test_a_completion_may_come_before_the_wait(broker: AsyncBroker) -> None:
    early = await broker.inbox.answer_call("chat-1", "job_1", Complete(value="done"))
    assert isinstance(early, Parked)

    render = Action(tool="render_video", arguments={"prompt": "a cat"})
    paused = await broker.suspend("studio", Interrupt.completion(render, call_id="job_1"), session="chat-1")

    ended = await broker.inbox.wait(paused.interrupt_ids[0], timeout=5)
    assert ended.answer == Complete(value="done")
