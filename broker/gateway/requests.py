"""One line in the log and one count for each request: who, which route, what came of it, how long. Never what was sent.

A route is told by its pattern (`/v1/interrupts/{interrupt_id}`), never by the address as it was sent: an address may
carry a token.
"""

import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any, Final

from ..telemetry import UNTRACED, Tracer
from ..telemetry.metrics import IN_FLIGHT, REQUEST_SECONDS, REQUESTS, Meter

log: logging.Logger = logging.getLogger("broker.gateway.requests")

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
UNKNOWN: Final = "none"
"""The route of a request that fits none."""


class Requests:
    """Counts, logs and traces the requests of an application."""

    def __init__(self, app: Any, meter: Meter, tracer: Callable[[], Tracer | None]) -> None:
        self._app, self._meter, self._tracer = app, meter, tracer

    async def __call__(
        self,
        scope: Scope,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, code, streams = perf_counter(), 500, False

        async def noted(message: Message) -> None:
            nonlocal code, streams
            if message["type"] == "http.response.start":
                code = message["status"]
                kind = dict(message.get("headers", ())).get(b"content-type", b"")
                streams = kind.startswith(b"text/event-stream")
            await send(message)

        method = scope["method"] if scope["method"] in METHODS else "other"
        came = dict(scope["headers"]).get(b"traceparent", b"").decode("latin-1")
        tracer = self._tracer()
        span = tracer.span(f"HTTP {method}", (came,) if came else ()) if tracer is not None else UNTRACED
        self._meter.add(IN_FLIGHT, 1)
        trace: str | None = came
        try:
            with span as here:
                trace = here or came
                await self._app(scope, receive, noted)
        finally:
            self._meter.add(IN_FLIGHT, -1)
            self._tell(scope, method, code, perf_counter() - begun, trace, streams=streams)

    def _tell(
        self, scope: Scope, method: str, code: int, seconds: float, trace: str | None, *, streams: bool
    ) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN)
        self._meter.add(REQUESTS, 1, method, route, str(code))
        if not streams:
            self._meter.observe(REQUEST_SECONDS, seconds, method, route)
        caller = scope.get("state", {}).get("caller")
        found = TRACEPARENT.fullmatch(trace or "")
        facts = {
            "method": method,
            "route": route,
            "code": code,
            "seconds": round(seconds, 6),
            "caller": caller.principal.id if caller is not None else None,
            "credential": caller.credential if caller is not None else None,
            "trace_id": found[1] if found else None,
        }
        who = facts["credential"] or "nobody"
        log.info(
            "%s %s %d for %s in %.1f ms", method, route, code, who, seconds * 1000, extra={"facts": facts}
        )
