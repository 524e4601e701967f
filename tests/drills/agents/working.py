"""A worker of the drills: `python -m tests.drills.agents.working URL NAMESPACE OPTIONS`.

Its agent asks before it pays, then tells; each takes a while. What was done is in a file.
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
    worker.add("pays", pays)
    report("begins")
    worker.run()


if __name__ == "__main__":
    main()
