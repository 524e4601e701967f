"""A real server as a process of the test: started, killed, paused and started again at will. Imports `embedded`."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ..embedded.binaries import REMEDIES, packaged
from ..embedded.flags import SERVER_FLAGS, Setting, render
from ..embedded.resp import Link, Reply, ReplyError
from ..errors import NoServer, Unavailable

START_SECONDS: Final = 20.0
STOP_SECONDS: Final = 10.0
_REAPER: Final = 'read -r _; kill -9 "$1"; rm -rf -- "$2"'


class ServerProcess:
    """A server of one's own in a folder of its own, on a unix socket and, given a `port` (0: a free one), on loopback.

    `binary` is any Redis or Valkey server program (default: the packaged one). `config` goes over the flags that all
    our servers share, so that a killed server has its data when started again. Use it as a context manager, or
    `start` and `close` it. Should this process die first, the server and its folder go with it.
    """

    def __init__(
        self,
        binary: Path | None = None,
        config: Mapping[str, Setting] | None = None,
        *,
        port: int | None = None,
    ) -> None:
        found = binary or packaged()
        if found is None:
            raise NoServer(REMEDIES)
        self.binary = found
        self.port: int | None = _free_port() if port == 0 else port
        self.directory: Path = Path(tempfile.mkdtemp(prefix="broker-", dir=_short_folder()))
        self.socket: Path = self.directory / "s"
        self.config: dict[str, Setting] = {
            **SERVER_FLAGS,
            "bind": "127.0.0.1",
            "port": self.port or 0,
            "unixsocket": self.socket,
            "unixsocketperm": "700",
            "dir": self.directory,
            "daemonize": "no",
            **(config or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._reaper: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of the unix socket, with the password where `config` has one."""
        return f"unix://{self._login}{self.socket}"

    @property
    def tcp_url(self) -> str:
        """The URL of the loopback port. Raises RuntimeError for a server made without one."""
        if self.port is None:
            raise RuntimeError("this server listens on its socket only: make it with port=0")
        return f"redis://{self._login}127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id. Raises RuntimeError when it is not running."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("this server is not running")
        return self._process.pid

    def start(self) -> Self:
        """Start it, over the data it left, and return when it answers. Raises Unavailable with its log when it ends."""
        (self.directory / "conf").write_text(render(self.config), encoding="utf-8")
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the program that the test names
                [self.binary, self.directory / "conf"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,
            )
        self._reaper = subprocess.Popen(  # noqa: S603 - a fixed script
            ["/bin/sh", "-c", _REAPER, "reaper", str(self._process.pid), str(self.directory)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise Unavailable(f"{self.binary} did not start; its log ends: {self.log()[-600:]}")
            time.sleep(0.002)
        return self

    def stop(self) -> None:
        """End it in good order (SIGTERM), paused or not. Safe to repeat."""
        self._end(signal.SIGTERM, signal.SIGCONT)

    def kill(self) -> None:
        """End it at once (SIGKILL). Safe to repeat."""
        self._end(signal.SIGKILL)

    def restart(self) -> Self:
        """Stop it and start it again over its data, at the same addresses, with `config` as it is now."""
        self.stop()
        return self.start()

    def pause(self) -> None:
        """Stop it in its tracks (SIGSTOP): connections stay open, nothing is answered. Returns when it has stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def resume(self) -> None:
        """Let a paused one go on."""
        os.kill(self.pid, signal.SIGCONT)

    def log(self) -> str:
        """Everything it printed, over all its starts."""
        return (self.directory / "log").read_text(errors="replace")

    def call(self, *words: str | bytes | int) -> Reply:
        """The reply to one command, over a connection of its own. Raises ReplyError when the server says no."""
        password = self.config.get("requirepass")
        with Link(str(self.socket), str(password) if password else None, seconds=STOP_SECONDS) as link:
            return link.call(*words)

    def close(self) -> None:
        """End it and remove its folder. Safe to repeat."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _login(self) -> str:
        password = self.config.get("requirepass")
        return f":{password}@" if password else ""

    def _end(self, *signals: signal.Signals) -> None:
        reaper, self._reaper = self._reaper, None
        if reaper is not None:
            reaper.kill()
            reaper.communicate()
        process, self._process = self._process, None
        if process is None:
            return
        for each in signals:
            process.send_signal(each)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _answers(self) -> bool:
        try:
            return self.call("PING") == b"PONG"
        except ReplyError as error:
            return str(error).startswith(("NOAUTH", "NOPERM", "WRONGPASS"))
        except OSError:
            return False


def _short_folder() -> str | None:
    """Where a socket's path stays short enough: the folder for temporary files, unless its own path is long."""
    return "/tmp" if len(os.fsencode(tempfile.gettempdir())) > 60 else None  # noqa: S108, PLR2004


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
