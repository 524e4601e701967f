"""What is announced on channels, for all waiters of a process: one subscribed connection, spoken to directly.

Ten thousand may wait at a time, and each waits for a moment only: what is subscribed to and given up in one turn of the
event loop travels in one write, and a message costs what its listeners cost. What was missed while there was no
connection is in the records, so everybody is woken to look there.
"""

import asyncio
import contextlib
import random
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable
from time import monotonic
from typing import Any, Final

from ..store.connect import FAULTS, NOTHING, AsyncClient, Stream, open_stream, pack

MOST_SAID: Final = 1000
"""Words that wait for a listener; older ones are forgotten, and only wake."""
FIRST_PAUSE: Final = 0.02
LAST_PAUSE: Final = 1.0


class Bell:
    """Rings when something was announced; also when the subscription stands or was lost, since then nobody knows."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.said: deque[bytes] = deque(maxlen=MOST_SAID)
        """What was announced, oldest first; the listener takes it out."""

    async def wait(self, seconds: float) -> bool:
        """Whether it rang within so many seconds. It is silent again afterwards."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def ring(self) -> None:
        """Wakes who waits."""
        self._event.set()


class Announcements:
    """Bells for channels. It opens its connection when somebody listens, and again when it is lost."""

    def __init__(self, client: AsyncClient, answers_in: float, quiet_for: float) -> None:
        self._client = client
        self._limits = (answers_in, quiet_for)
        self._bells: dict[str, set[Bell]] = defaultdict(set)
        self._stands: dict[str, bool] = {}
        """The channels that this connection has asked for, and whether it was told that it has them."""
        self._changed: set[str] = set()
        self._line: _Line | None = None
        self._opening: asyncio.Task[None] | None = None
        self._due = self._closed = False

    @contextlib.asynccontextmanager
    async def listen(self, *channels: str) -> AsyncIterator[Bell]:
        """One bell for some channels. It rings when a subscription stands: look at the records then."""
        bell = Bell()
        for channel in channels:
            self._bells[channel].add(bell)
            if self._stands.get(channel):
                bell.ring()
        self._change(channels)
        try:
            yield bell
        finally:
            for channel in channels:
                self._bells[channel].discard(bell)
                if not self._bells[channel]:
                    del self._bells[channel]
            self._change(channels)

    def _change(self, channels: Iterable[str]) -> None:
        self._changed.update(channels)
        if not self._due and not self._closed:
            self._due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Everything that is listened to, or no longer, since the last turn, in one write."""
        self._due = False
        if self._line is None:
            if self._opening is None and self._bells and not self._closed:
                self._opening = asyncio.get_running_loop().create_task(self._open())
            return
        changed, self._changed = self._changed, set()
        new = [one for one in changed if one in self._bells and one not in self._stands]
        old = [one for one in changed if one not in self._bells and one in self._stands]
        for one in old:
            del self._stands[one]
        self._stands.update(dict.fromkeys(new, False))
        words = [(name, *some) for name, some in (("SUBSCRIBE", new), ("UNSUBSCRIBE", old)) if some]
        if words:
            self._line.send(b"".join(map(pack, words)))

    async def _open(self) -> None:
        pause = FIRST_PAUSE
        try:
            while self._bells:
                try:
                    async with asyncio.timeout(self._limits[0]):
                        stream = await open_stream(self._client)
                except FAULTS:
                    self._ring_all()
                    await asyncio.sleep(pause * (0.5 + random.random() / 2))  # noqa: S311 - jitter
                    pause = min(pause * 2, LAST_PAUSE)
                    continue
                self._line = _Line(stream, *self._limits, self._heard, self._lost)
                return
        finally:
            self._opening = None
            self._change(self._bells)

    def _heard(self, reply: Any) -> None:
        if not isinstance(reply, list) or len(reply) != 3:  # noqa: PLR2004 - kind, channel, and what is said
            return  # the answer to a ping
        kind, name, said = reply
        channel = name.decode("utf-8", "replace") if isinstance(name, bytes) else ""
        if kind == b"subscribe":
            if channel in self._stands:
                self._stands[channel] = True
        elif kind != b"message":
            return
        for bell in self._bells.get(channel, ()):
            if kind == b"message":
                bell.said.append(said)
            bell.ring()

    def _lost(self) -> None:
        self._line, self._stands = None, {}
        self._ring_all()
        self._change(self._bells)

    def _ring_all(self) -> None:
        for bells in self._bells.values():
            for bell in bells:
                bell.ring()

    async def aclose(self) -> None:
        """Closes the connection. Safe to repeat."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._line is not None:
            self._line.close()
        with contextlib.suppress(*FAULTS):
            await self._client.aclose()


class _Line(asyncio.Protocol):
    """One subscribed connection. It ends when what it sends is not answered, or a ping after a long silence."""

    def __init__(
        self, stream: Stream, answers_in: float, quiet_for: float, heard: Callable[[Any], None],
        lost: Callable[[], None],
    ) -> None:  # fmt: skip
        self._stream, self._answers_in, self._quiet_for = stream, answers_in, quiet_for
        self._tell, self._lost = heard, lost
        self._heard_at = monotonic()
        self._asked_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        stream.transport.set_protocol(self)
        if stream.transport.is_closing():
            asyncio.get_running_loop().call_soon(self.connection_lost, None)

    def send(self, words: bytes) -> None:
        """Asks something; an answer is expected soon."""
        now = monotonic()
        if self._asked_at <= self._heard_at:
            self._asked_at = now
        self._stream.transport.write(words)
        self._look_in(self._answers_in)

    def _look_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        now = monotonic()
        if self._asked_at > self._heard_at:
            if now - self._asked_at >= self._answers_in:
                self._stream.transport.abort()
            else:
                self._look_in(self._asked_at + self._answers_in - now)
        elif now - self._heard_at >= self._quiet_for:
            self.send(pack(("PING",)))
        else:
            self._look_in(self._heard_at + self._quiet_for - now)

    def data_received(self, data: bytes) -> None:
        """Hands on what has come."""
        self._heard_at = monotonic()
        parser = self._stream.parser
        parser.feed(data)
        while (reply := parser.gets()) is not NOTHING:
            self._tell(reply)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop hands it over
        """Tells whom it belongs to, once."""
        if self._timer is not None:
            self._timer.cancel()
        lost, self._lost = self._lost, _nothing
        lost()

    def close(self) -> None:
        """Ends the connection, and tells nobody."""
        self._lost = _nothing
        self._stream.transport.abort()


def _nothing() -> None:
    pass
