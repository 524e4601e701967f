"""What makes open pages live: a stream that says when there is something new to look at. It carries no content."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Final

from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from ..._async.client import AsyncBroker
from ...core.access import Scope
from ...errors import BrokerError, WaitTimeout
from ..identity import Caller, CallerOf, needs
from ..routes import BrokerOf
from .listing import ON_A_PAGE
from .page import PageRoute
from .session import cookie_name, find

router: APIRouter = APIRouter(route_class=PageRoute, include_in_schema=False)

EVERY: Final = 0.4
"""How often a process looks whether the list has changed, in seconds, while anybody looks at one."""
PING: Final = 15
"""After so many silent seconds a word is said, and the session is looked up again."""


Still = Callable[[], Awaitable[bool]]


class Watch:
    """Rings when what is open has changed; one look at a time for all who listen in this process."""

    def __init__(self, broker: AsyncBroker) -> None:
        self._broker = broker
        self._bells: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def listen(self) -> Iterator[asyncio.Event]:
        """A bell for the length of the block."""
        bell = asyncio.Event()
        self._bells.add(bell)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())
        try:
            yield bell
        finally:
            self._bells.discard(bell)

    async def _look(self) -> None:
        before: object = None
        while self._bells:
            try:
                # The count alone would miss one that came while another one went.
                fleet, first = await self._broker.fleet(), await self._broker.inbox.list(limit=ON_A_PAGE)
                now: object = (fleet.open, fleet.dead, [one.id for one in first.items])
            except BrokerError:
                now = None
            if now != before:
                before = now
                for bell in self._bells:
                    bell.set()
            await asyncio.sleep(EVERY)


def watch_of(request: Request) -> Watch:
    """The one of this gateway."""
    state = request.app.state
    if not hasattr(state, "inbox_watch"):
        state.inbox_watch = Watch(state.broker)
    watch: Watch = state.inbox_watch
    return watch


@router.get("/live")
@needs(Scope.READ)
async def live(request: Request, broker: BrokerOf, caller: CallerOf, i: str = "") -> EventSourceResponse:
    """Says `changed` when the list has changed, or the one question `i`; `over` when the session is."""
    if i:
        await broker.inbox.get(i)  # one that is not there is told before the stream begins
    still = _stays(request, broker, caller)
    source = _question(broker, i, still) if i else _list(watch_of(request), still)
    return EventSourceResponse(source, ping=PING, headers={"X-Accel-Buffering": "no"})


async def _list(watch: Watch, still: Still) -> AsyncGenerator[ServerSentEvent]:
    yield ServerSentEvent(event="hello", data="")
    with watch.listen() as bell:
        while await still():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PING):
                    await bell.wait()
                bell.clear()
                yield ServerSentEvent(event="changed", data="")
    yield ServerSentEvent(event="over", data="")


async def _question(broker: AsyncBroker, name: str, still: Still) -> AsyncGenerator[ServerSentEvent]:
    yield ServerSentEvent(event="hello", data="")
    while await still():
        try:
            await broker.inbox.wait(name, PING)
        except WaitTimeout:
            continue
        yield ServerSentEvent(event="changed", data="")
        return
    yield ServerSentEvent(event="over", data="")


def _stays(request: Request, broker: AsyncBroker, caller: Caller) -> Still:
    """Says whether the reader is still one: a key that was revoked ends its streams too, and so does signing out."""
    text = request.cookies.get(cookie_name(broker.namespace), "")
    sort, _, name = caller.credential.partition(":")

    async def still() -> bool:
        if getattr(request.state, "session", None) is not None:
            return await find(broker, text) is not None
        return sort != "key" or await broker.keys.current(name) is not None

    return still
