"""An attempt that fails comes back later. After too many the run is dead, with its reasons, until somebody looks."""

from broker import AsyncBroker, RunState


async def test_a_dead_run_is_looked_at_and_sent_back(broker: AsyncBroker) -> None:
    started = await broker.start("airline", session="chat-1")
    async with broker.take(started.run_id) as run:
        await run.fail("BadGateway", "the airline's system is down", final=True)

    (dead,) = await broker.dead.list()
    assert dead.state is RunState.DEAD
    assert "BadGateway: the airline's system is down" in dead.errors[0]

    await broker.dead.requeue(dead.id, fence=dead.fence)
    async with broker.take(dead.id) as again:
        assert again.fence == dead.fence + 1
        await again.finish()
