"""A worker process that plays a script and dies where it is told to: `python -m ... URL NAMESPACE FOLDER MOMENT`."""

import asyncio
import sys
from pathlib import Path
from typing import Any, Final

from broker import Run, Worker, current_call
from broker.testing.moments import Moments
from tests.journal.travel import World
from tests.worker.fleet import QUICK

from .script import play

LINES: Final = (("lookup", {"name": "ada"}), ("lookup", {"name": "bob"}))

PATIENT: Final = QUICK.model_copy(update={"tries": 9})
"""Quick, and a run may lose more workers than these tests kill."""


def worker(url: str, namespace: str, folder: Path, dies_at: str = "") -> Worker:
    """A worker with the agent of these tests."""
    moments, world = Moments(folder / "moments", dies_at), World(folder)

    async def lookup(name: str) -> str:
        known = current_call()
        world.add(known.id, known.key, str(known.attempt))
        moments.at(f"after the effect of {known.id}")
        return f"found {name}"

    async def analyst(run: Run[Any]) -> list[Any]:
        return await play(run, LINES, [lookup])

    made = Worker(url, namespace=namespace, settings=PATIENT, observer=moments)
    made.add("analyst", analyst)
    return made


def main() -> None:
    url, namespace, folder, moment = sys.argv[1:]
    asyncio.run(worker(url, namespace, Path(folder), moment).serve())


if __name__ == "__main__":
    main()
