"""Trials: one variant, one fresh server, three processes, a warm-up, and what was used and counted afterwards."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Final, Protocol

from broker.testing import ServerProcess, wait_until

from .board import Board
from .job import ROLES, Plan, load, play
from .machine import cpu_seconds

Say = Callable[[str], None]

START_SECONDS: Final = 60.0
END_SECONDS: Final = 15.0


class TrialFailed(Exception):
    """A process of a trial ended with an error, or did not do its part in time."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What one trial came to. Times of the processor are microseconds per lifecycle."""

    variant: str
    per_s: float
    server_us: float
    python_us: dict[str, float]
    missing: int
    doubled: int
    waits_ms: list[float] = field(repr=False)
    """From just before the answer is sent until the run goes on in the other process, one for each lifecycle."""
    facts: dict[str, float]

    @property
    def all_python_us(self) -> float:
        """The three processes together."""
        return sum(self.python_us.values())


class Process(Protocol):
    """What a trial needs of a process, however it was started."""

    @property
    def pid(self) -> int | None:
        """Its number."""

    def join(self, timeout: float | None = None) -> None:
        """Waits for its end."""

    def is_alive(self) -> bool:
        """Whether it has not ended."""

    def terminate(self) -> None:
        """Asks it to end."""

    def kill(self) -> None:
        """Ends it."""

    def close(self) -> None:
        """Gives back what is held for it."""


class Player:
    """A process of a trial and the pipe it speaks through: it is ready once, and says at its end what went wrong."""

    def __init__(self, role: str, process: Process, pipe: Connection) -> None:
        self.role = role
        self.process = process
        self._pipe = pipe
        self._ended = False

    def wait_ready(self) -> None:
        """Returns when it is connected. Raises `TrialFailed`."""
        if (said := self._hear(START_SECONDS)) != "ready":
            raise TrialFailed(f"the process that has to {self.role} failed:\n{said}")

    def check(self, seconds: float = 0.0) -> bool:
        """Whether it has ended well, looking so long. Raises `TrialFailed` where it ended with an error."""
        if not self._ended and self._pipe.poll(seconds):
            if said := self._hear(0):
                raise TrialFailed(f"the process that has to {self.role} failed:\n{said}")
            self._ended = True
        return self._ended

    def end(self) -> None:
        """Waits a while for its end, then makes one."""
        self.process.join(END_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()
        self._pipe.close()

    def _hear(self, seconds: float) -> str:
        try:
            if self._pipe.poll(seconds):
                return str(self._pipe.recv())
        except EOFError:
            raise TrialFailed(f"the process that has to {self.role} is gone without a word") from None
        raise TrialFailed(f"the process that has to {self.role} says nothing")


def server() -> ServerProcess:
    """A server of a trial's own, on loopback, with the flags that every server of ours has."""
    return ServerProcess(port=0)


def trial(variant: str, plan: Plan) -> Trial:
    """One trial of one variant. Raises `TrialFailed`; a run that was not resumed, or twice, is counted instead."""
    with server() as one, board_of(plan) as board:
        url = one.tcp_url
        load(variant).prepare(url)
        with players(variant, url, board, plan) as all_of_them:
            pids = {"server": one.pid} | {each.role: each.process.pid or 0 for each in all_of_them}
            if not _run(board, plan.warm_up, all_of_them, plan):
                raise TrialFailed(f"{variant} finished {board.finished} lifecycles of its warm-up only")
            before = {name: cpu_seconds(pid) for name, pid in pids.items()}
            _run(board, board.count, all_of_them, plan)
            used = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
        return _judge(variant, plan, board, used, load(variant).facts(url, board.count))


@contextmanager
def board_of(plan: Plan) -> Iterator[Board]:
    """A board for one trial."""
    board = Board.create(plan.warm_up + plan.count)
    try:
        yield board
    finally:
        board.close()


@contextmanager
def players(variant: str, url: str, board: Board, plan: Plan) -> Iterator[list[Player]]:
    """The three processes, connected and waiting; at the end they are told to stop, and end."""
    context = multiprocessing.get_context("spawn")
    found: list[Player] = []
    try:
        for role in ROLES:
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(
                target=play, args=(variant, role, url, str(board.path), plan, theirs), daemon=True
            )
            process.start()
            theirs.close()
            found.append(Player(role, process, ours))
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


def _run(board: Board, number: int, all_of_them: Sequence[Player], plan: Plan) -> bool:
    """Lets so many lifecycles begin and waits; whether they are finished, with whatever is missing counted later."""
    board.allowed = number

    def finished() -> bool:
        for player in all_of_them:
            player.check()
        return board.finished >= number

    try:
        return wait_until(finished, plan.seconds)
    except TimeoutError:
        return False


def _judge(variant: str, plan: Plan, board: Board, used: dict[str, float], facts: dict[str, float]) -> Trial:
    measured = range(plan.warm_up, board.count)
    resumed = [n for n in measured if board.resumed[n]]
    last = max((board.resumed_at[n] for n in resumed), default=time.monotonic_ns())
    seconds = max(last - board.began_at, 1) / 1e9
    per_lifecycle = {name: spent / plan.count * 1e6 for name, spent in used.items()}
    every = list(board.resumed)
    return Trial(
        variant=variant,
        per_s=len(resumed) / seconds,
        server_us=per_lifecycle.pop("server"),
        python_us=per_lifecycle,
        missing=sum(times == 0 for times in every),
        doubled=sum(times > 1 for times in every),
        waits_ms=[(board.resumed_at[n] - board.answered_at[n]) / 1e6 for n in resumed],
        facts=facts,
    )


def rounds(plans: dict[str, Plan], count: int, say: Say) -> dict[str, list[Trial]]:
    """So many rounds, each with one trial of every variant; each round begins with another of them."""
    names = list(plans)
    found: dict[str, list[Trial]] = {name: [] for name in names}
    for number in range(count):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            one = trial(name, plans[name])
            found[name].append(one)
            say(f"  round {number + 1}: {name:<12} {_in_short(one)}")
    return found


def _in_short(one: Trial) -> str:
    faults = f", {one.missing} missing, {one.doubled} doubled" if one.missing or one.doubled else ""
    return (
        f"{one.per_s:8.0f}/s, server {one.server_us:6.0f} us, Python {one.all_python_us:6.0f} us "
        f"for each lifecycle{faults}"
    )


Rounds = dict[str, list[Trial]]
Facts = dict[str, Any]
