"""The connection that all calls of a process share: those of one turn of the event loop travel in one write.

Calls of one script that come together are one script call with several items. Each is answered by itself, in the order
of the write. Nobody's cancellation, fault or size holds up another: a call that is given up leaves its reply to nobody,
and calls that failed together are made again one by one. The client connects and authenticates; after that its
connection is spoken to directly, since a pool, a pipeline and a timer for each call cost more than the call.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, Final

from ..errors import BrokerError, InvalidInput, Unavailable
from ..store.commands.values import Arg, Call, Came, Load, packed
from ..store.connect import (
    NOTHING,
    Later,
    NoScript,
    Options,
    Stream,
    is_push,
    meaning,
    open_stream,
    pack,
)
from ._runtime import Client

LEAVE_SECONDS: Final = 0.5
HIGH_WATER: Final = 4 * 1024 * 1024
"""How many bytes may wait for the network before callers do."""


def at_once(options: Options) -> int:  # noqa: ARG001 - the blocking twin needs it
    """How many calls may be under way: they share one connection, so that memory is the only limit."""
    return 1000


class Wire:
    """Sends commands over one connection that it opens again when it is lost."""

    def __init__(self, client: Client, seconds: float) -> None:
        self.client: Client = client
        self._seconds = seconds
        self._line: _Line | None = None
        self._queue: list[_Wanted] = []
        self._opening: asyncio.Task[None] | None = None
        self._due = self._closed = False

    async def run(self, call: Call, *, whole: bool = False) -> Came:
        """What the server makes of a script call. Raises what it says against it, or that the connection was lost."""
        came: Came = await self._told(_Script(call, whole))
        return came

    async def read(self, commands: Sequence[tuple[Arg, ...]]) -> list[Any]:
        """The reply to each command, an error of the server in its place. Raises when the connection was lost."""
        if not commands:
            return []
        replies: list[Any] = await self._told(_Reads(commands, self.client.response_callbacks))
        return replies

    def _told(self, wanted: "_Wanted") -> asyncio.Future[Any]:
        if self._closed:
            raise Unavailable("it was closed meanwhile")
        self._queue.append(wanted)
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._flush)
        return wanted.future

    def _flush(self) -> None:
        """Everything that was asked for in this turn, in one write."""
        self._due = False
        if self._line is None or self._line.lost:
            if self._opening is None:
                self._opening = asyncio.get_running_loop().create_task(self._open())
            return
        if self._line.full or not self._queue:
            return  # it calls again when there is room
        queue, self._queue = self._queue, []
        parts: list[bytes] = []
        waiting: list[_Sent] = []
        for one in _together((one for one in queue if not one.future.done()), self._again):
            try:
                words = [pack(command) for command in one.words()]
            except (TypeError, ValueError):
                allowed = "text without half surrogate pairs, bytes and numbers"
                one.refused(InvalidInput("value", "cannot be written", allowed))
                continue
            parts += words
            waiting += [one] * one.replies
        if parts:
            self._line.send(b"".join(parts), waiting)

    async def _open(self) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                self._line = await _Line.open(self.client, self._seconds, self._flush)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is theirs who wait
            failed, self._queue = self._queue, []
            for one in failed:
                one.fail(error)
        finally:
            self._opening = None
        self._flush_soon()

    def _again(self, wanted: list["_Wanted"]) -> None:
        """Takes back what did not come to an end, to be sent anew."""
        self._queue += wanted
        self._flush_soon()

    def _flush_soon(self) -> None:
        if self._queue and not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._flush)

    async def aclose(self) -> None:
        """Ends the connection for good. Safe to repeat; what is still asked for fails."""
        self._closed = True
        if self._opening is not None:
            # A connection that is made in this moment is better closed than cancelled: that would leave it half made.
            _, late = await asyncio.wait([self._opening], timeout=LEAVE_SECONDS)
            for task in late:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._line is not None:
            self._line.close()
        failed, self._queue, self._line = self._queue, [], None
        for one in failed:
            one.fail(ConnectionError("it was closed"))
        await self.client.aclose()


class _Wanted:
    """What somebody waits for."""

    def __init__(self) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def give(self, result: Any) -> None:
        """Tells who waits, if anybody still does."""
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Tells who waits of a fault; a copy, since an exception that many raise gathers all their traces."""
        if not self.future.done():
            mine = copy.copy(error)
            mine.__cause__ = error.__cause__
            self.future.set_exception(mine)


class _Script(_Wanted):
    """One script call, alone or one of a pack."""

    def __init__(self, call: Call, whole: bool) -> None:  # noqa: FBT001
        super().__init__()
        self.call = call
        self.whole = whole
        self.alone = False
        self.came: Came | None = None


class _Reads(_Wanted):
    """A few plain commands: one reply for each."""

    def __init__(self, commands: Sequence[tuple[Arg, ...]], callbacks: Mapping[Any, Any]) -> None:
        super().__init__()
        self._commands = commands
        self._callbacks = callbacks
        self._found: list[Any] = []
        self.replies = len(commands)

    def words(self) -> Iterable[tuple[Arg, ...]]:
        """The commands to send."""
        return self._commands

    def got(self, reply: Any) -> None:
        """Takes the next reply."""
        change = self._callbacks.get(self._commands[len(self._found)][0])
        if change is not None and not isinstance(reply, Exception):
            reply = change(reply)
        self._found.append(reply)
        if len(self._found) == self.replies:
            self.give(self._found)

    def refused(self, error: Exception) -> None:
        """It cannot even be sent."""
        self.fail(error)


