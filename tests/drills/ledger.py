"""What the processes of a drill did in the world, as lines of one file that outlives whoever wrote them."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from broker.telemetry import Observation, Silent


class Line(NamedTuple):
    """One thing that happened: an `effect`, or that the server has `recorded` it. `call` is that of the run."""

    what: str
    run: str
    call: str
    key: str
    fence: int
    pid: int


class Ledger:
    """The file. A line is written whole or not at all, whoever is killed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, line: Line) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def lines(self) -> list[Line]:
        if not self.path.exists():
            return []
        whole = self.path.read_text().rpartition("\n")[0]
        return [Line(*json.loads(line)) for line in whole.splitlines()]

    def unrecorded(self) -> list[Line]:
        """Effects that nobody has seen recorded: those of calls that are running, and of workers that died in them."""
        lines = self.lines()
        recorded = {(line.run, line.call) for line in lines if line.what == "recorded"}
        return [line for line in lines if line.what == "effect" and (line.run, line.call) not in recorded]

    def doubled(self, killed: set[int]) -> list[str]:
        """Effects that came twice and must not have: after the record, under another key, or with nobody dead between.

        A call whose worker died after it was begun and before it was recorded may have run: it runs again under its
        key, and this is the one way.
        """
        found, calls = [], defaultdict[tuple[str, str], list[Line]](list)
        for line in self.lines():
            calls[line.run, line.call].append(line)
        for (run, call), lines in calls.items():
            effects = [line for line in lines if line.what == "effect"]
            words = [line.what for line in lines]
            if "recorded" in words and "effect" in words[words.index("recorded") :]:
                found.append(f"{run} {call} after it was recorded")
            if len({line.key for line in effects}) > 1:
                found.append(f"{run} {call} under several keys")
            if {line.pid for line in effects[:-1]} - killed:
                found.append(f"{run} {call} though nobody died in it")
        return found


class Recording(Silent):
    """Writes down what the server said it has recorded."""

    def __init__(self, ledger: Ledger, pid: int) -> None:
        self._ledger = ledger
        self._pid = pid

    def told(self, calls: Sequence[Observation], /) -> None:
        for one in calls:
            if one.op == "end" and one.outcome == "accepted":
                run, call, fence = one.run_id or "", one.operation_id or "", one.fence or 0
                self._ledger.add(Line("recorded", run, call, "", fence, self._pid))


async def takes(seconds: float) -> None:
    """Work that takes so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()
