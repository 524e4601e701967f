"""Two jobs go on with one run: the first asks, is answered, and is killed; the second finishes. `python functions.py`.

The broker's embedded server is used where `BROKER_URL` names none. Each job is a process of its own, as it would be
with any job system; the dispatcher makes it.
"""

import asyncio
import os
import sys
from datetime import timedelta

from broker import Approve, AsyncBroker, Principal, Run, RunRecord, Settings
from broker.adapters.functions import Dispatcher, Job, gated, go_on

SETTINGS = Settings(lease=timedelta(seconds=2), sweep_every=timedelta(milliseconds=200))
NAMESPACE = "example-functions"


@gated(reviewers="refunds")
async def cancel_reservation(id: str) -> str:
    """Runs once, whatever happens to the process."""
    print(f"  process {os.getpid()} cancels {id}", flush=True)
    return f"cancelled {id}"


async def airline(run: Run[str]) -> str:
    """The agent. The first process that gets past the call is killed before it has told anybody."""
    said = await cancel_reservation(run.input)
    if run.attempt == 1:
        print(f"  process {os.getpid()} is killed", flush=True)
        os.kill(os.getpid(), 9)
    return f"{said}, says process {os.getpid()}"


def broker() -> AsyncBroker:
    """The pauses of this example."""
    return AsyncBroker(namespace=NAMESPACE, settings=SETTINGS, by=Principal.local("ada"))


async def start_process(job: Job) -> None:
    """The job system: a process for each job."""
    await asyncio.create_subprocess_exec(sys.executable, __file__, job.run_id)


async def job(run_id: str) -> None:
    """What a job does."""
    async with broker() as mine:
        await go_on(mine, run_id, {"airline": airline})


async def main() -> None:
    """Starts a run, answers its question, and waits for its end."""
    async with broker() as mine:
        dispatching = asyncio.create_task(Dispatcher(mine, to=start_process, agents=["airline"]).run())
        started = await mine.start("airline", "R7", session="s_1")
        async for asked in mine.inbox.follow("approvals", consumer="ada"):
            if asked.record.run_id == started.run_id:
                print(f"approve {asked.record.interrupt.action}", flush=True)
                await mine.inbox.answer(asked.record.id, Approve())
                break
        done = await mine.wait(started.run_id, timeout=60)
        dispatching.cancel()
        await asyncio.gather(dispatching, return_exceptions=True)
        assert isinstance(done, RunRecord)
        print(done.result)


if __name__ == "__main__":
    asyncio.run(job(sys.argv[1]) if len(sys.argv) > 1 else main())
