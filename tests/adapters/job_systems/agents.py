"""The agents of tests/dispatching, which wait to be killed once where the test has left a file for that."""

import os
import threading
from pathlib import Path
from typing import Any

from broker import BlockingRun, Run
from tests.dispatching.agents import payer, refunder


def stop(folder: str) -> None:
    """Waits for ever where there is a file `hold`, which it takes away."""
    hold = Path(folder, "hold")
    if hold.exists():
        hold.write_text(str(os.getpid()))
        hold.rename(Path(folder, "held"))
        threading.Event().wait()


def blocking(run: BlockingRun[dict[str, Any]]) -> Any:
    result = payer(run)
    stop(run.input["folder"])
    return result


async def ordinary(run: Run[dict[str, Any]]) -> Any:
    result = await refunder(run)
    stop(run.input["folder"])
    return result
