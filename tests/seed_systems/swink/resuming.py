"""A worker process that goes on with imported interrupts: `python -m ... URL NAMESPACE OPTIONS`.

At its first attempt it says so and stops, before anything is durable.
"""

import asyncio
import json
import sys
from typing import Any

from broker import Run, Worker
from broker.interop.swink import decision_of
from tests.worker.fleet import QUICK, report


async def resumes(run: Run[Any]) -> dict[str, Any]:
    report(f"begins {run.id}")
    if run.attempt == 1:
        await asyncio.Event().wait()
    return {one.interrupt_id: decision_of(one) for one in run.resolutions} | {"attempt": run.attempt}


if __name__ == "__main__":
    url, namespace, options = sys.argv[1:]
    worker = Worker(url, namespace=namespace, settings=QUICK, **json.loads(options))
    worker.add("swink", resumes)
    worker.run()
