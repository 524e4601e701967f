"""A process of a rival's trial, run by the rival's own interpreter: `python -m benchmarks.rivals.part PLAN`.

PLAN is JSON. Nothing here needs a package: what the rival needs is imported with its module.
"""

import importlib
import json
import os
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.job import Job, Plan


def play(told: dict[str, Any]) -> None:
    """Does one part. Raises what the rival raises."""
    module = importlib.import_module(told["module"])
    if told["role"] == "prepare":
        module.prepare(told["url"])
        return
    getattr(module, told["role"])(Job(told["url"], told["board"], Plan(**told["plan"]), told["pipe"]))


def main() -> None:
    """The whole life of the process. The last thing it says is what went wrong, or nothing."""
    told = json.loads(sys.argv[1])
    pipe: Connection = Connection(told["pipe"], readable=False)
    try:
        play(told | {"pipe": pipe})
    except Exception:  # noqa: BLE001 - whatever it is, the driver is told
        pipe.send(traceback.format_exc())
    else:
        pipe.send("")
    sys.stderr.flush()
    os._exit(0)  # some leave threads behind that never end


if __name__ == "__main__":
    main()
