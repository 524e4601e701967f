"""A worker of the drills: `python -m tests.drills.agents.working URL NAMESPACE OPTIONS`.

Its agent asks before it pays, and paying takes a while. What was paid is in a file.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from broker import Run, Worker, current_call, gated
from tests.drills.crew import SETTINGS
from tests.drills.ledger import Ledger, Line, Recording, takes
from tests.worker.fleet import report


def main() -> None:
    url, namespace, given = sys.argv[1:]
    options: dict[str, Any] = json.loads(given)
    ledger, pid, pace = Ledger(Path(options.pop("ledger"))), os.getpid(), options.pop("pace", 0.0)

    @gated
    async def pay(amount: int) -> int:
        call = current_call()
        ledger.add(Line("effect", call.run_id, call.id, call.key, call.fence, pid))
        await takes(pace)
        return amount

    async def pays(run: Run[Any]) -> Any:
        return await run.call(pay, {"amount": run.input}, call_id="pay")

    worker = Worker(url, namespace=namespace, settings=SETTINGS, observer=Recording(ledger, pid), **options)
    worker.add("pays", pays)
    report("begins")
    worker.run()


if __name__ == "__main__":
    main()
