"""A process of the suite: `python -m tests.adapters.child OPTIONS`, as JSON.

With a `phase` it plays a case of the framework alone and prints its word; else it is a worker of the scenario's agent.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from broker import Worker
from tests.worker.fleet import QUICK, report, report_logs

from .cases import subject_of
from .world import World

AGENT: Final = "payer"


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[1])
    subject = subject_of(import_module(f"tests.adapters.subjects.{options['subject']}"))
    world = World(Path(options["folder"]), options)
    if "phase" in options:
        word = subject.alone(options["case"], options["phase"], world)
        report(json.dumps({"word": word, "pid": os.getpid()}))
        return
    report_logs()
    worker = Worker(
        options["url"], namespace=options["namespace"], settings=QUICK, build=options.get("build")
    )
    worker.add(AGENT, subject.handler(options["scenario"], world))
    report("begins")
    worker.run()


if __name__ == "__main__":
    main()
