"""Files that several processes append lines to, and the record of every call to the broker.

A line is one write to a file opened for appending: lines of different processes do not mix, and what a process wrote
before it was killed is there.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from ..telemetry import Observation

FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)

FIELDS: Final = (
    "process",
    "op",
    "session_id",
    "run_id",
    "interrupt_id",
    "operation_id",
    "t_call",
    "t_return",
    "outcome",
    "winner",
    "fence",
    "error",
)
"""What a line of a history holds, in this order. Times are monotonic nanoseconds, the same in all processes."""

RECORDED: Final = tuple(field.name for field in fields(Observation))

compact: Final = json.JSONEncoder(separators=(",", ":")).encode
"""One object as a line."""


class Ledger:
    """One process's end of a shared file of lines."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, FLAGS, 0o600)

    def add(self, line: str) -> None:
        """Appends one line, whole. It is not forced to the disk: a crash of the machine is not what is tried here."""
        os.write(self._file, f"{line}\n".encode())

    def close(self) -> None:
        """Closes this end."""
        os.close(self._file)


def lines(path: Path) -> list[str]:
    """The lines of a file; none where it was never made."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


class Recorder:
    """An observer that writes down each call of its process twice: when it is sent, and what came of it."""

    def __init__(self, path: Path) -> None:
        self._ledger = Ledger(path)

    def sent(self, calls: Sequence[Observation], /) -> None:
        """Writes the calls down as not returned yet: that line stays the last one when the process is killed."""
        self._write(calls)

    def told(self, calls: Sequence[Observation], /) -> None:
        """Writes down what came of them."""
        self._write(calls)

    def _write(self, calls: Sequence[Observation]) -> None:
        for call in calls:
            facts = {name: getattr(call, name) for name in RECORDED}
            self._ledger.add(compact(facts))


def merge(recorded: Iterable[tuple[str, Path]], target: Path) -> int:
    """Writes one history from what each process recorded (name and file), by `t_call`; how many calls are in it.

    A call that never returned, since its process was killed, has no `t_return` and the error `unsure`: it may have
    happened.
    """
    calls = sorted(
        (line for name, path in recorded for line in _calls(name, path)), key=lambda line: line["t_call"]
    )
    text = "".join(f"{compact(call)}\n" for call in calls)
    target.write_text(text, encoding="utf-8")
    return len(calls)


def _calls(process: str, path: Path) -> Iterator[dict[str, Any]]:
    latest: dict[int, dict[str, Any]] = {}
    for line in lines(path):
        record = json.loads(line)
        latest[record["number"]] = record
    for record in latest.values():
        ids = record["interrupt_ids"]
        record |= {"process": process, "interrupt_id": ids[0] if len(ids) == 1 else None}
        if record["t_return"] is None:
            record["error"] = "unsure"
        call = {name: record[name] for name in FIELDS}
        # A suspension may ask several questions at once; then they are all named in a field of their own.
        yield call | {"interrupt_ids": ids} if len(ids) > 1 else call
