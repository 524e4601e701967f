"""R11: what a server lost under a fleet at work is noticed, said, and built again from the records, or refused."""

import asyncio
import logging
from typing import Any

import pytest
import redis

from broker import Action, AsyncBroker, Interrupt, RunState, UnknownId, Worker
from broker.testing import ServerProcess, await_until
from tests.worker.fleet import run_when

from .fleet import both_readers, calls, goes_through
from .world import QUICK


@pytest.fixture(autouse=True)
def looks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker._async.waiting.LOOK_AGAIN_SECONDS", 0.5)


class Load:
    """Runs that come one after the other for as long as it is asked for, and what became of them."""

    def __init__(self, broker: AsyncBroker) -> None:
        self._broker = broker
        self.finished = self.lost = 0
        self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        n = 0
        while True:
            n += 1
            try:
                started = await self._broker.start("asks", n, session=f"load-{n}")
                await self._broker.wait(started.run_id, 30)
                self.finished += 1
            except UnknownId:
                self.lost += 1

    async def grows(self, by: int) -> None:
        """Returns when so many more have finished."""
        goal = self.finished + by
        await await_until(lambda: self.finished >= goal or self._task.done(), 20)
        assert not self._task.done()

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_R11_a_fleet_under_load_outlives_FLUSHALL(
    fleet: AsyncBroker, own_server: ServerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """Who waits is told that there is nothing, who holds a run loses it, and new runs are served.

    Off: `_ensure_groups` after NOGROUP, `keep_namespace`, or the looks of `wait_for`.
    """
    cancelled = asyncio.Event()

    async def holds(_: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    worker = Worker(own_server.url, settings=QUICK, sweeps=False)
    worker.add("holds", holds)
    serving = asyncio.create_task(worker.serve())
    held = await fleet.start("holds", session="held")
    job = Interrupt.completion(Action(tool="render", arguments={}), "job")
    paused = [await fleet.suspend("x", job, session=f"s{n}") for n in range(20)]
    await run_when(fleet, held.run_id, RunState.LEASED)
    load = Load(fleet)
    await load.grows(3)
    waits = [asyncio.create_task(fleet.wait(one.interrupt_ids[0])) for one in paused]
    waits.append(asyncio.create_task(fleet.wait(held.run_id)))
    with caplog.at_level(logging.WARNING, "broker"):
        own_server.call("FLUSHALL")
        told = await asyncio.wait_for(asyncio.gather(*waits, return_exceptions=True), 20)
        assert {type(one) for one in told} == {UnknownId}
        await asyncio.wait_for(cancelled.wait(), 20)
        await load.grows(5)
        await await_until(lambda: own_server.call("EXISTS", "{default}:meta") == 1)
    for lost in ("namespace default is gone", "group approvals is gone"):
        assert lost in caplog.text
    await load.end()
    assert not serving.done()
    worker.stop()
    await serving


@pytest.mark.report("RA59")
async def test_R11_after_FLUSHALL_nobody_spins(
    fleet: AsyncBroker, own_server: ServerProcess, own_client: redis.Redis
) -> None:
    """An idle fleet makes each group once again, and waits. Off: `_fresh` is never unset, or no read is blocked."""
    await goes_through(fleet, 1)
    before = calls(own_client)
    own_server.call("FLUSHALL")
    await goes_through(fleet, 2)
    began = await server_seconds(own_client)
    while await server_seconds(own_client) - began < 2:
        await goes_through(fleet, 3)
    after = calls(own_client)
    assert after["xgroup|create"] - before["xgroup|create"] <= 6
    await await_until(lambda: both_readers(own_client))


async def server_seconds(client: redis.Redis) -> int:
    return int(client.time()[0])


async def test_R11_FLUSHALL_forgets_what_was_asked_and_lets_it_be_asked_again(
    fleet: AsyncBroker, own_server: ServerProcess
) -> None:
    """Under its old key, with its old ids: nobody is told that it was answered."""
    job = Interrupt.completion(Action(tool="render", arguments={}), "job")
    before = await fleet.suspend("x", job, session="s", key="k")
    await fleet.complete(before.interrupt_ids[0], 1)
    own_server.call("FLUSHALL")
    with pytest.raises(UnknownId):
        await fleet.inbox.get(before.interrupt_ids[0])
    assert (await fleet.complete(before.interrupt_ids[0], 1)).code == "unknown"
    assert (await fleet.active("s")) == {}
    again = await fleet.suspend("x", job, session="s", key="k")
    assert (again.code, again.run_id) == ("accepted", before.run_id)
