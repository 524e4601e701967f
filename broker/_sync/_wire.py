"""Sends commands one call at a time, over a connection for each thread that is calling.

The client connects and authenticates; after that its connection is spoken to directly, since the client's pool,
pipeline and parser cost more than the call.
"""

import os
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidInput, Unavailable
from ..store.commands.values import Arg, Call, Came
from ..store.connect import NOTHING, Options, Socket, is_push, open_socket, pack
from ._runtime import Client

READ_BYTES = 256 * 1024


def at_once(options: Options) -> int:
    """How many calls may be under way: as many as there are connections for them."""
    return options.max_connections


class Wire:
    """Sends commands, each call on a connection of its own, which is kept for the next one."""

    def __init__(self, client: Client, seconds: float) -> None:  # noqa: ARG002 - the client keeps the time
        self.client: Client = client
        self._callbacks = dict(client.response_callbacks)
        self._lines: set[Socket] = set()
        self._free: list[Socket] = []
        self._process = os.getpid()
        self._closed = False

    def run(self, call: Call, *, whole: bool = False) -> Came:
        """What the server makes of a script call. Raises what it says against it, or that the connection was lost."""
        reply, *after = self._told((call.words(whole=whole), *call.after))
        if isinstance(reply, Exception):
            raise reply
        return Came(reply, after)

    def read(self, commands: Sequence[tuple[Arg, ...]]) -> list[Any]:
        """The reply to each command, an error of the server in its place. Raises when the connection was lost."""
        if not commands:
            return []
        replies = self._told(commands)
        for n, command in enumerate(commands):
            change = self._callbacks.get(command[0])
            if change is not None and not isinstance(replies[n], Exception):
                replies[n] = change(replies[n])
        return replies

    def _told(self, commands: Sequence[tuple[Arg, ...]]) -> list[Any]:
        """The replies to some commands in one write."""
        try:
            words = b"".join([pack(command) for command in commands])
        except (TypeError, ValueError):
            words = b""
        if not words:
            raise InvalidInput(
                "value", "cannot be written", "text without half surrogate pairs, bytes and numbers"
            )
        line = self._take()
        try:
            replies = _exchange(line, words, len(commands))
        except BaseException:  # a reply may be on its way still: nobody else may get it
            self._drop(line)
            raise
        self._free.append(line)
        if self._closed:
            self.close()
        return replies

    def _take(self) -> Socket:
        """A connection that is nobody's, a new one where all are in use."""
        if self._closed:
            raise Unavailable("it was closed meanwhile")
        if self._process != os.getpid():  # those are the parent's
            self._lines, self._free, self._process = set(), [], os.getpid()
        while self._free:
            try:
                line = self._free.pop()
            except IndexError:  # another thread was faster
                break
            if line.is_quiet():
                return line
            self._drop(line)
        line = open_socket(self.client)
        self._lines.add(line)
        return line

    def _drop(self, line: Socket) -> None:
        self._lines.discard(line)
        line.close()

    def close(self) -> None:
        """Closes the connections, those too that somebody waits on. Safe to repeat."""
        self._closed = True
        if self._process == os.getpid():
            for line in list(self._lines):
                self._drop(line)
        self.client.close()


def _exchange(line: Socket, words: bytes, count: int) -> list[Any]:
    """So many replies to what is sent."""
    line.socket.sendall(words)
    replies: list[Any] = []
    parser = line.parser
    while len(replies) < count:
        reply = parser.gets()
        if reply is NOTHING:
            data = line.socket.recv(READ_BYTES)
            if not data:
                raise ConnectionError("the connection was lost")
            parser.feed(data)
        elif not is_push(reply):
            replies.append(reply)
    return replies
