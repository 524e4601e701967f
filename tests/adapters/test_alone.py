"""What the framework does in a case without the broker, as its subject says it does: each phase in a process."""

import json

import pytest

from .cases import Subject
from .child import Child
from .conftest import ADAPTER, the_subject
from .world import World


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("case", sorted(the_subject().ALONE))


def test_alone(case: str, subject: Subject, world: World, played: list[int]) -> None:
    phases, word = subject.ALONE[case]
    last = ""
    for phase in phases:
        child = Child({"subject": ADAPTER, "case": case, "phase": phase, "folder": str(world.folder)})
        played.append(child.pid)
        assert child.wait() == 0, child.log
        last = json.loads(child.log.splitlines()[-1])
    assert last == word
    assert len(set(played)) == len(phases)
    played += sorted({one.pid for one in world.effects} - set(played))  # forks that died, or that raced
