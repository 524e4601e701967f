"""Notices of new approvals by mail and whatever else Apprise reaches: each a link to the inbox, never one that decides.

    await Notifier(broker, NotifySettings(targets=("mailto://...",), inbox="https://inbox.example")).run()

Needs the extra `notify`.
"""

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from typing import Final

from .._async.client import AsyncBroker
from .._async.events import Event, EventType
from ..core.models import Audience
from ..core.records import InterruptRecord
from ..core.states import Settlement
from ..errors import InvalidInput, MissingExtra, UnknownId
from .duty import Duty

if find_spec("apprise") is None:
    raise MissingExtra("notify", "Notices")

import apprise

log: logging.Logger = logging.getLogger("broker.notify")

CURSOR: Final = "notify"
TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """Whom to tell, and of what."""

    targets: tuple[str, ...] = field(repr=False)
    """Addresses as Apprise writes them; they may hold passwords."""
    inbox: str
    """The address of the inbox; a notice links to `<inbox>/interrupts/<id>`."""
    queue: str | None = None
    """Only approvals of this queue."""
    label: str | None = None
    """Only approvals with this label."""
    lease: timedelta = timedelta(seconds=15)
    """After how long another process takes over from one that has died."""


class Notifier:
    """Tells people that something waits for them. Of several processes one is at work.

    A notice says which agent asks about which tool, and where to look; never the arguments, nor what the agent wrote.
    It is sent once, tried three times: the inbox is where nothing gets lost. Raises `InvalidInput` for a bad target.
    """

    def __init__(self, broker: AsyncBroker, settings: NotifySettings) -> None:
        self._broker = broker
        self._settings = settings
        self._duty = Duty(broker, CURSOR, settings.lease)
        self._apprise = apprise.Apprise()
        for number, target in enumerate(settings.targets):
            if not self._apprise.add(target):
                raise InvalidInput(
                    f"targets[{number}]", "cannot be read", "an address as Apprise writes it: mailto://..."
                )

    async def run(self) -> None:
        """Sends a notice for each new approval, until it is cancelled."""
        await self._duty.run(self._follow)

    async def _follow(self) -> None:
        async for found in self._duty.batches():
            for event in found:
                await self._tell(event)

    async def _tell(self, event: Event) -> None:
        if (
            event.type != EventType.OPENED
            or event.interrupt_id is None
            or event.audience != Audience.APPROVALS
        ):
            return
        if self._settings.queue not in (None, event.queue) or self._settings.label not in (
            None,
            *event.labels,
        ):
            return
        with contextlib.suppress(UnknownId):
            record = await self._broker.inbox.get(event.interrupt_id)
            if record.state is Settlement.OPEN:
                await self._send(record)

    async def _send(self, record: InterruptRecord) -> None:
        action = record.interrupt.action
        title = f"{record.agent} asks: {action.tool}" if action is not None else f"{record.agent} asks"
        link = f"{self._settings.inbox.rstrip('/')}/interrupts/{record.id}"
        until = (
            f"\nIt waits until {record.deadline:%Y-%m-%d %H:%M} UTC." if record.deadline is not None else ""
        )
        body = f"Somebody has to decide. Look at it here: {link}{until}"
        for attempt in range(TRIES):
            sent = await self._apprise.async_notify(
                title=title, body=body, body_format=apprise.NotifyFormat.TEXT, interpret_escapes=False
            )
            if sent:
                return
            await asyncio.sleep(2**attempt)
        log.warning("the notice of %s did not reach everybody", record.id)
