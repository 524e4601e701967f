"""The one sender of a namespace: follows what happens, stores a post for each address, sends what is due."""

import asyncio
import contextlib
import json
import logging
import random
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import httpx
from standardwebhooks import Webhook

from ..._async.client import AsyncBroker
from ..._async.hooks import CURSOR
from ...core.hooks import PAUSES, Hook, Post
from ..duty import Duty
from .target import Network, NotAllowed, PinnedTransport

log: logging.Logger = logging.getLogger("broker.webhooks")

GONE: Final = 410
LONGEST_ASKED: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """The numbers of a sender."""

    answers_in: float = 15.0
    """How long an address may take, in seconds."""
    at_once: int = 32
    """How many posts may be under way."""
    at_once_each: int = 4
    """How many of them to one address: a slow one holds up nobody else."""
    pauses: tuple[timedelta, ...] = PAUSES
    """How long is waited after each failed attempt, with a jitter of a tenth."""
    lease: timedelta = timedelta(seconds=15)
    """After how long another sender takes over from one that has died."""
    allowed: tuple[Network, ...] = ()
    """Networks that are not public and may be posted to all the same."""


class WebhookSender:
    """Sends the webhooks of a namespace while it is the one that may: start as many as you like.

    Each post arrives at least once, signed, with an id (`webhook-id`) that is the same at each repeat.
    """

    def __init__(self, broker: AsyncBroker, settings: WebhookSettings | None = None) -> None:
        self._broker = broker
        self._settings = settings or WebhookSettings()
        self._outbox = broker.hooks.outbox()
        self._duty = Duty(broker, CURSOR, self._settings.lease)
        self._flying: dict[str, set[str]] = defaultdict(set)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stir = asyncio.Event()

    async def run(self) -> None:
        """Sends until it is cancelled. A lost server only makes it late."""
        await self._duty.run(self._collect, self._send)

    async def _send(self) -> None:
        transport = PinnedTransport(self._settings.allowed)
        async with httpx.AsyncClient(
            transport=transport, follow_redirects=False, timeout=self._settings.answers_in, trust_env=False
        ) as http:
            try:
                await self._deliver(http)
            finally:
                flying = tuple(self._tasks)
                for one in flying:
                    one.cancel()
                await asyncio.gather(*flying, return_exceptions=True)
                self._flying.clear()

    async def _collect(self) -> None:
        """Stores a post for each address that wants an event; then the cursor moves on."""
        async for found in self._duty.batches():
            if found:
                await self._outbox.put(found)
                self._stir.set()

    async def _deliver(self, http: httpx.AsyncClient) -> None:
        while True:
            self._stir.clear()
            hooks = [one for one in await self._outbox.hooks() if one.disabled_at is None]
            due = await self._outbox.due(hooks, self._settings.at_once_each * 2) if hooks else {}
            for hook in hooks:
                flying = self._flying[hook.id]
                ids = [one for one in due[hook.id] if one not in flying]
                room = min(
                    self._settings.at_once_each - len(flying), self._settings.at_once - len(self._tasks)
                )
                for post in await self._outbox.read(hook, ids[: max(room, 0)]):
                    self._start(http, hook, post)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._stir.wait()

    def _start(self, http: httpx.AsyncClient, hook: Hook, post: Post) -> None:
        self._flying[hook.id].add(post.id)
        task = asyncio.create_task(self._one(http, hook, post))
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._flying[hook.id].discard(post.id)
            self._stir.set()
            if not task.cancelled() and (fault := task.exception()) is not None:
                log.warning("post %s to %s: %s", post.id, hook.id, fault)

        task.add_done_callback(ended)

    async def _one(self, http: httpx.AsyncClient, hook: Hook, post: Post) -> None:
        now = await self._outbox.now()
        error, asked = "", None
        try:
            async with asyncio.timeout(self._settings.answers_in):
                body, headers = _signed(hook, post, now)
                request = http.build_request("POST", hook.url, content=body, headers=headers)
                response = await http.send(request, stream=True)
                await response.aclose()
            if response.is_success:
                await self._outbox.arrived(post)
                return
            error, asked = f"answered {response.status_code}", _asked(response)
            if response.status_code == GONE:
                await self._outbox.disable(hook)
        except NotAllowed as refused:
            error = str(refused)
        except (httpx.HTTPError, TimeoutError, ValueError) as fault:
            error = f"{type(fault).__name__}: {fault}"[:500]
        tries = self._settings.pauses
        pause = tries[post.tries] * (1 + random.random() / 10) if post.tries < len(tries) else None  # noqa: S311
        if pause is not None and asked is not None:
            pause = max(pause, asked)
        if error == f"answered {GONE}":
            pause = None
        log.info("post %s to %s has failed (%d): %s", post.id, hook.id, post.tries + 1, error)
        await self._outbox.failed(post, error, pause)


def _signed(hook: Hook, post: Post, now: datetime) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a post. They are signed when they are sent, with each secret that counts then."""
    told = post.event.to_json()
    assert isinstance(told, dict)  # noqa: S101 - as every model
    data = {name: value for name, value in told.items() if name not in ("type", "cursor")}
    body = json.dumps(
        {"type": post.event.type, "timestamp": post.event.at.isoformat(), "data": data}, separators=(",", ":")
    )
    signatures = [Webhook(secret).sign(post.id, now, body) for secret in hook.signs_with(now)]
    headers = {
        "content-type": "application/json",
        "user-agent": "interrupt-broker",
        "webhook-id": post.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
    return body.encode(), headers


def _asked(response: httpx.Response) -> timedelta | None:
    """How long an address asks to be left alone, up to an hour."""
    asked = response.headers.get("retry-after", "")
    return min(timedelta(seconds=int(asked)), LONGEST_ASKED) if asked.isdecimal() and len(asked) < 7 else None  # noqa: PLR2004
