"""The two sides of Slack: cards that are posted and kept up to date, and presses that come back."""

import asyncio
import contextlib
import logging
import random
from typing import Any, Final

import aiohttp
from fastapi import FastAPI
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient

from ..._async.client import AsyncBroker
from ..._async.events import Event, EventType
from ...core.models import Audience
from ...core.records import InterruptRecord
from ...core.states import Settlement
from ...errors import UnknownId
from ..duty import Duty
from . import cards
from .presses import Presses
from .settings import SlackSettings

log: logging.Logger = logging.getLogger("broker.slack")

CURSOR: Final = "slack"
FAULTS: Final = (aiohttp.ClientError, OSError, TimeoutError)
LATER: Final = frozenset(
    {"ratelimited", "service_unavailable", "internal_error", "fatal_error", "request_timeout"}
)


class Slack:
    """Approvals of a namespace in one channel. Start it in as many processes as you like: one of them posts."""

    def __init__(self, broker: AsyncBroker, settings: SlackSettings) -> None:
        self._broker = broker
        self._settings = settings
        self._duty = Duty(broker, CURSOR, settings.lease)
        handlers = [AsyncConnectionErrorRetryHandler(), AsyncRateLimitErrorRetryHandler(max_retry_count=2)]
        self._api = AsyncWebClient(settings.token, base_url=settings.api, timeout=10, retry_handlers=handlers)
        self._presses = Presses(broker, settings, self._api, self.show)

    def install(self, app: FastAPI) -> None:
        """Adds the route that Slack sends presses to: `POST /v1/slack/interactive`."""
        app.include_router(self._presses.router)

    async def run(self) -> None:
        """Posts a card for each new approval, and updates it when it is settled, until it is cancelled."""
        await self._duty.run(self._follow)

    async def _follow(self) -> None:
        new = await self._broker.events.position(CURSOR) is None
        async for found in self._duty.batches():
            if new:
                await self._post_all()
                new = False
            for event in found:
                await self._tell(event)

    async def _post_all(self) -> None:
        """A card for whatever is open; and those that are there, as it is now."""
        for interrupt in await self._broker.events.notes(CURSOR):
            with contextlib.suppress(UnknownId):
                await self._persist(await self._broker.inbox.get(interrupt))
        cursor = None
        while True:
            page = await self._broker.inbox.list(queue=self._settings.queue, cursor=cursor, limit=100)
            for record in page.items:
                await self._persist(record)
            cursor = page.cursor
            if cursor is None:
                return

    async def _tell(self, event: Event) -> None:
        if event.type == EventType.GAP:
            await self._post_all()
        elif event.type in (EventType.OPENED, EventType.SETTLED) and event.interrupt_id is not None:
            with contextlib.suppress(UnknownId):
                await self._persist(await self._broker.inbox.get(event.interrupt_id))

    async def _persist(self, record: InterruptRecord) -> None:
        """Shows a card, again and again where Slack cannot be reached; what Slack refuses is left."""
        pause = 0.5
        while True:
            try:
                await self.show(record)
            except SlackApiError as refused:
                if refused.response.get("error") not in LATER:
                    log.error("Slack refuses the card of %s: %s", record.id, refused.response.get("error"))  # noqa: TRY400
                    return
            except FAULTS as fault:
                log.warning("Slack cannot be reached: %s", fault)
            else:
                return
            await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311 - jitter
            pause = min(pause * 2, 30.0)

    async def show(self, record: InterruptRecord) -> None:
        """Posts the card of an interrupt, or brings it up to date. Safe to repeat."""
        noted = await self._broker.events.noted(CURSOR, record.id)
        message: dict[str, Any] = cards.message(record, self._settings.inbox)
        if noted is not None:
            channel, ts = noted.split(" ", 1)
            only = {name: message[name] for name in ("text", "blocks", "parse", "link_names")}
            await self._api.chat_update(channel=channel, ts=ts, **only)
            if record.state is not Settlement.OPEN:
                await self._broker.events.note(CURSOR, record.id, None)
        elif self._is_for_slack(record):
            # To its end, also where this bot is stopped meanwhile: a card that nobody has noted is posted again.
            await asyncio.shield(self._post(record.id, message))

    async def _post(self, interrupt: str, message: dict[str, Any]) -> None:
        posted = await self._api.chat_postMessage(channel=self._settings.channel, **message)
        await self._broker.events.note(CURSOR, interrupt, f"{posted['channel']} {posted['ts']}")

    def _is_for_slack(self, record: InterruptRecord) -> bool:
        return (
            record.state is Settlement.OPEN
            and record.interrupt.addressed_to is Audience.APPROVALS
            and self._settings.queue in (None, record.queue)
        )
