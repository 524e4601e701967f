"""Following the doorbell of a group: own leftovers first, then what is new, then what dead readers left behind."""

import logging
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

from ..core.models import Audience
from ..core.records import InterruptRecord
from ..core.states import Settlement
from ..errors import BrokerError, OutOfMemory, Unavailable
from ..store.commands import reads, sweep
from ..store.commands.sweep import Entry
from ..store.commands.values import text
from ..store.connect import FAULTS, Gone, Later, NoGroup, meaning
from ..store.delivery import Delivery
from ..store.keys import Partition
from ._runtime import Client, deadline, make_client, monotonic, sleep
from .link import Link

log = logging.getLogger("broker")

BLOCK_MS = 5000
MARGIN_SECONDS = 3.0
LEAVE_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.5
"""What was read so long ago is read again before it is delivered: it may have been settled meanwhile."""


class Follower:
    """The reading side of one consumer of one group, over all partitions, on a connection of its own."""

    def __init__(
        self, link: Link, group: str, consumer: str, batch: int, claim_after: timedelta | None
    ) -> None:
        self._link = link
        self._group = group
        self._consumer = consumer
        self._batch = batch
        self._claim_after = claim_after
        self._claim_at = 0.0
        self._claim_from: dict[str, Any] = {}
        self._fresh = True
        self._streams: dict[str, Partition] = {}
        self._client: Client = make_client(link.source, link.options, BLOCK_MS / 1000 + MARGIN_SECONDS)

    async def aclose(self) -> None:
        """Gives the connection back. What was not acknowledged goes to another reader."""
        try:
            async with deadline(LEAVE_SECONDS):
                for stream in self._streams:
                    await self._leave(stream)
        except FAULTS:
            pass
        finally:
            await self._client.aclose()

    async def _leave(self, stream: str) -> None:
        """Takes the name of this reader out of the group, unless entries are still on it: they would go with it."""
        rows = await self._client.execute_command(
            "XPENDING", stream, self._group, "-", "+", 1, self._consumer
        )
        if not rows:
            await self._client.execute_command("XGROUP", "DELCONSUMER", stream, self._group, self._consumer)

    async def deliveries(self) -> AsyncGenerator[Delivery, None]:
        """Deliveries for ever; a lost server only makes them late."""
        await self._link.open()
        self._streams = {p.key("interrupts"): p for p in self._link.space.all()}
        pause = 0.05
        try:
            while True:
                try:
                    entries = await self._next()
                    opened = await self._open_records(entries)
                    read_at, pause = monotonic(), 0.05
                except (*FAULTS, OutOfMemory, Unavailable) as error:
                    self._fresh, pause = True, min(pause * 2, 1.0)
                    self._pass_over(error)
                    await sleep(pause)
                    continue
                for entry, found in zip(entries, opened, strict=True):
                    record = found
                    if record is not None and monotonic() - read_at > LOOK_AGAIN_SECONDS:
                        try:
                            (record,) = await self._open_records([entry])
                        except Unavailable:
                            self._fresh = True  # this one and the rest are still this reader's
                            break
                    if record is not None:
                        yield Delivery(record, entry)
                    await self._acknowledge(entry)
        finally:
            await self.aclose()

    async def _next(self) -> list[Entry]:
        """The next entries: own leftovers after a (re)connect, then those of dead readers when it is time, then new."""
        if self._fresh:
            await self._ensure_groups()
            if leftovers := await self._read("0"):
                return leftovers
            self._fresh = False
        if monotonic() >= self._claim_at:
            entries = await self._claim()
            self._claim_at = monotonic() + (0 if entries else self._idle.total_seconds() / 3)
            if entries:
                return entries
        return await self._read(">")

    def _pass_over(self, error: BaseException) -> None:
        """Nothing for a fault that passes (entries not acknowledged are read again); raises any other."""
        fault = meaning(error)
        if isinstance(fault, NoGroup):
            log.warning("group %s is gone: the server lost data; creating it again", self._group)
        elif isinstance(fault, BrokerError) and not isinstance(fault, OutOfMemory | Unavailable):
            raise fault from None
        elif not isinstance(fault, BrokerError | Gone | Later):
            raise error

    async def _acknowledge(self, entry: Entry) -> None:
        try:
            await self._link.run(sweep.seen(entry.partition, self._group, [entry]))
        except Unavailable:
            self._fresh = True  # it is still this reader's, and comes again when the server does

    async def _ensure_groups(self) -> None:
        for stream in self._streams:
            async with deadline(MARGIN_SECONDS):
                await self._client.execute_command(*sweep.make_group(stream, self._group))

    async def _read(self, since: str) -> list[Entry]:
        block = ("BLOCK", BLOCK_MS) if since == ">" else ()
        marks = [since] * len(self._streams)
        async with deadline(BLOCK_MS / 1000 + MARGIN_SECONDS):
            reply = await self._client.execute_command(
                "XREADGROUP", "GROUP", self._group, self._consumer, "COUNT", self._batch, *block,
                "STREAMS", *self._streams, *marks,
            )  # fmt: skip
        return await self._entries(reply)

    async def _entries(self, reply: Any) -> list[Entry]:
        entries: list[Entry] = []
        rows = reply.items() if isinstance(reply, dict) else reply or ()
        for stream, found in rows:
            p = self._streams[text(stream)]
            entries += await self._usable(p, found)
        return entries

    async def _usable(self, p: Partition, found: Any) -> list[Entry]:
        """The entries for this group; others, and those that were trimmed away meanwhile, are acknowledged at once."""
        mine: list[Entry] = []
        others: list[Entry] = []
        for entry_id, fields in found:
            entry = Entry.parse(p, entry_id, fields or {})
            # A group of the house gets what is addressed to it; a service's own group gets everything.
            wanted = fields and (self._group not in set(Audience) or entry.audience == self._group)
            (mine if wanted else others).append(entry)
        if others:
            await self._link.run_all(sweep.seen(p, self._group, others))
        return mine

    @property
    def _idle(self) -> timedelta:
        """After how long an entry in another reader's hands is taken from it."""
        return self._claim_after or self._link.settings.lease * 2

    async def _claim(self) -> list[Entry]:
        entries: list[Entry] = []
        for stream, p in self._streams.items():
            async with deadline(MARGIN_SECONDS):
                reply = await self._client.execute_command(
                    "XAUTOCLAIM",
                    stream,
                    self._group,
                    self._consumer,
                    round(self._idle.total_seconds() * 1000),
                    self._claim_from.get(stream, "0"),
                    "COUNT",
                    self._batch,
                )
            self._claim_from[stream] = reply[0]  # it looks at some entries at a time, from where it left off
            entries += await self._usable(p, reply[1])
        return entries

    async def _open_records(self, entries: list[Entry]) -> list[InterruptRecord | None]:
        """The record of each entry's interrupt, None where it is not open."""
        found: dict[str, InterruptRecord] = {}
        for p in self._streams.values():
            ids = [entry.address.interrupt for entry in entries if entry.partition == p]
            for asked in await self._link.fetch(reads.read_all_asked(p, ids)):
                if asked is not None and asked[1].state is Settlement.OPEN:
                    self._link.asked.keep(asked)
                    found[asked[1].id] = asked[1]
        return [found.get(entry.address.interrupt) for entry in entries]
