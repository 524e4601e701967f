"""Serves a gateway until it is told to end, and lets it end in order.

At SIGTERM `/readyz` says 503 at once, while requests are still taken, so that a balancer looks elsewhere; after
`notice_seconds` no connection is taken any more, streams of events end, and open requests have `drain_seconds` to do
so too. SIGINT, and a second SIGTERM, leave the notice out.
"""

import asyncio
import contextlib
import math
import signal
from collections.abc import Generator

import uvicorn
from fastapi import FastAPI

from .settings import GatewaySettings


class _Server(uvicorn.Server):
    """A server whose signals are those of the gateway."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, notice: float) -> None:
        super().__init__(config)
        self._state = app.state
        self._notice = notice
        self._ending: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Listens to the signals by the event loop: a gateway that ended in order has ended well."""
        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGTERM, self._drain)
            loop.add_signal_handler(signal.SIGINT, self._end, signal.SIGINT)
        except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            with super().capture_signals():
                yield
            return
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
            loop.remove_signal_handler(signal.SIGINT)

    def _drain(self) -> None:
        if self._state.drains:
            self._end(signal.SIGTERM)
            return
        self._state.drains = True
        self._ending = asyncio.get_running_loop().call_later(self._notice, self._end, signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self._ending is not None:
            self._ending.cancel()
        self._state.drains = True
        self.handle_exit(number, None)  # the streams of events hear of it too


async def serve(app: FastAPI, host: str, port: int) -> None:
    """Serves an application of `create_app` until SIGTERM or SIGINT."""
    settings: GatewaySettings = app.state.settings
    config = uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, server_header=False,
        timeout_graceful_shutdown=max(math.ceil(settings.drain_seconds), 1),
    )  # fmt: skip
    await _Server(config, app, settings.notice_seconds).serve()
