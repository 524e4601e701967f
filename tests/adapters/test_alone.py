"""What the framework does in a case without the broker, as its subject says it does: each phase in a process."""

import json
import subprocess
import sys

import pytest

from tests.worker.fleet import ROOT

from .cases import Subject
from .conftest import ADAPTER, the_subject
from .world import World


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("case", sorted(the_subject().ALONE))


def test_alone(case: str, subject: Subject, world: World, played: list[int]) -> None:
    phases, word = subject.ALONE[case]
    last = ""
    for phase in phases:
        options = {"subject": ADAPTER, "case": case, "phase": phase, "folder": str(world.folder)}
        done = subprocess.run(
            [sys.executable, "-m", "tests.adapters.child", json.dumps(options)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout.strip(), done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
        played.append(said["pid"])
        last = said["word"]
    assert last == word
    assert len(set(played)) == len(phases)
