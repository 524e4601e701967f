"""The how-to of the adapter under test does what it says, and so does its example: where its packages are.

A page says `<!-- extra: NAME -->` where it needs them; the tests of the documentation pass over it then.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker import embedded
from broker.testing import RunningServer
from tests.docs.pages import PAGES, ROOT, name_of, text_of
from tests.docs.reader import Reader

from .conftest import ADAPTER

MINE = tuple(page for page in PAGES if f"<!-- extra: {ADAPTER} -->" in text_of(page))
EXAMPLES = tuple((ROOT / "docs" / "examples").glob(f"{ADAPTER}*.py"))


@pytest.fixture
def surroundings(
    server: RunningServer,
    namespace: str,
    used_namespaces: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """An empty folder to be in, and the server to be used."""
    assert namespace
    used_namespaces.extend(("airline", f"example-{ADAPTER}"))
    monkeypatch.setenv("BROKER_URL", server.url)
    monkeypatch.setenv("BROKER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", MINE, ids=name_of)
def test_the_page_runs(page: Path, surroundings: Path) -> None:
    assert Reader(page, surroundings, dict(os.environ)).read() > 0


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_the_example_runs(example: Path, surroundings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command, on the embedded server; a process is killed in its middle, and another one ends the run."""
    monkeypatch.delenv("BROKER_URL")
    try:
        done = subprocess.run(
            [sys.executable, example],
            cwd=surroundings,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    finally:
        embedded.down()
    assert done.returncode == 0, done.stdout + done.stderr
    killed, ended = [int(found) for found in processes(done.stdout)]
    assert killed != ended


def processes(printed: str) -> list[str]:
    """The process that was killed, and the one that ended the run, as the example says."""
    words = printed.split()
    return [words[words.index(word) + 1] for word in ("killed:", "ended:")]
