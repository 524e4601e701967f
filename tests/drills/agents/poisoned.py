"""A worker some of whose runs are poison: `python -m tests.drills.agents.poisoned URL NAMESPACE OPTIONS`.

One kind raises, the other takes its whole process with it.
"""

import json
import os
import signal
import sys
from typing import Any, Final

from broker import Run, Worker
from tests.drills.crew import SETTINGS
from tests.drills.ledger import takes
from tests.worker.fleet import report

FEW_TRIES: Final = SETTINGS.model_copy(update={"tries": 3})


async def works(run: Run[Any]) -> Any:
    if run.input == "raises":
        raise ValueError("poison")
    if run.input == "kills":
        os.kill(os.getpid(), signal.SIGKILL)
    await takes(0.02)
    return run.input


def main() -> None:
    url, namespace, given = sys.argv[1:]
    options: dict[str, Any] = json.loads(given)
    worker = Worker(url, namespace=namespace, settings=FEW_TRIES, **options)
    worker.add("works", works)
    report("begins")
    worker.run()


if __name__ == "__main__":
    main()
