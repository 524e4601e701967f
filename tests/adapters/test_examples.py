"""The example of the adapter is one command, in the environment of its framework."""

import os
import subprocess
import sys
from pathlib import Path

from broker import embedded
from tests.docs.pages import ROOT

from .conftest import ADAPTER

PROOF = {"langgraph": "under 1 idempotency key", "functions": "says process"}
"""What an example says at its end, where that is not who ended the run."""


def test_the_example_is_one_command(tmp_path: Path) -> None:
    """On the embedded server, with a kill -9 in the middle."""
    environment = {**os.environ, "BROKER_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    environment.pop("BROKER_URL", None)
    (example,) = (ROOT / "docs" / "examples").glob(f"{ADAPTER}*.py")  # not by the name of a package
    try:
        done = subprocess.run(
            [sys.executable, str(example)],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        embedded.down(tmp_path / "home")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed" in done.stdout
    assert PROOF.get(ADAPTER, "ended") in done.stdout
