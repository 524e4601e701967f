"""What a request may cost: the size of its body, its time, and how often somebody may ask."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute

from ..errors import InvalidInput
from .identity import Caller
from .problems import Problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_KEY: Final = re.compile(r"[\x21-\x7e]{1,128}")
_JSON: Final = re.compile(r"application/([a-z.-]+\+)?json\b", re.IGNORECASE)


class TooLarge(Exception):
    """The body of a request is larger than this gateway takes."""


class BodyLimit:
    """Refuses bodies above a size before they are read, whatever their headers say."""

    def __init__(self, app: Any, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        told = dict(scope["headers"]).get(b"content-length", b"0")
        seen, begun = 0, False

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            if told.isdigit() and int(told) > self._most:
                raise TooLarge  # noqa: TRY301 - one place answers
            await self._app(scope, bounded, noted)
        except TooLarge:
            if not begun:
                detail = f"The body is larger than {self._most} bytes."
                await Problem(413, "too_large", detail, allowed=str(self._most))(scope, receive, send)


class Heads:
    """Answers HEAD as GET is answered, without the body: what would go on for ever ends after its headers."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        begun, asked = asyncio.Event(), False

        async def nothing() -> Message:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await begun.wait()
            return {"type": "http.disconnect"}

        async def head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})
                begun.set()

        await self._app({**scope, "method": "GET"}, nothing, head)


class Timed(APIRoute):
    """A route whose requests end: after so many seconds the caller is told, and repeats."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """The handler of one request."""
        handle = super().get_route_handler()

        async def timed(request: Request) -> Response:
            seconds = request.app.state.settings.request_seconds
            try:
                async with asyncio.timeout(seconds):
                    response: Response = await handle(request)
                    return response
            except TimeoutError:
                detail = f"It took longer than {seconds:g} s; it may have happened: repeat it."
                return Problem(504, "timeout", detail)

        return timed


async def json_of(request: Request) -> Any:
    """The JSON that a request carries. It is read once the guard has let the caller in, and not before."""
    if not _JSON.match(request.headers.get("content-type", "")):
        raise HTTPException(415, "Send JSON: Content-Type: application/json")
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError):
        raise HTTPException(400, "The body is no JSON") from None


Sent = Annotated[Any, Depends(json_of)]


def idempotency_of(request: Request, caller: Caller) -> str | None:
    """The operation that a request names by `Idempotency-Key`: the caller's own. None where it names none."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    key = key.strip('"')
    if not _KEY.fullmatch(key):
        raise InvalidInput("Idempotency-Key", "cannot be read", "1 to 128 visible ASCII characters")
    return f"{caller.credential}/{key}"
