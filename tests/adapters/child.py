"""A process of the suite: a worker of a scenario's agent, or one phase of a case of the framework alone.

The processes are forks of one that has the framework imported already: importing it takes longer than most cases.
"""

import json
import os
import sys
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from broker import Worker
from tests.worker.fleet import QUICK, report, report_logs

from .cases import Subject, subject_of
from .world import World

AGENT: Final = "payer"


class Child:
    """A process that serves, or plays its phase. What it prints is in `log`."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._log = Path(options["folder"]) / f"log-{os.urandom(4).hex()}"
        self._log.touch()
        context = get_context("forkserver")
        subject = module_of(options["subject"])
        # What is not there is left out.
        context.set_forkserver_preload([__name__, subject, f"{subject}_alone"])
        self._process = context.Process(target=run, args=(options, str(self._log)), daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    @property
    def log(self) -> str:
        """Everything it printed."""
        return self._log.read_text()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.join()

    def wait(self) -> int:
        """Its exit code, when it has ended by itself."""
        self._process.join()
        return self._process.exitcode or 0


def run(options: dict[str, Any], log: str) -> None:
    """What a child does."""
    with Path(log).open("a") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    subject = subject_named(options["subject"])
    world = World(Path(options["folder"]), options)
    if "phase" in options:
        report(json.dumps(subject.alone(options["case"], options["phase"], world)))
        return
    report_logs()
    serve = getattr(subject, "serve", None)
    if serve is not None:
        serve(options, world)
        return
    worker = Worker(
        options["url"], namespace=options["namespace"], settings=QUICK, build=options.get("build")
    )
    worker.add(AGENT, subject.handler(options["scenario"], world))
    report("begins")
    worker.run()


def module_of(name: str) -> str:
    """The module of a subject: an adapter's, by its name, or any other's, by its path."""
    return name if "." in name else f"tests.adapters.subjects.{name}"


def subject_named(name: str) -> Subject:
    """The subject of an adapter or a recipe."""
    return subject_of(import_module(module_of(name)))


def main() -> None:
    """The same from a command line, for what must not be a fork."""
    options: dict[str, Any] = json.loads(sys.argv[1])
    run(options, os.devnull)


if __name__ == "__main__":
    main()
