"""A proxy in front of a real server that misbehaves on request, on its own threads. Imports `frames` only.

It cuts the streams into whole commands and replies, so that a test can say *which* reply is lost: a lost reply is how
a client comes to do a thing twice.
"""

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Literal, Self
from urllib.parse import unquote, urlsplit

from .frames import PUSH, Frames

HOST: Final = "127.0.0.1"
CHUNK: Final = 1 << 16


@dataclass
class _Loss:
    """A reply to lose: that of the command, `left` matching ones from now."""

    matching: bytes
    left: int
    then: Literal["cut", "silence"]


@dataclass(eq=False)
class _Link:
    """One client's way through the proxy: two sockets, and what becomes of each reply that is still due."""

    client: socket.socket
    server: socket.socket
    due: deque[_Loss | None] = field(default_factory=deque["_Loss | None"])
    silent: bool = False
    muted: bool = False
    pumps: int = 2

    def cut(self) -> None:
        """End it; the threads that read from it notice."""
        for side in (self.client, self.server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


class FaultProxy:
    """A loopback proxy to the server at `upstream` (a `redis://` or `unix://` URL); `url` is what clients connect to.

    Use it as a context manager. The counters only grow: `connections`, `requests` (commands that came from clients),
    `replies` (that went to clients), `dropped` (replies lost on request).
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self.connections: int = 0
        self.requests: int = 0
        self.replies: int = 0
        self.dropped: int = 0
        self._lock = threading.Lock()
        self._links: set[_Link] = set()
        self._losses: list[_Loss] = []
        self._threads: list[threading.Thread] = []
        self._delay = 0.0
        self._closing = threading.Event()
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener: socket.socket | None = None
        self._acceptor: threading.Thread | None = None
        self._seat = _bound(0)  # keeps the port while nobody listens
        self.port: int = int(self._seat.getsockname()[1])
        self._listen()

    @property
    def url(self) -> str:
        """The upstream's URL by way of this proxy, with its user, password and database."""
        who, at, _ = self._upstream.netloc.rpartition("@")
        base = "" if self._upstream.scheme == "unix" else self._upstream.path
        query = f"?{self._upstream.query}" if self._upstream.query else ""
        return f"redis://{who}{at}{HOST}:{self.port}{base}{query}"

    def drop_next_reply(
        self, matching: bytes = b"", *, nth: int = 1, then: Literal["cut", "silence"] = "cut"
    ) -> None:
        """Lose the reply to the `nth` command from now whose bytes hold `matching`; the server does execute it.

        Afterwards that connection is cut, or stays open and silent until the client gives up.
        """
        with self._lock:
            self._losses.append(_Loss(matching, nth, then))

    def cut(self) -> None:
        """End every open connection; new ones are welcome."""
        with self._lock:
            for link in self._links:
                link.cut()

    def mute(self) -> None:
        """Let nothing more pass on any open connection, as when a router forgot them: they stay open, for good.

        New ones work.
        """
        with self._lock:
            for link in self._links:
                link.silent = link.muted = True

    def delay(self, seconds: float) -> None:
        """Hold back every reply for `seconds`; those that come together, together."""
        self._delay = seconds

    def hang(self) -> None:
        """Keep connections open, take new ones, and pass nothing on in either direction until `restore`."""
        self._flowing.clear()

    def refuse(self) -> None:
        """End every connection and refuse new ones, as a machine without the server does, until `restore`."""
        self._unlisten()
        self.cut()

    def restore(self) -> None:
        """Behave well again: what was held back flows, nothing is delayed, refused or lost from now on."""
        with self._lock:
            self._losses.clear()
        self._delay = 0.0
        self._flowing.set()
        if self._listener is None:
            self._listen()

    def close(self) -> None:
        """End everything; safe to repeat."""
        self._closing.set()
        self._unlisten()
        self._flowing.set()
        self.cut()
        for thread in self._threads:
            thread.join()
        self._seat.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _listen(self) -> None:
        self._listener = _bound(self.port)
        self._listener.listen(128)
        self._acceptor = threading.Thread(target=self._accept, args=(self._listener,), daemon=True)
        self._acceptor.start()

    def _unlisten(self) -> None:
        listener, self._listener = self._listener, None
        if listener is None or self._acceptor is None:
            return
        with suppress(OSError), socket.create_connection((HOST, self.port), timeout=5):
            self._acceptor.join()  # This call woke it, and it saw that it is to end.
        listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            client, _ = listener.accept()
            if self._listener is not listener:
                client.close()
                return
            self.connections += 1
            try:
                link = _Link(client, self._connect())
            except OSError:
                client.close()
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._links.add(link)
            self._run(self._upwards, link)
            self._run(self._downwards, link)

    def _connect(self) -> socket.socket:
        if self._upstream.scheme == "unix":
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(unquote(self._upstream.path))
            except OSError:
                server.close()
                raise
            return server
        return socket.create_connection((self._upstream.hostname or HOST, self._upstream.port or 6379))

    def _run(self, pump: Callable[[_Link], None], link: _Link) -> None:
        def run() -> None:
            with suppress(OSError):
                pump(link)
            link.cut()
            with self._lock:
                link.pumps -= 1
                if not link.pumps:
                    link.client.close()
                    link.server.close()
                    self._links.discard(link)

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _upwards(self, link: _Link) -> None:
        """Client to server: count the commands, and mark those whose reply is to be lost."""
        frames = Frames()
        while data := link.client.recv(CHUNK):
            commands = frames.feed(data)
            with self._lock:
                link.due.extend(self._loss_of(command) for command in commands)
                self.requests += len(commands)
            self._flowing.wait()
            if not link.muted:
                link.server.sendall(b"".join(commands))

    def _loss_of(self, command: bytes) -> _Loss | None:
        hit = None
        for loss in [each for each in self._losses if each.matching in command]:
            loss.left -= 1
            if not loss.left:
                self._losses.remove(loss)
                hit = loss
        return hit

    def _downwards(self, link: _Link) -> None:
        """Server to client: pass replies on, late or not at all."""
        frames = Frames()
        while data := link.server.recv(CHUNK):
            replies = frames.feed(data)
            if self._delay:
                self._closing.wait(self._delay)
            self._flowing.wait()
            for reply in replies:
                self._pass(link, reply)

    def _pass(self, link: _Link, reply: bytes) -> None:
        if link.muted:
            return
        with self._lock:
            asked = reply[0] != PUSH and bool(link.due)
            loss = link.due.popleft() if asked else None
            self.dropped += loss is not None
            self.replies += asked and loss is None and not link.silent
        if loss is not None:
            link.silent = True
            if loss.then == "cut":
                raise ConnectionAbortedError
        elif not link.silent:
            link.client.sendall(reply)


def _bound(port: int) -> socket.socket:
    """A socket on a loopback port that others of ours may be bound to as well."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "SO_REUSEPORT"):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind((HOST, port))
    return sock
