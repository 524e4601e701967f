"""A worker process: `python -m tests.worker.agents.serving URL NAMESPACE OPTIONS`, options as JSON for `Worker`."""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from broker import Action, Interrupt, Run, StaleLease, Worker
from broker.core.limits import LIMITS
from broker.store.commands import entries, runs
from broker.store.commands.entries import Entry
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


async def renew(run: Run[Any]) -> None:
    (until,) = await run._link.run_all(runs.renew(run._leased.partition, [run._leased.token], QUICK.lease))
    if until is None:
        raise StaleLease(run.id)


LATE: Final[dict[str, Callable[[Run[Any]], Awaitable[Any]]]] = {
    "begin": lambda run: run._link.run(entries.begin(run._leased, Entry("late", "d", "d"), LIMITS)),
    "end": lambda run: run._link.run(entries.end(run._leased, "call", b"late")),
    "handle": lambda run: run._link.run(entries.handle(run._leased, "job", "late")),
    "cut": lambda run: run._link.run(entries.cut(run._leased, 1, "late")),
    "renew": renew,
    "suspend": lambda run: run.suspend(Interrupt()),
    "fail": lambda run: run.fail("Late"),
    "release": lambda run: run.release(),
    "finish": lambda run: run.finish("late"),
}
"""Every call that shows a lease, as the scripts take it: by script."""


async def clings(run: Run[Any]) -> int:
    """Tries every write although it was told that its lease is lost, and says what came of each."""
    if run.fence == 1:  # what a late record could be the end of
        for name, long in (("call", False), ("job", True)):
            entry = Entry(name, "d", "d", long=long, token="t")
            await run._link.run(entries.begin(run._leased, entry, LIMITS))
    report(f"begins {run.id}")
    if run.fence > 1:
        await await_until(Path(run.input).exists, 60)
        return os.getpid()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        told = []
        for name, write in LATE.items():
            run.is_held = True
            try:
                await write(run)
                told.append(f"{name}:taken")
            except StaleLease:
                told.append(f"{name}:refused")
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
