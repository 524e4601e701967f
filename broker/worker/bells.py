"""The ready bells a worker listens to. They only wake: the ready sets are the truth, so losing one costs latency."""

import asyncio
import contextlib
import logging
import random
from typing import Any

from .._async.link import Link
from ..errors import NotPermitted
from ..store.commands import sweep
from ..store.commands.values import pairs, text
from ..store.connect import FAULTS, Gone, Later, NoGroup, async_client, async_client_like, meaning
from ..store.keys import Pool

log: logging.Logger = logging.getLogger("broker")

GROUP = "workers"
BLOCK_MS = 5000
MARGIN_SECONDS = 3.0


class Bells:
    """One blocked reader for all bells of a worker, on a connection of its own.

    The group shares the entries out among the workers, one wake for each, without a pending list: nothing is owed to a
    reader that dies, since the sweeper rings again for what nobody took.
    """

    def __init__(self, link: Link, pools: list[Pool], name: str) -> None:
        self._streams = [p.key("bell", pool) for p in link.space.all() for pool in pools]
        self._name = name
        make = async_client if isinstance(link.source, str) else async_client_like
        self._client = make(link.source, link.options)
        self._fresh = True

    async def wait(self, most: int, stopped: asyncio.Task[bool]) -> list[str]:
        """The runs that rang, after some seconds at the latest, or at once when `stopped` is done. None may have."""
        read = asyncio.create_task(self._read(most))
        try:
            await asyncio.wait([read, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            read.cancel()
            # Not a bare await: that would take a cancellation of ours for the reader's.
            (ended,) = await asyncio.gather(read, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended
        return [] if isinstance(ended, BaseException) else ended

    async def _read(self, most: int) -> list[str]:
        try:
            async with asyncio.timeout(BLOCK_MS / 1000 + MARGIN_SECONDS):
                if self._fresh:
                    await self._ensure_groups()
                    self._fresh = False
                reply = await self._client.execute_command(
                    "XREADGROUP", "GROUP", GROUP, self._name, "COUNT", most, "BLOCK", BLOCK_MS, "NOACK",
                    "STREAMS", *self._streams, *[">"] * len(self._streams),
                )  # fmt: skip
            return _runs(reply)
        except FAULTS as error:
            fault = meaning(error)
            self._fresh = True
            if isinstance(fault, NotPermitted):
                raise fault from None
            if isinstance(fault, NoGroup):
                log.warning("group %s is gone: the server lost data; creating it again", GROUP)
            elif not isinstance(fault, Gone | Later):
                log.warning("bells: %s", fault)
            # Runs are found without bells too, only later.
            await asyncio.sleep(0.1 + random.random() / 5)  # noqa: S311 - jitter
            return []

    async def _ensure_groups(self) -> None:
        for stream in self._streams:
            await self._client.execute_command(*sweep.make_group(stream, GROUP))

    async def aclose(self) -> None:
        """Gives the connection back, and the consumer's name with it."""
        with contextlib.suppress(*FAULTS, TimeoutError):
            async with asyncio.timeout(1):
                for stream in self._streams:
                    await self._client.execute_command("XGROUP", "DELCONSUMER", stream, GROUP, self._name)
        await self._client.aclose()


def _runs(reply: Any) -> list[str]:
    """The runs that some entries name; what another program wrote names none."""
    rows = reply.values() if isinstance(reply, dict) else [entries for _, entries in reply or ()]
    fields = (pairs(flat or ()) for entries in rows for _, flat in entries)
    return [run for one in fields if (run := text(one.get("run", b"")))]
