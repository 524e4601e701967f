"""The server is killed and started again, under load: nothing that was acknowledged is missing, and everything goes on.

A kill of the process, not of the machine: what the server has written is in the page cache and outlives it, fsynced
or not. What a power cut takes is told in docs/howto/durability.md, and what waits for the disk is shown in
tests/durability.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from broker import Accepted, Approve, AsyncBroker, Outcome, Principal, Replayed, Unavailable, UnknownId
from broker.testing import ServerProcess, await_until
from tests.worker.fleet import Agents

from .asking import all_over, open_questions, start_all
from .crew import SETTINGS, Crew, judge
from .ledger import Ledger, takes
from .sizes import Size

pytestmark = pytest.mark.drill


class Answering:
    """Answers at a pace, with what was acknowledged, and what nobody knows of."""

    def __init__(self, broker: AsyncBroker) -> None:
        self.broker = broker
        self.told: dict[str, Outcome] = {}
        self.unsure: list[str] = []

    async def answer_all(self, ids: list[str], per_second: float) -> None:
        async with asyncio.TaskGroup() as group:
            for one in ids:
                group.create_task(self._answer(one))
                await takes(1 / per_second)

    def has_told(self, few: int) -> bool:
        return len(self.told) >= few

    async def _answer(self, one: str) -> None:
        try:
            self.told[one] = await self.broker.inbox.answer(one, Approve())
        except Unavailable:
            self.unsure.append(one)

    async def missing(self) -> list[str]:
        """What is acknowledged now and not there."""
        found = []
        for one in list(self.told):
            try:
                settled = (await self.broker.inbox.get(one)).resolution
            except UnknownId:
                settled = None
            if settled is None:
                found.append(one)
        return found


@pytest.mark.parametrize(("fsync", "reached"), [("everysec", "memory"), ("always", "fsynced")])
async def test_R08_nothing_acknowledged_is_missing_after_kills_of_the_server(
    start_server: Callable[..., ServerProcess], processes: Callable[..., Agents], namespace: str, tmp_path: Path,
    size: Size, fsync: str, reached: str,
) -> None:  # fmt: skip
    """Off: `appendonly` of the server (lost); `_persist` of link.py without its repeats (unsure)."""
    server = start_server({"appendfsync": fsync})
    me = Principal.local("me")
    async with AsyncBroker(server.url, namespace=namespace, settings=SETTINGS, by=me) as broker:
        crew = Crew(broker, partial(processes, url=server.url), Ledger(tmp_path / "ledger"), pace=0.05)
        crew.hire(2)
        runs = await start_all(broker, "pays", size(40, 400))
        ids, answering = await open_questions(broker, len(runs)), Answering(broker)
        task = asyncio.create_task(answering.answer_all(ids, per_second=size(40, 200)))
        missing: list[str] = []
        for kill in range(1, size(3, 6)):
            few = len(ids) * kill // size(4, 8)
            await await_until(partial(answering.has_told, few), 30)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            missing += await answering.missing()
        await task
        await all_over(broker, runs)
        crew.killed = {worker.pid for worker in crew.alive}  # a lease may be lost while the server is away
        verdict = await judge(crew, runs)
        verdict.lost += missing + await answering.missing()
        verdict.unsure = answering.unsure
        assert verdict.is_complete, verdict
        for told in answering.told.values():
            assert isinstance(told, Accepted | Replayed)
            assert str(told.durability) == reached
