"""The cases of the suite, which are the rows of docs/reference/adapters.md, and what a subject is."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

from .world import World

CASES: Final[dict[str, tuple[str, str]]] = {
    "approve": ("Paused in one process, approved, resumed in another", "the call runs once, elsewhere"),
    "reject": ("Rejected with a reason", "nothing runs; the agent is told who and why"),
    "edit": ("Approved with other arguments", "the edited call runs"),
    "external": ("The result comes from outside", "it stands for the call"),
    "in_a_row": ("Two pauses in a row in one thread", "one after the other"),
    "three_at_once": ("Three in parallel, answered together", "each runs once"),
    "three_one_by_one": ("Three in parallel, answered one by one", "each runs once, after the last answer"),
    "duplicate": ("The same answer twice", "runs once; the second is a replay"),
    "flipped": ("Approved, then rejected", "the first answer holds; the second is told who won"),
    "late": ("An answer after the run has ended", "nothing runs; told that it is decided"),
    "unknown_id": ("An answer to an id that nobody asked", "nothing runs; told that it is unknown"),
    "wrong_kind": ("A kind of answer that is not offered", "refused before the framework sees it"),
    "wrong_shape": ("An answer of the wrong shape", "refused before the framework sees it"),
    "empty_answers": ("`None`, `False`, `{}` and `''` as answers", "delivered as they are, once"),
    "race": ("Two workers at once", "runs once"),
    "killed": ("kill -9 after the effect, before it is recorded", "delivered again, under the same key"),
    "new_input": ("New input on a paused thread", "the old question ends as superseded"),
    "nested": ("Nested agents, the same call id twice", "two questions, each answered for itself"),
    "other_build": ("Another version, agent or set of tools", "not given to that worker; record as it was"),
    "unreadable": ("A pause that cannot be read back", "not published"),
    "expired": ("The deadline passes", "expired, with words of its own"),
    "restart": ("The server restarts with its data", "the pause is there and goes on"),
    "restart_empty": ("The server restarts without its data", "an answer is told that the id is unknown"),
    "too_large": ("A state or question above the limit", "refused by name; nothing is published"),
    "unserializable": ("A state that cannot be serialized", "refused; nothing is published"),
    "unsupported_version": ("The package in another major version", "an error that names the range"),
    "changed_arguments": ("Arguments changed after the answer", "what was approved runs, or nothing"),
    "swallowed": ("The pause swallowed by `except Exception`", "the run pauses all the same"),
}
"""By id: what happens, and what an adapter makes of it."""


class Alone(NamedTuple):
    """What the framework does in a case without the broker: the processes that show it, and their last word."""

    phases: tuple[str, ...]
    word: str


Handler = Callable[[Any], Any]


class Subject(Protocol):
    """A module of `subjects`. Scenarios are played by the stub model of the framework; a tool `pay(amount)` is gated.

    `pay`: one call of the input's amount. `in_a_row`: pay, and when that is done pay again. `three`: amounts 1, 2 and 3
    in one turn. `nested`: two agents inside of the first, each with a call of the same id, amounts 1 and 2.
    `external`: a call whose result comes from outside. `question`: asks, and returns the answer. `swallow`: as pay,
    inside `except Exception`. `large` and `unserializable`: a pause that cannot be stored. `unreadable`: a pause that
    its loader cannot read. The result of a run is the list of what the calls came to, as the model is told.
    """

    PACKAGES: tuple[str, ...]
    """What it needs; the first one's version is the column's head."""
    CANNOT: Mapping[str, str]
    """Cases it has none of, and why; shown by a test of its own (`test_<adapter>.py`) that carries the case's id."""
    ALONE: Mapping[str, Alone]
    """What the framework does without the broker."""

    def handler(self, scenario: str, world: World) -> Handler:
        """What a worker is given for the agent."""
        ...

    def alone(self, case: str, phase: str, world: World) -> str:
        """One phase of a case without the broker, in a process of its own; returns a word."""
        ...


def tried(subject: Subject) -> set[str]:
    """The cases that `test_cases.py` plays with a subject: all but those that it has none of, or a test of its own."""
    return set(CASES) - set(subject.CANNOT) - set(getattr(subject, "OWN", ()))


def subject_of(module: ModuleType) -> Subject:
    """The subject behind a module."""
    return module
