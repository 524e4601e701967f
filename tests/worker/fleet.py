"""What the tests of the worker share: quick settings, worker processes, and facts to wait for."""

import json
import logging
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from broker import AsyncBroker, RunRecord, RunState, Settings
from broker.testing import await_until

ROOT: Final = Path(__file__).resolve().parents[2]
LEASE: Final = timedelta(seconds=1)
QUICK: Final = Settings(
    lease=LEASE, sweep_every=timedelta(milliseconds=100), backoff_first=timedelta(milliseconds=20),
    backoff_most=timedelta(milliseconds=40), tries=3,
)  # fmt: skip
"""Everything happens soon. A lease of a second is long enough for a busy machine: a renewal comes four times in it."""


class Agents:
    """A process that serves the agents of `agents/serving.py`, or runs another program: of that folder, or any."""

    def __init__(self, url: str, namespace: str, *, program: str = "serving", **options: Any) -> None:
        self.name = options.get("name", "")
        module = program if "." in program else f"tests.worker.agents.{program}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, url, namespace, json.dumps(options)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def says(self, about: str) -> str:
        """The next line of the process that is about this."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if about in line:
                return line.strip()
        raise EOFError(f"it ended before it said anything about {about}")

    def begins(self) -> str:
        """The id of the next run that a handler of the process begins."""
        return self.says("begins ").split()[-1]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def terminate(self) -> None:
        self._process.terminate()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def exit_code(self, timeout: float = 20) -> int:
        """The exit code, when it has ended by itself."""
        return self._process.wait(timeout)

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()


def report(about: str) -> None:
    """Says something to the test, from a process."""
    print(about, flush=True)  # noqa: T201 - its output is what the test reads


def report_logs() -> None:
    """Lets the test read what the broker logs, from a process."""
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")


async def run_when(broker: AsyncBroker, run_id: str, *states: RunState, timeout: float = 20.0) -> RunRecord:
    """The run, as soon as it is in one of these states."""

    async def there() -> RunRecord | None:
        run = await broker.runs.get(run_id)
        return run if run.state in states else None

    found = await await_until(there, timeout, what=f"{run_id} is {' or '.join(states)}")
    assert found is not None
    return found


async def ended(broker: AsyncBroker, run_id: str) -> RunRecord:
    """The run, as soon as it is closed or dead."""
    found = await broker.wait(run_id, 20)
    assert isinstance(found, RunRecord)
    return found
