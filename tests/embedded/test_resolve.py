"""Which URL is used: the given one, else BROKER_URL, else the embedded server's."""

from datetime import timedelta
from pathlib import Path

import pytest

from broker import embedded
from broker.errors import InvalidInput
from tests.embedded.conftest import gone

THEIRS = "redis://127.0.0.1:1/0"


def test_broker_url_wins_over_the_embedded_server(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_HOME", str(home))
    monkeypatch.setenv("BROKER_URL", THEIRS)
    assert embedded.resolve() == THEIRS
    assert not home.exists()


def test_a_given_url_wins_over_broker_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_URL", "redis://127.0.0.1:2/0")
    assert embedded.resolve(THEIRS) == THEIRS


def test_with_neither_the_embedded_server_is_started(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_HOME", str(home))
    monkeypatch.setenv("BROKER_URL", "")
    url = embedded.resolve()
    found = embedded.info()
    assert found is not None
    assert found.url == url == embedded.resolve()
    assert found.home == home.resolve()


def test_the_home_is_in_the_platforms_folder_for_state(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("BROKER_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert embedded.default_home() == tmp_path / ".local/state/broker"
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    assert embedded.default_home() == tmp_path / ".local/state/broker"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert embedded.default_home() == tmp_path / "state/broker"
    monkeypatch.setattr("sys.platform", "darwin")
    assert embedded.default_home() == tmp_path / "Library/Application Support/broker"
    assert list(tmp_path.iterdir()) == []


def test_a_home_may_be_a_link(home: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home)
    found = embedded.ensure(link)
    assert found.home == home.resolve()
    assert embedded.ensure(home).pid == found.pid


def test_an_idle_time_that_is_no_number_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_IDLE_SECONDS", "soon")
    with pytest.raises(InvalidInput, match="BROKER_IDLE_SECONDS is no number"):
        embedded.ensure(home)
    assert embedded.ensure(home, idle=timedelta(0)).started
    gone(home)
