"""A worker process: `python -m tests.worker.agents.serving URL NAMESPACE OPTIONS`, options as JSON for `Worker`."""

import asyncio
import json
import os
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from broker import Action, Interrupt, Run, StaleLease, Worker
from broker.testing import await_until
from tests.worker.fleet import QUICK, report, report_logs


async def pauses(run: Run[Any]) -> dict[str, Any] | None:
    """Asks once, and goes on with the answer."""
    if run.seq == 0:
        await run.suspend(Interrupt.approval(Action(tool="refund", arguments={}), "call_1"))
        return None
    return {"kind": run.resolution("call_1").kind, "pid": os.getpid()}


async def blocks(run: Run[Any]) -> int:
    """Stops the whole event loop for so many seconds."""
    threading.Event().wait(run.input)
    return os.getpid()


async def hangs(run: Run[Any]) -> int:
    """Never ends at its first attempt."""
    report(f"begins {run.id}")
    if run.fence == 1:
        await asyncio.Event().wait()
    return os.getpid()


async def waits(run: Run[Any]) -> int:
    """Ends when the file named by its input is there."""
    report(f"begins {run.id}")
    await await_until(Path(run.input).exists, 60)
    return os.getpid()


async def clings(run: Run[Any]) -> int:
    """Tries to write although it was told that its lease is lost, and says what came of it."""
    report(f"begins {run.id}")
    if run.fence > 1:
        return os.getpid()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        told = []
        run.is_held = True
        for write in (run.finish, run.release, lambda: run.suspend(Interrupt()), lambda: run.fail("Late")):
            try:
                await write()
                told.append("taken")
            except StaleLease:
                told.append("refused")
        report(f"told {' '.join(told)}")
        raise
    return 0


def main() -> None:
    report_logs()
    url, namespace, given = sys.argv[1:]
    options: dict[str, Any] = {"drain": 20.0} | json.loads(given)
    known = {function.__name__: function for function in (pauses, blocks, hangs, waits, clings)}
    names = options.pop("agents", None) or list(known)
    drain = timedelta(seconds=options.pop("drain"))
    worker = Worker(url, namespace=namespace, settings=QUICK, drain=drain, **options)
    for name in names:
        worker.add(name, known[name])
    worker.run()


if __name__ == "__main__":
    main()
