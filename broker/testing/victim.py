"""The program that runs an agent in processes that may be killed: `python -m broker.testing.victim`. Imports `worker`.

It imports the agent once, and forks a worker for each order: a process that shares nothing with the others but the
server and what is on disk. Orders and reports are JSON lines on standard input and output; what the agent prints goes
to standard error. It ends, with its worker, when its standard input does.
"""

import importlib
import importlib.util
import json
import os
import sys
import threading
import traceback
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ..core.settings import Settings
from ..worker.main import Worker
from .clock import MOVABLE
from .effects import VARIABLE, watchers
from .moments import Moments

AGENT: Final = "agent"
"""The name under which a test's agent is registered."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where an agent is found: module, file of the module, and the attribute (`graph.resume` is one too)."""

    module: str
    file: str | None
    attribute: str
    path: tuple[str, ...]

    def load(self) -> Any:
        """The agent, of a module that is imported for it."""
        sys.path[:] = self.path
        return reduce(getattr, self.attribute.split("."), self._module())

    def _module(self) -> Any:
        try:
            if self.module != "__main__":
                return importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if self.file is None or error.name != self.module:
                raise
        return _by_file(self.module, str(self.file))


def _by_file(name: str, file: str) -> ModuleType:
    """A module that no import finds: a script, or a test file that pytest imported by its path."""
    name = "agent_under_test" if name == "__main__" else name
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{file} is no Python file", name=name)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class Order:
    """One worker: where it works, where it leaves its traces, and the moment at which it kills itself, if at any."""

    url: str
    namespace: str
    settings: Any
    moments: str
    effects: str
    dies_at: str = ""


def serve(agent: Any, order: Order) -> None:
    """Works as ordered, until SIGTERM or until the parent is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ[VARIABLE] = order.effects
    moments = Moments(Path(order.moments), order.dies_at)
    watchers.append(lambda name: moments.at(f"after effect {name}"))
    worker = Worker(
        order.url,
        namespace=order.namespace,
        settings=Settings.from_json(order.settings),
        rendering=MOVABLE,
        observer=moments,
    )
    worker.add(AGENT, agent)
    worker.run()


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def _forked(agent: Any, line: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        serve(agent, Order(**json.loads(line)))
        code = 0
    except BaseException:  # noqa: BLE001 - the last thing this process says
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Reads the target, then one order after the other."""
    reports = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def report(**what: Any) -> None:
        reports.write(json.dumps(what) + "\n")

    target: dict[str, Any] = json.loads(sys.stdin.readline())
    try:
        agent = Target(**target).load()
    except Exception:  # noqa: BLE001 - whatever the module raises, it cannot be had
        report(fault=traceback.format_exc())
        return
    report(ready=True)
    while line := sys.stdin.readline():
        pid = _forked(agent, line)
        report(pid=pid)
        _, told = os.waitpid(pid, 0)
        report(exit=os.waitstatus_to_exitcode(told))


if __name__ == "__main__":
    main()
