"""P1: nothing that was approved runs before its approval, its lease and its begin record are on the disk."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
import redis

from broker import (
    Approve,
    AsyncBroker,
    Corrupt,
    Durability,
    Paused,
    Run,
    RunRecord,
    RunState,
    Settings,
    Unavailable,
    Worker,
)
from broker.core.tools import Tool
from broker.errors import AttemptOver
from broker.testing import ServerProcess, await_until

from .calls import ANN, FSYNCED
from .sources import waiting

HASTY = Settings(
    durability=FSYNCED, confirm_within=timedelta(seconds=1), lease=timedelta(seconds=1),
    backoff_first=timedelta(milliseconds=10), backoff_most=timedelta(milliseconds=20),
    sweep_every=timedelta(milliseconds=100), tries=1000,
)  # fmt: skip

Start = Callable[..., ServerProcess]


class Desk:
    """A tool that needs somebody's yes, and what it has done."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.tries = 0
        self.pay = Tool("pay", self._pay, gated=True)
        self.render = Tool("render", self._pay, long_running=True)

    async def _pay(self, id: str) -> str:
        self.done.append(id)
        return f"paid {id}"

    async def agent(self, run: Run[None]) -> Any:
        """Calls the tool; whatever goes wrong is told to the model, as loops do."""
        self.tries += 1
        try:
            return await run.call(self.pay, {"id": "A1"}, call_id="c1")
        except Exception as error:  # noqa: BLE001 - what agents do
            return f"the model was told: {error}"


def sync(own: ServerProcess, policy: str) -> None:
    """From now on this is the server's way to its disk: with `no`, WAITAOF waits in vain."""
    own.call("CONFIG", "SET", "appendfsync", policy)


@pytest.fixture
def own(start_server: Start) -> ServerProcess:
    """A server that can wait for its disk, and at present needs no wait."""
    return start_server({"appendfsync": "always"}, port=0, program=waiting().binary)


@pytest.fixture
async def broker(own: ServerProcess) -> AsyncGenerator[AsyncBroker]:
    """A broker whose confirmed calls wait by WAITAOF: when it opened, the server synced every second."""
    sync(own, "everysec")
    async with AsyncBroker(own.tcp_url, namespace="a", settings=HASTY, by=ANN) as broker:
        sync(own, "always")
        yield broker


async def approved(broker: AsyncBroker, desk: Desk) -> str:
    """A run whose gated call was approved: it is ready."""
    started = await broker.start("airline", session="s_1")
    async with broker.take(started.run_id) as run:
        with pytest.raises(Paused):
            await run.call(desk.pay, {"id": "A1"}, call_id="c1")
    (waiting_,) = (await broker.inbox.list()).items
    assert (await broker.inbox.answer(waiting_.id, Approve())).durability == FSYNCED
    return started.run_id


async def test_a_begin_that_is_not_confirmed_runs_nothing(own: ServerProcess, broker: AsyncBroker) -> None:
    desk = Desk()
    run_id = await approved(broker, desk)
    async with broker.take(run_id) as run:
        sync(own, "no")
        with pytest.raises(Unavailable) as fault:
            await run.call(desk.pay, {"id": "A1"}, call_id="c1")
        assert fault.value.unsure
        with pytest.raises(AttemptOver):  # whatever the handler makes of it
            await run.step(desk._pay, "other")
        await run.release()
    assert desk.done == []
    sync(own, "always")
    async with broker.take(run_id) as run:
        assert await run.call(desk.pay, {"id": "A1"}, call_id="c1") == "paid A1"
    assert desk.done == ["A1"]


async def test_the_same_for_the_start_of_a_job(own: ServerProcess, broker: AsyncBroker) -> None:
    desk = Desk()
    started = await broker.start("airline", session="s_1")
    async with broker.take(started.run_id) as run:
        sync(own, "no")
        with pytest.raises(Unavailable):
            await run.call(desk.render, {"id": "A1"}, call_id="c1")
        sync(own, "always")
    assert desk.done == []


