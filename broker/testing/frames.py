"""Where one command or reply ends in a stream of bytes (RESP 2 and 3). Imports nothing of ours."""

from typing import Final

PUSH: Final = ord(">")
"""First byte of what the server says without having been asked."""

_SIZED: Final = frozenset(b"$=!")
_MANY: Final = frozenset(b"*~>")
_PAIRS: Final = ord("%")
_ATTRIBUTES: Final = ord("|")


def frame_end(data: bytes, start: int) -> int | None:
    """The index after the command or reply that begins at `start`; None while it is not all there."""
    at, parts = start, 1
    while parts:
        line_end = data.find(b"\r\n", at)
        if line_end < 0:
            return None
        kind, head = data[at], data[at + 1 : line_end]
        at, parts = line_end + 2, parts - 1
        if kind in _SIZED and not head.startswith(b"-"):
            at += int(head) + 2
            if at > len(data):
                return None
        elif kind in _MANY and not head.startswith(b"-"):
            parts += int(head)
        elif kind == _PAIRS:
            parts += 2 * int(head)
        elif kind == _ATTRIBUTES:
            parts += 2 * int(head) + 1
    return at


class Frames:
    """Cuts a stream into whole commands or replies, however it arrives."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The commands or replies that `data` completes, in order."""
        data, at, whole = self._rest + data, 0, list[bytes]()
        while at < len(data) and (end := frame_end(data, at)) is not None:
            whole.append(data[at:end])
            at = end
        self._rest = data[at:]
        return whole
