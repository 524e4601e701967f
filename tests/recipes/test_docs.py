"""The page of a recipe does what it says, in the environment of its framework, in fewer lines than it promises."""

import os
from pathlib import Path

import pytest

from broker.testing import RunningServer
from tests.docs.pages import PAGES, ROOT, fences, name_of, text_of
from tests.docs.reader import Reader

from .conftest import RECIPE
from .kitchen import LONGEST

MINE = [page for page in PAGES if f"<!-- recipe: {RECIPE} -->" in text_of(page)]


def test_there_is_a_page() -> None:
    assert len(MINE) == 1


@pytest.mark.parametrize("page", MINE, ids=name_of)
def test_the_page_runs(
    page: Path, server: RunningServer, used_namespaces: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    used_namespaces.append("default")
    monkeypatch.setenv("BROKER_URL", server.url)
    monkeypatch.setenv("BROKER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(ROOT))))
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert Reader(page, tmp_path, dict(os.environ)).read() > 0


@pytest.mark.parametrize("page", MINE, ids=name_of)
def test_its_blocks_are_short(page: Path) -> None:
    assert max(len(block.body.splitlines()) for block in fences(text_of(page), "python")) < LONGEST
