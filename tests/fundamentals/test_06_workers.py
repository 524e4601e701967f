"""A worker runs the agents it knows. A handler pauses by returning; it is called again when its answers are there."""

import asyncio

from pydantic import BaseModel

from broker import Action, Approve, AsyncBroker, Interrupt, Run, RunState, Worker


class Trip(BaseModel):
    reservation: str


async def test_a_worker_runs_an_agent_over_its_pause(broker: AsyncBroker, url: str, namespace: str) -> None:
    worker = Worker(url, namespace=namespace)

    @worker.agent("airline")
    async def airline(run: Run[Trip]) -> str | None:
        if run.seq == 0:
            cancel = Action(tool="cancel_reservation", arguments=run.input.model_dump())
            await run.suspend(Interrupt.approval(cancel, call_id="call_1"))
            return None
        return f"{run.input.reservation}: {run.resolution('call_1').kind}"

    serving = asyncio.create_task(worker.serve())  # a program calls worker.run()

    started = await broker.start("airline", Trip(reservation="ZFA04Y"), session="chat-1")
    async for delivery in broker.inbox.follow("approvals"):
        await broker.inbox.answer(delivery.record.id, Approve())
        break
    finished = await broker.runs.wait(started.run_id, timeout=20)
    assert (finished.state, finished.result) == (RunState.FINISHED, "ZFA04Y: approve")

    worker.stop()
    await serving
