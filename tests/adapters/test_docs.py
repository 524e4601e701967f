"""The how-to of the adapter does what it says, in the environment of its framework."""

import os
from pathlib import Path

import pytest

from broker.testing import RunningServer
from tests.docs.pages import PAGES, ROOT, fences, name_of, text_of
from tests.docs.reader import Reader

from .conftest import ADAPTER

MINE = [page for page in PAGES if f"<!-- adapter: {ADAPTER} -->" in text_of(page)]
LONGEST = 40


@pytest.mark.parametrize("page", MINE, ids=name_of)
def test_the_page_runs(
    page: Path,
    server: RunningServer,
    used_namespaces: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used_namespaces.extend(("default", "airline", f"example-{ADAPTER}"))
    monkeypatch.setenv("BROKER_URL", server.url)
    monkeypatch.setenv("BROKER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(ROOT))))
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert Reader(page, tmp_path, dict(os.environ)).read() > 0


@pytest.mark.parametrize("page", MINE, ids=name_of)
def test_its_blocks_are_short(page: Path) -> None:
    longest = max(len(block.body.splitlines()) for block in fences(text_of(page), "python"))
    assert longest <= LONGEST
