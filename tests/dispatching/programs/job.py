"""A job in a process of its own: `python -m tests.dispatching.programs.job URL NAMESPACE RUN_ID [STEP]`.

With a step it says that it has come to it, and waits there to be killed.
"""

import asyncio
import sys
import threading

from broker import AsyncBroker, Broker, Run
from broker.adapters.functions import go_on, go_on_blocking
from tests.dispatching.agents import ASYNC, BLOCKING
from tests.worker.fleet import QUICK, report


def stop(at: str, step: str) -> None:
    """Waits for ever, where it is to be killed at this step."""
    if at == step:
        report(f"at {step}")
        threading.Event().wait()


async def main() -> None:
    url, namespace, run_id, at = (*sys.argv[1:], "")[:4]
    stop(at, "start")
    async with AsyncBroker(url, namespace=namespace, settings=QUICK) as broker:
        agent = (await broker.runs.get(run_id)).agent

        async def watched(run: Run) -> object:  # type: ignore[type-arg]
            stop(at, "taken")
            result = await ASYNC[agent](run)
            stop(at, "done")
            return result

        if agent in ASYNC:
            found = await go_on(broker, run_id, {agent: watched})
        else:
            with Broker(url, namespace=namespace, settings=QUICK) as blocking:
                found = go_on_blocking(blocking, run_id, BLOCKING)
    report(f"went on: {found}")


if __name__ == "__main__":
    asyncio.run(main())
