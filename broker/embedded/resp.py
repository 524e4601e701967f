"""A line to a server: a few commands over a plain socket, where no client library is wanted. Imports nothing of ours.

The launcher and its watchdog ask PING, INFO and SHUTDOWN, often before there is a server to speak of; a client
library would add its import time, its retries and its pools.
"""

import select
import socket
from types import TracebackType
from typing import Self

Address = str | tuple[str, int]
"""The path of a unix socket, or a host and a port."""
Reply = bytes | int | list["Reply"] | None


class ReplyError(Exception):
    """The server answered with an error; its first word is the code."""


class Link:
    """One connection, RESP2. Every method raises OSError (TimeoutError among them) when the server is gone or slow."""

    def __init__(self, address: Address, password: str | None = None, *, seconds: float = 1.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        self._file = self._socket.makefile("rb")
        try:
            self._socket.settimeout(seconds)
            self._socket.connect(address)
            if password is not None:
                self.call("AUTH", password)
        except BaseException:
            self.close()
            raise

    def call(self, *words: str | bytes | int) -> Reply:
        """The reply to one command. Raises ReplyError when the server says no."""
        out = [b"*%d\r\n" % len(words)]
        for word in words:
            raw = word if isinstance(word, bytes) else str(word).encode()
            out.append(b"$%d\r\n%s\r\n" % (len(raw), raw))
        self._socket.sendall(b"".join(out))
        return self._read()

    def text(self, *words: str | bytes | int) -> str:
        """The reply to one command as text, for PING and INFO."""
        reply = self.call(*words)
        return reply.decode() if isinstance(reply, bytes) else str(reply)

    def hear(self, seconds: float) -> None:
        """Wait, at most `seconds`, for something nobody asked for: the server hanging up raises ConnectionError."""
        if select.select([self._socket], [], [], seconds)[0]:
            self._line()

    def close(self) -> None:
        """End the connection; safe to repeat."""
        self._file.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _line(self) -> bytes:
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        return line[:-2]

    def _read(self) -> Reply:
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise ReplyError(rest.decode(errors="replace"))
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if int(rest) < 0:
            return None
        if kind == b"$":
            body = self._file.read(int(rest) + 2)
            if len(body) != int(rest) + 2:
                raise ConnectionError("the server closed the connection")
            return body[:-2]
        return [self._read() for _ in range(int(rest))]


def info(link: Link) -> dict[str, str]:
    """What INFO says, field by field."""
    pairs = (line.partition(":") for line in link.text("INFO").splitlines())
    return {field: value for field, colon, value in pairs if colon}
