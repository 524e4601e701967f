"""The example of docs/examples runs as it stands."""

import os
import subprocess
import sys
from pathlib import Path

from broker.testing import RunningServer
from tests.worker.fleet import ROOT


def test_the_example_runs(server: RunningServer, used_namespaces: list[str], tmp_path: Path) -> None:
    used_namespaces.append("example-functions")
    done = subprocess.run(
        [sys.executable, ROOT / "docs/examples/functions.py"],
        cwd=tmp_path, env=os.environ | {"BROKER_URL": server.url}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    asked, cancels, killed, result = done.stdout.splitlines()
    assert asked.startswith("approve ")
    assert cancels.split()[:2] == killed.split()[:2]
    assert result.startswith("cancelled R7, says process ")
    assert result.split()[-1] != killed.split()[1]
