"""One worker process of the demo: `python -m broker.cli.demo.worker`, with its part as a JSON line on standard input.

It says `ready` when it is connected, and ends with its parent: when its standard input ends, it drains.
"""

import asyncio
import json
import signal
import sys
import threading
from datetime import timedelta
from typing import Any

from ... import Settings, Worker
from .desk import AGENT, QUEUE, Desk

SETTINGS = Settings(
    lease=timedelta(seconds=2), sweep_every=timedelta(seconds=0.5), backoff_first=timedelta(seconds=0.2)
)
"""Shorter than the defaults, so that a killed worker is missed within the demo."""


async def work(part: dict[str, Any]) -> None:
    """Runs cases until standard input ends."""
    worker = Worker(
        part["url"],
        namespace=part["namespace"],
        queue=QUEUE,
        name=part["name"],
        concurrency=2,
        settings=SETTINGS,
    )
    worker.add(AGENT, Desk(part["pace"]).work)
    await worker.broker.open()
    serving = asyncio.create_task(worker.serve())
    await asyncio.sleep(0)  # it has begun, so that `stop` reaches it
    threading.Thread(target=_stop_at_end, args=(worker,), daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await serving


def _stop_at_end(worker: Worker) -> None:
    sys.stdin.read()
    worker.stop()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it stops its processes in order
    asyncio.run(work(json.loads(sys.stdin.readline())))
