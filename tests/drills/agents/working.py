"""A worker of the drills: `python -m tests.drills.agents.working URL NAMESPACE OPTIONS`.

Its first agent asks before it pays, then tells; each takes a while. What was done is in a file. The others wait for an
answer that nobody gives, hold their run for longer than a lease, and start another run.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from broker import Action, Interrupt, Run, Worker, current_call, gated
from tests.drills.crew import SETTINGS
from tests.drills.ledger import Ledger, Line, Recording, takes
from tests.worker.fleet import report


async def waits(run: Run[Any]) -> Any:
    if run.seq == 0:
        action = Action(tool="refund", arguments={})
        await run.suspend(Interrupt.approval(action, "c", expires_in=timedelta(seconds=run.input)))
        return None
    return run.resolution("c").state


async def holds(run: Run[Any]) -> int:
    await takes(run.input)
    return run.fence


def starts(worker: Worker) -> Callable[[Run[Any]], Awaitable[Any]]:
    async def starts(run: Run[Any]) -> Any:
        return (await worker.broker.start("holds", 0, session=run.input, key="k")).run_id

    return starts


def main() -> None:
    url, namespace, given = sys.argv[1:]
    options: dict[str, Any] = json.loads(given)
    ledger, pid, pace = Ledger(Path(options.pop("ledger"))), os.getpid(), options.pop("pace", 0.0)

    async def has_effect() -> None:
        call = current_call()
        ledger.add(Line("effect", call.run_id, call.id, call.key, call.fence, pid))
        await takes(pace)

    @gated
    async def pay(amount: int) -> int:
        await has_effect()
        return amount

    async def tell(amount: int) -> int:
        await has_effect()
        return amount

    async def pays(run: Run[Any]) -> Any:
        paid = await run.call(pay, {"amount": run.input}, call_id="pay")
        return await run.call(tell, {"amount": paid}, call_id="tell")

    worker = Worker(url, namespace=namespace, settings=SETTINGS, observer=Recording(ledger, pid), **options)
    for agent in (pays, waits, holds, starts(worker)):
        worker.add(agent.__name__, agent)
    report("begins")
    worker.run()


if __name__ == "__main__":
    main()
