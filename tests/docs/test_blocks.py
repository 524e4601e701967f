"""Every block of every page does what the page says it does, on a real server."""

import os
from pathlib import Path

import pytest

from broker import embedded
from broker.testing import RunningServer
from tests.docs.pages import PAGES, ROOT, fences, name_of, text_of
from tests.docs.reader import Reader

NAMESPACES = ("airline", "tutorial", "default", "studio")
"""The namespaces that pages use."""

LIVE = tuple(
    pytest.param(
        page, id=name_of(page), marks=[pytest.mark.system] if "<!-- needs: curl -->" in text_of(page) else []
    )
    for page in PAGES
    if not any(f"<!-- {kind}: " in text_of(page) for kind in ("adapter", "recipe"))
    and any(any(fences(text_of(page), kind)) for kind in ("python", "sh"))
)


@pytest.mark.parametrize("page", LIVE)
def test_the_page_runs(
    page: Path,
    server: RunningServer,
    used_namespaces: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used_namespaces.extend(NAMESPACES)
    monkeypatch.setenv("BROKER_URL", server.url)
    monkeypatch.setenv("BROKER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    if "<!-- server: embedded -->" in text_of(page):
        monkeypatch.delenv("BROKER_URL")
    try:
        assert Reader(page, tmp_path, dict(os.environ)).read() > 0
    finally:
        embedded.down()
