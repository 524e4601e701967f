"""Another user of the machine cannot get in."""

import os
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from broker import embedded
from broker.embedded.resp import Link, ReplyError
from broker.errors import InvalidInput
from tests.embedded.conftest import gone, read, write

NOBODY = 65534


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def socket_of(found: embedded.Embedded) -> str:
    return found.address.removeprefix("unix://")


@pytest.fixture
def in_the_open() -> Generator[Path]:
    """A folder that every user of the machine may look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def long_home(in_the_open: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """A home in which, and in the folder for temporary files too, a socket's name is too long."""
    assert in_the_open.exists()
    long = home / ("x" * 120)
    long.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    return long / "home"


def test_the_home_and_its_secrets_are_open_to_their_owner_alone(home: Path) -> None:
    found = embedded.ensure(home)
    write(found, "secret")
    assert mode(home) == 0o700
    assert mode(home / "password") == 0o600
    assert mode(home / "server.conf") == 0o600
    assert mode(Path(socket_of(found)).parent) == 0o700
    assert mode(Path(socket_of(found))) == 0o700
    assert mode(home / "appendonlydir") == 0o700
    assert [mode(path) & 0o077 for path in (home / "appendonlydir").iterdir()] == [0] * 3


def test_without_the_password_nobody_is_heard(home: Path) -> None:
    found = embedded.ensure(home)
    with Link(socket_of(found)) as link, pytest.raises(ReplyError, match="NOAUTH"):
        link.call("GET", "value")
    with pytest.raises(ReplyError, match="WRONGPASS"):
        Link(socket_of(found), "guessed")


def test_loopback_is_the_second_choice_and_needs_the_password_too(long_home: Path) -> None:
    found = embedded.ensure(long_home)
    try:
        assert found.address.startswith("redis://127.0.0.1:")
        port = int(found.address.rpartition(":")[2])
        write(found, "kept")
        with Link(("127.0.0.1", port)) as link, pytest.raises(ReplyError, match="NOAUTH"):
            link.call("GET", "value")
        embedded.down(long_home)
        again = embedded.ensure(long_home)
        assert read(again) == "kept"
        # Whoever took the port in between may have been sent the password: it is worth nothing now.
        assert (long_home / "password").read_text() not in found.url
    finally:
        gone(long_home)


def test_every_home_has_a_password_of_its_own_for_good(home: Path) -> None:
    one, two = embedded.ensure(home / "one"), embedded.ensure(home / "two")
    embedded.down(one.home)
    again = embedded.ensure(one.home)
    passwords = [(each.home / "password").read_text() for each in (one, two)]
    assert again.url == one.url
    assert len(set(passwords)) == 2
    assert all(len(password) > 40 for password in passwords)
    gone(one.home)
    gone(two.home)


def test_a_home_that_others_may_look_into_is_refused(home: Path) -> None:
    home.mkdir(mode=0o755)
    (home / "notes").write_text("mine")
    with pytest.raises(InvalidInput, match=r"open to other users \(mode 755\).*chmod 700"):
        embedded.ensure(home)
    assert sorted(path.name for path in home.iterdir()) == ["notes"]
    assert mode(home) == 0o755


def test_an_empty_home_is_closed_to_others(home: Path) -> None:
    home.mkdir(mode=0o755)
    embedded.ensure(home)
    assert mode(home) == 0o700


def test_a_home_that_is_a_file_is_refused(home: Path) -> None:
    home.write_text("")
    with pytest.raises(InvalidInput, match="cannot be used"):
        embedded.ensure(home)
    home.unlink()


def test_a_folder_for_sockets_that_others_may_use_is_passed_over(
    long_home: Path, monkeypatch: pytest.MonkeyPatch, in_the_open: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(in_the_open))
    (in_the_open / "broker").mkdir(mode=0o777)
    (in_the_open / "broker" / "theirs").touch()
    found = embedded.ensure(long_home)
    try:
        assert found.address.startswith("redis://127.0.0.1:")
    finally:
        gone(long_home)


def test_a_short_folder_is_used_for_the_socket_of_a_long_home(
    long_home: Path, monkeypatch: pytest.MonkeyPatch, in_the_open: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(in_the_open))
    found = embedded.ensure(long_home)
    try:
        assert Path(socket_of(found)).parent == in_the_open / "broker"
        assert mode(in_the_open / "broker") == 0o700
        # The next one finds it where it is, not where it would put it.
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        assert embedded.ensure(long_home).url == found.url
    finally:
        gone(long_home)


@pytest.mark.system
def test_a_second_user_reaches_neither_socket_nor_files(in_the_open: Path) -> None:
    assert os.geteuid() == 0, "only root can act as a second user"
    found = embedded.ensure(in_the_open / "home")
    try:
        os.seteuid(NOBODY)
        try:
            with pytest.raises(PermissionError):
                Link(socket_of(found))
            for name in ("password", "server.conf", "server.json", "appendonlydir/appendonly.aof.manifest"):
                with pytest.raises(PermissionError):
                    (found.home / name).read_bytes()
        finally:
            os.seteuid(0)
    finally:
        gone(found.home)


@pytest.mark.system
def test_a_second_users_home_is_refused(in_the_open: Path) -> None:
    home = in_the_open / "home"
    home.mkdir(mode=0o700)
    os.chown(home, NOBODY, NOBODY)
    with pytest.raises(InvalidInput, match="belongs to user 65534, not to 0"):
        embedded.ensure(home)


@pytest.mark.system
def test_somebody_elses_server_is_none_of_ours(in_the_open: Path) -> None:
    found = embedded.ensure(in_the_open / "home")
    try:
        os.seteuid(NOBODY)
        try:
            for ask in (embedded.info, embedded.down, embedded.ensure):
                with pytest.raises(InvalidInput, match=r"belongs to user 0|Permission denied"):
                    ask(found.home)
        finally:
            os.seteuid(0)
        assert embedded.is_up(found.home)
    finally:
        gone(found.home)
