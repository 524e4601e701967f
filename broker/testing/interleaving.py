"""Races in an order that a seed decides, on a real server. Imports the blocking broker.

Every party stops before each of its calls. One party runs at a time: where it is about to send a script call, which is
everything that can change something, the seed decides who goes on. What lies between two such places (reads, the
test's own code) runs undisturbed, so the same seed gives the same order.
"""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from .._sync.client import Broker
from ..errors import BrokerError
from ..telemetry import Observation, Silent

Party: TypeAlias = Callable[[Broker], Any]
"""What one of those who race does, with a broker of its own. It must not wait for the others."""

STUCK_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Interleaving:
    """How a race went: the seed, the order of the calls, and what each party returned or was refused with."""

    seed: int
    order: tuple[str, ...]
    results: Mapping[str, Any]


class Turns:
    """Whose turn it is."""

    def __init__(self, seed: int, names: Sequence[str]) -> None:
        self.order: list[str] = []
        self._chance = random.Random(seed)  # noqa: S311 - a race to be repeated, nothing secret
        self._changed = threading.Condition()
        self._running = ""
        self._live = set(names)
        self._waiting: dict[str, str] = {}

    def wait(self, name: str, what: str) -> None:
        """Waits, as this party, until it is its turn to do this."""
        with self._changed:
            self._stop(name)
            self._waiting[name] = what
            self._changed.wait_for(lambda: self._running == name)

    def leave(self, name: str) -> None:
        """This party is through."""
        with self._changed:
            self._live.discard(name)
            self._stop(name)

    def direct(self) -> None:
        """Gives turns until all are through. Raises TimeoutError where one does not come back from its turn."""
        with self._changed:
            while True:
                if not self._changed.wait_for(self._is_settled, STUCK_SECONDS):
                    raise TimeoutError(
                        f"{self._running} does not end its turn: does it wait for another party?"
                    )
                if not self._live:
                    return
                self._running = self._chance.choice(sorted(self._live))
                self.order.append(f"{self._running} {self._waiting.pop(self._running)}")
                self._changed.notify_all()

    def _is_settled(self) -> bool:
        return not self._running and self._waiting.keys() == self._live

    def _stop(self, name: str) -> None:
        if self._running == name:
            self._running = ""
        self._changed.notify_all()


class _Gate(Silent):
    """Stops a party before each of its calls; threads of its own that renew leases pass."""

    def __init__(self, turns: Turns, name: str) -> None:
        self._turns = turns
        self._name = name
        self._thread: int | None = None

    def open(self) -> None:
        """From now on the calls of this thread take turns."""
        self._thread = threading.get_ident()
        self._turns.wait(self._name, "begins")

    def sent(self, calls: Sequence[Observation], /) -> None:
        """The calls that are about to be sent."""
        if threading.get_ident() == self._thread:
            self._turns.wait(self._name, calls[0].op)


def interleave(connect: Callable[[Silent], Broker], seed: int, parties: Mapping[str, Party]) -> Interleaving:
    """Runs the parties, each in a thread with a broker of its own, in the order that the seed gives.

    A `BrokerError` that a party ends with is its result; anything else is raised when all have ended.
    """
    turns, results = Turns(seed, list(parties)), dict[str, Any]()
    faults: list[Exception] = []

    def play(name: str, party: Party) -> None:
        gate = _Gate(turns, name)
        try:
            with connect(gate) as broker:
                gate.open()
                results[name] = party(broker)
        except BrokerError as error:
            results[name] = error
        except Exception as error:  # noqa: BLE001 - raised below
            faults.append(error)
        finally:
            turns.leave(name)

    threads = [threading.Thread(target=play, args=each, daemon=True) for each in parties.items()]
    for thread in threads:
        thread.start()
    turns.direct()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return Interleaving(seed, tuple(turns.order), {name: results[name] for name in parties})
