"""Rounds of everybody, interleaved; whoever cannot run says why and the others go on."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.harness import Say, Trial, TrialFailed
from benchmarks.machine import machine
from benchmarks.series import FIGURES, between
from benchmarks.stats import summary

from .catalogue import BROKER, FLOOR, Rival
from .environments import HOME, CannotRun, interpreter, versions
from .trials import trial

FAST: Final = ("per_s", "server_us", "python_us")
AT_RATE: Final = ("p50_ms",)


@dataclass(slots=True)
class Entrant:
    """A rival in the contest: where its interpreter is, what its trials came to, and why it stopped, where it did."""

    rival: Rival
    python: Path | None = None
    server: str = ""
    cannot: str = ""
    fast: list[Trial] = field(default_factory=list)
    at_rate: list[Trial] = field(default_factory=list)

    def enter(self, home: Path) -> None:
        """Makes its environment."""
        self._try(lambda: setattr(self, "python", interpreter(self.rival, home)))

    def run(self, *, tiny: bool) -> None:
        """A trial as fast as it goes, and one at a rate."""
        python = self.python
        if self.cannot or python is None:
            return

        def both() -> None:
            plan, at_rate = self.rival.plans(tiny=tiny)
            one, self.server = trial(self.rival, python, plan)
            other, _ = trial(self.rival, python, at_rate)
            self.fast.append(one)
            self.at_rate.append(other)

        self._try(both)

    def _try(self, what: Callable[[], None]) -> None:
        try:
            what()
        except (CannotRun, TrialFailed, TimeoutError) as error:
            self.cannot = str(error) or type(error).__name__


def run(rivals: Sequence[Rival], rounds: int, *, tiny: bool, say: Say, home: Path = HOME) -> dict[str, Any]:
    """Everything that goes into the file. Raises `TrialFailed` where the floor itself does not run."""
    load = os.getloadavg()[0]
    entrants = [Entrant(rival) for rival in rivals]
    for one in entrants:
        say(f"environment: {one.rival.name}")
        one.enter(home)
    for number in range(rounds):
        shift = number % len(entrants)
        for one in entrants[shift:] + entrants[:shift]:
            one.run(tiny=tiny)
            say(f"round {number + 1}: {_in_short(one)}")
    floor = next(one for one in entrants if one.rival.name == FLOOR)
    if floor.cannot:
        raise TrialFailed(floor.cannot)
    return {
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine(),
        "python": sys.version.split()[0],
        "rounds": rounds,
        "tiny": tiny,
        "floor": FLOOR,
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
        "variants": {one.rival.name: _figures(one, floor) for one in entrants},
    }


def _figures(one: Entrant, floor: Entrant) -> dict[str, Any]:
    rival = one.rival
    found: dict[str, Any] = {"durable": rival.durable, "by_hand": rival.by_hand}
    if one.cannot or one.python is None:
        return found | {"cannot_run": one.cannot}
    found |= {"server": one.server, "versions": versions(rival, one.python)}
    found["missing"] = sum(each.missing for each in one.fast + one.at_rate)
    found["doubled"] = sum(each.doubled for each in one.fast + one.at_rate)
    for names, mine, its in ((FAST, one.fast, floor.fast), (AT_RATE, one.at_rate, floor.at_rate)):
        for name in names:
            values = summary([FIGURES[name](each) for each in mine])
            found[name] = {**values, "ratio": summary(between(mine, its, name) or [0.0])}
    return found


def _in_short(one: Entrant) -> str:
    name = f"{one.rival.name:<18}"
    if one.cannot:
        return f"{name} cannot run: {last_line(one.cannot)}"
    fast, p50 = one.fast[-1], FIGURES["p50_ms"](one.at_rate[-1])
    used = f"server {fast.server_us:6.0f} us, Python {fast.all_python_us:6.0f} us"
    return f"{name} {fast.per_s:7.0f}/s, {used}, {p50:.1f} ms"


def last_line(text: str) -> str:
    """What an error comes to: the last line of its text, which in a traceback is the error itself."""
    return text.strip().splitlines()[-1]


def faults(results: Mapping[str, Any]) -> list[str]:
    """What makes a run count for nothing: the floor or the broker lost or doubled a resume, or did not run."""
    found = []
    for name in (FLOOR, BROKER):
        figures = results["variants"].get(name, {})
        if "cannot_run" in figures:
            found.append(f"{name}: {figures['cannot_run']}")
        found += [
            f"{name} has {figures[word]} {word}" for word in ("missing", "doubled") if figures.get(word)
        ]
    return found