async def test_an_inline_call_waits_with_its_result_only(own: ServerProcess, broker: AsyncBroker) -> None:
    desk = Desk()
    started = await broker.start("airline", session="s_1")
    async with broker.take(started.run_id) as run:
        sync(own, "no")
        with pytest.raises(Unavailable):
            await run.step(desk._pay, "A1")
        assert desk.done == ["A1"]
        sync(own, "always")
        await run.release()
    async with broker.take(started.run_id) as run:
        assert await run.step(desk._pay, "A1") == "paid A1"
    assert desk.done == ["A1"]


async def test_the_verdict_is_read_after_the_barrier_on_the_same_connection(
    own: ServerProcess, broker: AsyncBroker
) -> None:
    desk = Desk()
    run_id = await approved(broker, desk)
    with redis.Redis.from_url(own.tcp_url) as client, client.monitor() as monitor:
        async with broker.take(run_id) as run:
            await run.call(desk.pay, {"id": "A1"}, call_id="c1")
        client.set("the end", 1)
        seen = []
        for line in monitor.listen():
            seen.append((line["client_address"] + line["client_port"], line["command"]))
            if line["command"].startswith("SET the end"):
                break
    reads = [n for n, (_, words) in enumerate(seen) if words.startswith("GET ") and ":verdict:" in words]
    (last,) = reads[-1:]
    who, _ = seen[last]
    before = [words.split(" ")[0] for one, words in seen[:last] if one == who]
    assert before[-3:] in (["EVALSHA", "EVAL", "WAITAOF"], ["EVAL", "EVAL", "WAITAOF"])
    assert who not in {one for one, words in seen if words.startswith("GET ") and ":run:" in words}


async def test_nothing_runs_without_the_verdict_itself(own: ServerProcess, broker: AsyncBroker) -> None:
    """The record says approved; the key that only deciders write is not there."""
    desk = Desk()
    run_id = await approved(broker, desk)
    async with broker.take(run_id) as run:
        with redis.Redis.from_url(own.url) as client:
            assert client.delete(*client.keys("*:verdict:*")) == 1
        with pytest.raises(Corrupt, match="it is not there"):
            await run.call(desk.pay, {"id": "A1"}, call_id="c1")
    assert desk.done == []


async def test_memory_reads_the_verdict_with_the_begin(start_server: Start) -> None:
    desk = Desk()
    settings = Settings(durability=Durability.memory())
    server = start_server()
    async with AsyncBroker(server.url, namespace="a", settings=settings, by=ANN) as broker:
        started = await broker.start("airline", session="s_1")
        async with broker.take(started.run_id) as run:
            with suppress(Paused):
                await run.call(desk.pay, {"id": "A1"}, call_id="c1")
        (asked,) = (await broker.inbox.list()).items
        await broker.inbox.answer(asked.id, Approve())
        async with broker.take(started.run_id) as run:
            assert await run.call(desk.pay, {"id": "A1"}, call_id="c1") == "paid A1"
    assert desk.done == ["A1"]


async def test_a_worker_comes_again_until_the_begin_is_confirmed(
    own: ServerProcess, broker: AsyncBroker
) -> None:
    desk = Desk()
    run_id = await approved(broker, desk)
    sync(own, "everysec")  # so that the worker's own connections wait
    worker = Worker(own.tcp_url, namespace="a", settings=HASTY)
    worker.add("airline", desk.agent)
    await worker.broker.open()
    sync(own, "no")
    serving = asyncio.create_task(worker.serve())
    await await_until(lambda: desk.tries >= 2, 30, what="the run came again")
    assert desk.done == []
    assert (await broker.runs.get(run_id)).state != RunState.FINISHED
    sync(own, "always")
    ended = await broker.wait(run_id, 30)
    worker.stop()
    await serving
    assert isinstance(ended, RunRecord)
    assert (ended.state, ended.result) == (RunState.FINISHED, "paid A1")
    assert desk.done == ["A1"]
