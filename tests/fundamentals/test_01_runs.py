"""A run is one execution of an agent in a session. Somebody starts it; one worker at a time holds it."""

from broker import AsyncBroker, RunState


async def test_a_run_is_started_taken_and_finished(broker: AsyncBroker) -> None:
    started = await broker.start("airline", {"question": "Where is my bag?"}, session="chat-1")

    async with broker.take(started.run_id) as run:
        assert run.input == {"question": "Where is my bag?"}
        await run.finish({"answer": "In Lisbon."})

    finished = await broker.runs.wait(run.id, timeout=5)
    assert finished.state is RunState.FINISHED
    assert finished.result == {"answer": "In Lisbon."}


async def test_a_key_makes_a_start_safe_to_repeat(broker: AsyncBroker) -> None:
    first = await broker.start("airline", session="chat-1", key="mail-4711")
    again = await broker.start("airline", session="chat-1", key="mail-4711")
    assert again.run_id == first.run_id
    assert (first.code, again.code) == ("accepted", "replayed")