class _Pack:
    """Script calls that are sent as one, and the reads behind some of them."""

    def __init__(self, first: _Script, again: Callable[[list[_Wanted]], None]) -> None:
        self._again = again
        self._members: list[_Script] = []
        self._load = Load()
        self._answered = False
        self._after: Iterator[_Script] = iter(())
        self.replies = 1
        self.takes(first)

    def takes(self, one: _Script) -> bool:
        """Whether there is room for one more; then it comes along."""
        call = one.call
        if not self._load.takes(call.count, len(call.keys) + len(call.flat), call.size):
            return False
        self._members.append(one)
        self.replies += len(call.after)
        return True

    def words(self) -> Iterator[tuple[Arg, ...]]:
        """The commands to send."""
        yield packed([one.call for one in self._members], whole=self._members[0].whole)
        for one in self._members:
            yield from one.call.after

    def got(self, reply: Any) -> None:
        """Takes the next reply: first that of the script, then those of the reads behind it."""
        if self._answered:
            self._read(next(self._after), reply)
            return
        self._answered = True
        self._after = iter([one for one in self._members for _ in one.call.after])
        if isinstance(reply, Exception):
            self._failed(reply)
            return
        start = 0
        for one in self._members:
            rows = reply[start : start + one.call.count]
            start += one.call.count
            one.came = Came(rows, [], again=one.alone)
            if not one.call.after:
                one.give(one.came)

    def _read(self, one: _Script, reply: Any) -> None:
        if one.came is not None:
            after = [*one.came.after, reply]
            one.came = one.came._replace(after=after)
            if len(after) == len(one.call.after):
                one.give(one.came)

    def _failed(self, error: Exception) -> None:
        fault = meaning(error)
        known = isinstance(fault, BrokerError | Later | NoScript) and not isinstance(fault, Unavailable)
        if known:  # it concerns them all
            self.fail(error)
        else:
            self.refused(error)

    def refused(self, error: Exception) -> None:
        """One of them cannot be carried: whose fault that is shows when each is sent alone."""
        if len(self._members) > 1:
            for one in self._members:
                one.alone = True
            self._again(list(self._members))
            return
        self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Tells all of them."""
        for one in self._members:
            one.fail(error)


_Sent = _Reads | _Pack


def _together(queue: Iterable[_Wanted], again: Callable[[list[_Wanted]], None]) -> list[_Sent]:
    """What is sent for all that was asked for: calls of one script in packs."""
    sent: list[_Sent] = []
    packs: dict[Any, _Pack] = {}
    for one in queue:
        if not isinstance(one, _Script):
            assert isinstance(one, _Reads)  # noqa: S101 - there are two kinds
            sent.append(one)
            continue
        call = one.call
        kind = (call.script.sha, one.whole, call.partition.tag, call.head)
        pack = None if one.alone else packs.get(kind)
        if pack is not None and pack.takes(one):
            continue
        pack = _Pack(one, again)
        if not one.alone:
            packs[kind] = pack
        sent.append(pack)
    return sent


class _Line(asyncio.Protocol):
    """One connection: writes, and hands each reply to who waits for it. It ends when it is silent for too long."""

    def __init__(self, stream: Stream, seconds: float, room: Callable[[], None]) -> None:
        self._stream = stream
        self._seconds = seconds
        self._room = room
        self._waiting: deque[_Sent] = deque()
        self._heard = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._fault: BaseException = ConnectionError("the connection was lost")
        self.full = self.lost = False

    @classmethod
    async def open(cls, client: Client, seconds: float, room: Callable[[], None]) -> "_Line":
        """A new connection, authenticated by the client and ours from then on."""
        stream = await open_stream(client)
        line = cls(stream, seconds, room)
        stream.transport.set_protocol(line)
        stream.transport.set_write_buffer_limits(high=HIGH_WATER)
        if stream.transport.is_closing():
            raise ConnectionError("the connection was lost")
        return line

    def send(self, commands: bytes, waiting: Iterable[_Sent]) -> None:
        """Writes some commands, with who waits for each reply."""
        if not self._waiting:
            self._heard = monotonic()
        self._waiting.extend(waiting)
        self._stream.transport.write(commands)
        if self._timer is None and self._waiting:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def _look(self) -> None:
        """Ends the connection when somebody has waited too long for any reply: nothing else says it is half-open."""
        self._timer = None
        if self._waiting and not self.lost:
            left = self._heard + self._seconds - monotonic()
            if left <= 0:
                self._fault = TimeoutError("no reply")
                self._stream.transport.abort()
            else:
                self._timer = asyncio.get_running_loop().call_later(left, self._look)

    def data_received(self, data: bytes) -> None:
        """Hands on what has come."""
        self._heard = monotonic()
        parser = self._stream.parser
        parser.feed(data)
        while (reply := parser.gets()) is not NOTHING:
            if not is_push(reply):
                one = self._waiting.popleft()
                try:
                    one.got(reply)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is theirs who wait for this reply
                    one.fail(error)

    def pause_writing(self) -> None:
        """The network takes no more for now: callers wait."""
        self.full = True

    def resume_writing(self) -> None:
        """There is room again."""
        self.full = False
        self._room()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop hands it over
        """Tells all who wait. What they asked for may have happened."""
        self.lost = True
        if self._timer is not None:
            self._timer.cancel()
        failed, self._waiting = dict.fromkeys(self._waiting), deque()
        for one in failed:
            one.fail(self._fault)

    def close(self) -> None:
        """Ends the connection."""
        self._stream.transport.abort()
