"""Processes of a phase: forks of it, which die in the middle, or are at work at the same time."""

import os
import signal
from collections.abc import Callable
from typing import Final

from broker.testing import wait_until

from .world import PATIENCE, World

TWO: Final = 2


def fork(work: Callable[[], object]) -> int:
    """The id of a process that does this and ends; its exit code is 1 where that raised."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def exit_code(pid: int) -> int:
    """Its exit code, when it has ended."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed(work: Callable[[], object], world: World) -> str:
    """Has a process do this, and kills it when a tool has had its effect."""
    world.hold()
    victim = fork(work)
    wait_until(lambda: world.effects, PATIENCE, what="the tool has had its effect")
    os.kill(victim, signal.SIGKILL)
    world.let_go()
    return "killed" if exit_code(victim) < 0 else "survived"


def race(work: Callable[[], object], world: World) -> str:
    """Has two processes do this at the same time: neither goes on before both tools have had their effect."""
    world.hold()
    both = [fork(work), fork(work)]
    wait_until(lambda: len(world.effects) == TWO, PATIENCE, what="both tools have had their effect")
    world.let_go()
    codes = [exit_code(pid) for pid in both]
    return "runs twice" if codes == [0, 0] else f"runs twice; exit codes {codes}"
