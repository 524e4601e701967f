from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from broker.errors import StaleLease
from broker.store.commands.runs import Place
from broker.store.commands.values import Command, text

from ..world import World

T = TypeVar("T")


class Key(NamedTuple):
    """Which row: what is done, to which record, in which state, and what is true beside it."""

    operation: str
    record: str
    found: str
    guard: str


@dataclass(frozen=True, slots=True)
class Case:
    """A row that is set up: `look` gives the state of its record, `act` does it and gives what the caller is told."""

    look: Callable[[], str]
    act: Callable[[], str]


SetUp = Callable[[World], Case]

ROWS: Final[dict[Key, SetUp]] = {}
GUARDED: Final[dict[str, Key]] = {}
"""Guard of the scripts -> the row that does not hold without it."""


def row(operation: str, record: str, found: str, guard: str, guards: str = "") -> Callable[[SetUp], SetUp]:
    """Sets up that row of the table, which does not hold without these `guards` of the scripts."""

    def note(set_up: SetUp) -> SetUp:
        key = Key(operation, record, found, guard)
        assert key not in ROWS, key
        ROWS[key] = set_up
        GUARDED.update(dict.fromkeys(guards.split(), key))
        return set_up

    return note


def of_run(w: World, place: Place, act: Callable[[], str]) -> Case:
    """A case about a run."""
    return Case(lambda: w.state(place), act)


def of_interrupt(w: World, interrupt: str, act: Callable[[], str]) -> Case:
    """A case about an interrupt."""
    return Case(lambda: w.settled(interrupt), act)


def of_call(w: World, place: Place, act: Callable[[], str]) -> Case:
    """A case about the call record `c1` of a run."""
    return Case(lambda: w.call(place), act)


def said(w: World, command: Command[T]) -> str:
    """The word that a script says."""
    heard: Command[str] = Command(
        command.script, w.p, command.items, lambda _, reply: text(reply[0]), command.oom
    )
    return w.do(heard)


def told(call: Callable[[], object]) -> str:
    """What the caller of something under a lease is told: `ok`, or that the lease is another's."""
    try:
        call()
    except StaleLease as error:
        return error.code
    return "ok"
