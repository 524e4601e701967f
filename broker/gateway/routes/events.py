"""What happens, as server-sent events: for pages that keep themselves up to date, and programs in any language."""

import contextlib
import json
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator
from time import monotonic
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.background import BackgroundTask

from ..._async.events import Following
from ...core.access import Scope
from ...core.events import Event
from ..identity import CallerOf, is_still_let_in, needs
from ..openapi import gives
from . import BrokerOf, resource

router: APIRouter = resource("/events", "events")

KEEP_ALIVE_SECONDS = 15.0
MOST_ENCODED = 2000
_ANSWER: Any = gives("Outcome") | {"response_class": EventSourceResponse}
_ANSWER["responses"][200] = {"description": "A stream without an end", "content": {"text/event-stream": {}}}


@router.get("", operation_id="follow_events", **_ANSWER)
@needs(Scope.READ)
async def follow_events(
    request: Request,
    broker: BrokerOf,
    caller: CallerOf,
    *,
    session: str | None = None,
    run: str | None = None,
    queue: str | None = None,
    type: Annotated[list[str] | None, Query()] = None,  # noqa: A002 - as it is called in the address
    after: str | None = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> EventSourceResponse:
    """What happens from now on, or after the event that was seen last: ids and words, never an argument.

    Each event has its cursor as its id, so that a client goes on after a lost connection by itself. A `gap` says that
    events were lost: list what there is. The stream ends when the credential counts no more, or the gateway stops.
    """
    following = broker.events.following(
        after=last_event_id or after, session=session, run=run, queue=queue, types=type
    )
    streams: Streams = request.app.state.streams
    streams.check(caller.credential)
    first = await following.open()
    told = _told(request, streams, caller.credential, following, first)
    # Left also by a client that has gone before anything was sent.
    return EventSourceResponse(told, ping=0, sep="\n", background=BackgroundTask(following.leave))


async def _told(
    request: Request, streams: "Streams", credential: str, following: Following, first: tuple[Event, ...]
) -> AsyncGenerator[bytes, None]:
    """What is sent: events, and after some silence the cursor, so that it has moved on when the client comes back."""
    with streams.one_more(credential):
        try:
            yield streams.encoded(first) + _alive(following)
            looked = monotonic()
            while True:
                found = await following.next(KEEP_ALIVE_SECONDS)
                yield streams.encoded(found) if found else _alive(following)
                if monotonic() - looked >= KEEP_ALIVE_SECONDS:
                    if not await is_still_let_in(request):
                        return
                    looked = monotonic()
        finally:
            await following.leave()


def _alive(following: Following) -> bytes:
    return f": keep-alive\nid: {following.cursor}\n\n".encode()


class Streams:
    """The open streams of a gateway: how many each caller has, and what is sent to all of them."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._open: dict[str, int] = {}
        self._encoded: OrderedDict[str, bytes] = OrderedDict()

    @property
    def count(self) -> int:
        """How many are open."""
        return sum(self._open.values())

    def check(self, credential: str) -> None:
        """Raises 429 where a caller, or everybody, has too many."""
        if self._open.get(credential, 0) >= self._each or self.count >= self._most:
            detail = f"Up to {self._each} streams of one credential, and {self._most} of a gateway, are open at a time"
            raise HTTPException(429, detail, {"Retry-After": "30"})

    @contextlib.contextmanager
    def one_more(self, credential: str) -> Iterator[None]:
        """Counts a stream while it is open."""
        self._open[credential] = self._open.get(credential, 0) + 1
        try:
            yield
        finally:
            self._open[credential] -= 1
            if not self._open[credential]:
                del self._open[credential]

    def encoded(self, events: tuple[Event, ...]) -> bytes:
        """Events as they are sent: encoded once, for however many streams."""
        return b"".join(map(self._one, events))

    def _one(self, event: Event) -> bytes:
        found = self._encoded.get(event.cursor)
        if found is None:
            said = json.dumps(event.to_json(), separators=(",", ":"))
            found = ServerSentEvent(data=said, event=event.type, id=event.cursor, sep="\n").encode()
            self._encoded[event.cursor] = found
            if len(self._encoded) > MOST_ENCODED:
                self._encoded.popitem(last=False)
        return found
