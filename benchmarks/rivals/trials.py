"""Trials of rivals: the harness of the benchmarks, with every process started by the rival's own interpreter."""

import json
import multiprocessing
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.board import Board
from benchmarks.harness import (
    END_SECONDS,
    START_SECONDS,
    Player,
    Trial,
    TrialFailed,
    board_of,
    judge,
    run_to,
)
from benchmarks.job import ROLES, Plan
from benchmarks.machine import cpu_seconds

from .catalogue import Rival
from .servers import KINDS, Served

ROOT: Final = Path(__file__).resolve().parents[2]
TAIL: Final = 1500


class Program:
    """A process by `subprocess`, with the methods that a trial needs."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self._popen = popen
        self.pid: int | None = popen.pid

    def join(self, timeout: float | None = None) -> None:
        """Waits for its end."""
        try:
            self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._popen.poll() is None

    def terminate(self) -> None:
        """Asks it to end."""
        self._popen.terminate()

    def kill(self) -> None:
        """Ends it."""
        self._popen.kill()

    def close(self) -> None:
        """Nothing is held for it."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How the processes of one trial are started."""

    rival: Rival
    python: Path
    url: str
    plan: Plan
    log: Path

    def start(self, role: str, board: Board | None = None) -> Player:
        """One of them, with a pipe to speak through; what it prints goes into the log."""
        ours, theirs = multiprocessing.Pipe(duplex=False)
        told: dict[str, Any] = {
            "module": self.rival.module,
            "role": role,
            "url": self.url,
            "board": str(board.path) if board else "",
            "plan": asdict(self.plan),
            "pipe": theirs.fileno(),
        }
        with self.log.open("ab") as log:
            popen = subprocess.Popen(  # noqa: S603 - the interpreter of an environment that we made
                [self.python, "-m", "benchmarks.rivals.part", json.dumps(told)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
            )
        theirs.close()
        return Player(role, Program(popen), ours)


@contextmanager
def _told_from(log: Path) -> Iterator[None]:
    """Adds the end of the log to what a failed trial says."""
    try:
        yield
    except TrialFailed as failed:
        printed = log.read_text(encoding="utf-8", errors="replace")[-TAIL:] if log.exists() else ""
        raise TrialFailed(f"{failed}\n{printed}".strip()) from None


def trial(rival: Rival, python: Path, plan: Plan) -> tuple[Trial, str]:
    """One trial of one rival, and which server it was on. Raises `TrialFailed`, and `CannotRun` without that server."""
    with (
        TemporaryDirectory(prefix="rival-") as folder,
        _told_from(log := Path(folder) / "log"),
        KINDS[rival.server](python) as server,
        board_of(plan) as board,
    ):
        launch = Launch(rival, python, server.url, plan, log)
        _prepare(launch)
        with _players(launch, board) as players:
            used = _watch(rival.name, board, players, plan, server)
        return judge(rival.name, plan, board, used, {}), server.version


@contextmanager
def _players(launch: Launch, board: Board) -> Iterator[list[Player]]:
    """The three processes, connected and waiting; at the end they are told to stop, and end."""
    found: list[Player] = []
    try:
        found.extend(launch.start(role, board) for role in ROLES)
        for player in found:
            player.wait_ready()
        yield found
        board.stop()
        for player in found:
            if not player.check(END_SECONDS):
                raise TrialFailed(f"the process that has to {player.role} does not end")
    finally:
        board.stop()
        for player in found:
            player.end()


def _watch(name: str, board: Board, players: list[Player], plan: Plan, server: Served) -> dict[str, float]:
    """Lets the warm-up run and then the rest: processor seconds that the server and each process used for the rest."""

    def clocks() -> dict[str, float]:
        return {"server": server.seconds()} | {p.role: cpu_seconds(p.process.pid or 0) for p in players}

    if not run_to(board, plan.warm_up, players, plan):
        raise TrialFailed(f"{name} finished {board.finished} lifecycles of its warm-up only")
    before = clocks()
    run_to(board, board.count, players, plan)
    return {name: seconds - before[name] for name, seconds in clocks().items()}


def _prepare(launch: Launch) -> None:
    player = launch.start("prepare")
    try:
        if not player.check(START_SECONDS):
            raise TrialFailed(f"{launch.rival.name} does not get its server ready")
    finally:
        player.end()
