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

START_SECONDS: Final = 120.0
END_SECONDS: Final = 15.0
PRELOADED: Final = ["redis.asyncio", "broker", "broker.testing"]


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

    def end(self, seconds: float = END_SECONDS) -> None:
        """Waits a while for its end, then makes one."""
        self.process.join(seconds)
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


def server(appendfsync: str = "everysec") -> ServerProcess:
    """A server of a trial's own, on loopback, with the flags that every server of ours has."""
    return ServerProcess(config={"appendfsync": appendfsync}, port=0)


def trial(variant: str, plan: Plan) -> Trial:
    """One trial of one variant on a fresh server. Raises `TrialFailed`; what is not resumed, or twice, is counted."""
    with server(plan.appendfsync) as one:
        return trial_on(one, variant, plan)


def trial_on(one: ServerProcess, variant: str, plan: Plan) -> Trial:
    """The same on a server that is there."""
    url, module = one.tcp_url, load(variant)
    module.prepare(url)
    with board_of(plan) as board:
        with players(variant, url, board, plan) as all_of_them:
            if not run_to(board, plan.warm_up, all_of_them, plan):
                raise TrialFailed(f"{variant} finished {board.finished} lifecycles of its warm-up only")
            before = _clocks(one, all_of_them)
            run_to(board, board.count, all_of_them, plan)
            used = {name: now - before[name] for name, now in _clocks(one, all_of_them).items()}
        facts = module.facts(url, board.count, plan.mark)
        return judge(variant, plan, board, used, facts)


def _clocks(one: ServerProcess, all_of_them: Sequence["Player"]) -> dict[str, float]:
    """Processor seconds so far of the server and of each role, all its processes together."""
    found = {"server": cpu_seconds(one.pid)} | dict.fromkeys(ROLES, 0.0)
    for each in all_of_them:
        found[each.role] += cpu_seconds(each.process.pid or 0)
    return found


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
    """The processes of all roles, connected and waiting; at the end they are told to stop, and end."""
    found: list[Player] = []
    try:
        for role in ROLES:
            given = (variant, role, url, str(board.path), plan)
            found += [player(role, play, *given, place=place) for place in range(plan.processes(role))]
        for one in found:
            one.wait_ready()
        yield found
        board.stop()
        for one in found:
            if not one.check(END_SECONDS):
                raise TrialFailed(f"the process that has to {one.role} does not end")
    finally:
        board.stop()
        for one in found:
            one.end()


def player(role: str, target: Callable[..., None], *given: Any, **named: Any) -> Player:
    """A new process that does `target(*given, pipe, **named)`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # or each process would spend a second on its imports
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(*given, theirs), kwargs=named, daemon=True)
    process.start()
    theirs.close()
    return Player(role, process, ours)


def run_to(board: Board, number: int, all_of_them: Sequence[Player], plan: Plan) -> bool:
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


def judge(variant: str, plan: Plan, board: Board, used: dict[str, float], facts: dict[str, float]) -> Trial:
    """What a trial came to, with its resumes that are missing or doubled."""
    measured = range(plan.warm_up, board.count)
    resumed = [n for n in measured if board.resumed(n)]
    last = max((board.resumed_at[n] for n in resumed), default=time.monotonic_ns())
    seconds = max(last - board.began_at, 1) / 1e9
    per_lifecycle = {name: spent / plan.count * 1e6 for name, spent in used.items()}
    every = [board.resumed(n) for n in range(board.count)]
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


def rounds(
    plans: dict[str, Plan], count: int, say: Say, do: Callable[[str, Plan], Trial] = trial
) -> dict[str, list[Trial]]:
    """So many rounds, each with one trial of every variant; each round begins with another of them."""
    names = list(plans)
    found: dict[str, list[Trial]] = {name: [] for name in names}
    for number in range(count):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            one = do(name, plans[name])
            found[name].append(one)
            say(f"  round {number + 1}: {name:<16} {_in_short(one)}")
    return found


def _in_short(one: Trial) -> str:
    faults = f", {one.missing} missing, {one.doubled} doubled" if one.missing or one.doubled else ""
    return (
        f"{one.per_s:8.0f}/s, server {one.server_us:6.0f} us, Python {one.all_python_us:6.0f} us "
        f"for each lifecycle{faults}"
    )


Rounds = dict[str, list[Trial]]
Facts = dict[str, Any]
