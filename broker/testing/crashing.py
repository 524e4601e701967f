"""Kills an agent at every boundary of its journal, in a process of its own, and tells what came out differently.

Imports `victim`, the program of those processes.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from ..core.limits import JSON
from ..core.states import RunState
from ..errors import InvalidInput
from .victim import Order, Target

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 30.0
KILLED: Final = -signal.SIGKILL
ENDS: Final = (0, KILLED, -signal.SIGTERM)
"""How a worker may end: drained, killed, or told to end before it had begun."""

Handler: TypeAlias = Callable[..., Any] | str
"""An agent: a function of a module, or `module:attribute`."""


class CrashUnsafe(AssertionError):
    """An agent that dies, or comes to something else when its worker is killed; `crashes` has all of it."""

    def __init__(self, crashes: "Crashes") -> None:
        self.crashes = crashes
        super().__init__(str(crashes))


@dataclass(frozen=True, slots=True)
class Trip:
    """One run of the agent: where its worker was killed (empty: nowhere), what it came to and what it did."""

    killed: str
    state: RunState
    result: JSON
    errors: tuple[str, ...]
    effects: Counter[str]
    moments: tuple[str, ...]
    is_met: bool = True
    """Whether the worker came to the moment at which it was to be killed."""

    def faults(self, calm: "Trip") -> list[str]:
        """How it differs from the run that nobody disturbed, one sentence each."""
        if not self.is_met:
            return ["the run did not come to this moment again: it takes another way each time"]
        found = [
            f"{name!r} happened {_times(self.effects[name])}, not {_times(calm.effects[name])}"
            for name in sorted(self.effects.keys() | calm.effects.keys())
            if self.effects[name] != calm.effects[name]
        ]
        if self.state is not calm.state:
            found.append(f"the run is {self.state}, not {calm.state} ({'; '.join(self.errors)})")
        elif self.result != calm.result:
            found.append(f"the result is {self.result!r}, not {calm.result!r}")
        return found


@dataclass(frozen=True, slots=True)
class Crashes:
    """What killing at every step came to: the undisturbed run, and one for each moment.

    There is none for an agent that dies undisturbed.
    """

    calm: Trip
    trips: tuple[Trip, ...]

    @property
    def faults(self) -> dict[str, list[str]]:
        """What came out differently, by the moment of the kill."""
        found = {one.killed: one.faults(self.calm) for one in self.trips}
        return {moment: faults for moment, faults in found.items() if faults}

    def __str__(self) -> str:
        """A line for each fault, for people."""
        if self.calm.state is RunState.DEAD:
            return f"the run is dead without a kill ({'; '.join(self.calm.errors)})"
        faults = self.faults
        lines = [f"killed {moment}: {one}" for moment, several in faults.items() for one in several]
        return "\n".join([f"{len(faults)} of {len(self.trips)} kills change what the agent comes to", *lines])


class Victims:
    """Workers of one agent, one after the other, each in a process of its own that may be killed."""

    def __init__(self, agent: Handler, log: Path) -> None:
        self._target = target_of(agent)
        self._log = log
        self._reports: queue.Queue[dict[str, Any]] = queue.Queue()
        with log.open("wb") as err:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", f"{__package__}.victim"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True, bufsize=1,
            )  # fmt: skip
        threading.Thread(target=self._listen, daemon=True).start()

    def open(self) -> None:
        """Returns when the agent is imported. Raises `InvalidInput` with what its module raised."""
        self._say(asdict(self._target))
        told = self._told(START_SECONDS)
        if "fault" in told:
            raise InvalidInput(
                "agent", f"cannot be imported by another process:\n{told['fault']}", "a function of a module"
            )

    def close(self) -> None:
        """Ends the process, and with it its worker."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @contextmanager
    def worker(self, order: Order) -> Generator["Victim"]:
        """One worker, ended at the end of the block."""
        self._say(asdict(order))
        victim = Victim(self._told(STOP_SECONDS)["pid"], self._told, self.log)
        try:
            yield victim
        finally:
            victim.stop()

    def log(self) -> str:
        """What the workers printed."""
        return self._log.read_text(errors="replace")

    def _say(self, what: dict[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        self._process.stdin.write(json.dumps(what) + "\n")

    def _listen(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        with self._process.stdout as lines:
            for line in lines:
                self._reports.put(json.loads(line))
        self._reports.put({"gone": True})

    def _told(self, timeout: float) -> dict[str, Any]:
        try:
            told = self._reports.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"the process of the agent says nothing; it printed: {self.log()}") from None
        if "gone" in told:
            self._reports.put(told)
            raise RuntimeError(f"the process of the agent has ended; it printed: {self.log()}")
        return told


class Victim:
    """A worker process that may be dead already."""

    def __init__(self, pid: int, told: Callable[[float], dict[str, Any]], log: Callable[[], str]) -> None:
        self.pid = pid
        self._told = told
        self._log = log
        self._code: int | None = None

    def code(self, timeout: float = 0.0) -> int | None:
        """How the process ended, a signal as a negative number; None while it lives."""
        if self._code is None:
            try:
                self._code = int(self._told(timeout)["exit"])
            except TimeoutError:
                return None
            if self._code not in ENDS:
                raise RuntimeError(f"a worker ended with {self._code}; it printed: {self._log()}")
        return self._code

    def stop(self) -> int:
        """How it ended; one that lives drains, and is killed where it does not end."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._code is None:
                with suppress(ProcessLookupError):  # it has ended, and its report is on the way
                    os.kill(self.pid, number)
            if (code := self.code(STOP_SECONDS)) is not None:
                return code
        raise TimeoutError(f"worker process {self.pid} does not end")


def target_of(agent: Handler) -> Target:
    """Where another process finds an agent. Raises `InvalidInput` for one that only this process has."""
    if isinstance(agent, str):
        module, _, attribute = agent.partition(":")
        known, file = bool(module and attribute), None
    else:
        module, attribute = getattr(agent, "__module__", ""), getattr(agent, "__qualname__", "")
        there = sys.modules.get(module)
        known = _found(there, attribute) is agent
        file = getattr(there, "__file__", None)
    if not known:
        allowed = "a function of a module, or a text such as 'my_agents:support' or 'my_agents:graph.resume'"
        raise InvalidInput("agent", f"({agent!r}) cannot be found by another process", allowed)
    return Target(module, file, attribute, tuple(sys.path))


def _found(module: object, attribute: str) -> object:
    """What another process finds there; a method of an object is not found by the name it has."""
    for name in attribute.split("."):
        module = getattr(module, name, None)
    return module


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")
