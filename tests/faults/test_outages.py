"""Servers that are slow, silent, loading, full, or have forgotten the scripts."""

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from broker import (
    Approve,
    AsyncBroker,
    Broker,
    RunRecord,
    RunState,
    Unavailable,
    Worker,
)
from broker.embedded.resp import ReplyError
from broker.testing import FaultProxy, RunningServer, ServerProcess, await_until

from .world import ADA, QUICK, SESSION, approval, told


async def test_R17_a_slow_server_is_waited_for(proxy: FaultProxy, namespace: str) -> None:
    async with AsyncBroker(proxy.url, namespace=namespace, by=ADA) as broker:
        proxy.delay(0.15)
        paused = await broker.suspend("a", approval(), session=SESSION)
        assert told(await broker.inbox.answer(paused.interrupt_ids[0], Approve())) == "accepted"
    assert proxy.dropped == 0


@pytest.mark.usefixtures("loaded")
async def test_R17_a_silent_connection_is_given_up_and_the_call_sent_again(
    proxy: FaultProxy, namespace: str, short_patience: float
) -> None:
    """Half open: nothing says that the other side is gone, but our own deadline."""
    async with AsyncBroker(proxy.url, namespace=namespace, by=ADA) as broker:
        paused = await broker.suspend("a", approval(), session=SESSION)
        proxy.drop_next_reply(b"EVAL", then="silence")
        assert told(await broker.inbox.answer(paused.interrupt_ids[0], Approve())) == "replayed"
        assert [one.event for one in await broker.history(SESSION)] == ["suspended", "resolved"]
    with Broker(proxy.url, namespace=namespace, by=ADA) as blocking:
        proxy.drop_next_reply(b"EVAL", then="silence")
        assert told(blocking.start("a", session=SESSION, key="k")) == "replayed"
    assert short_patience > 0


async def test_R17_a_server_that_hangs_says_unsure_in_the_end(
    proxy: FaultProxy, namespace: str, short_patience: float
) -> None:
    async with AsyncBroker(proxy.url, namespace=namespace, by=ADA, patience=3 * short_patience) as broker:
        paused = await broker.suspend("a", approval(), session=SESSION)
        proxy.hang()
        with pytest.raises(Unavailable) as writing:
            await broker.start("a", session=SESSION)
        with pytest.raises(Unavailable) as reading:
            await broker.inbox.get(paused.interrupt_ids[0])
        assert (writing.value.unsure, reading.value.unsure) == (True, False)
        proxy.restore()
        assert told(await broker.inbox.answer(paused.interrupt_ids[0], Approve())) == "accepted"


async def test_a_server_that_comes_back_in_time_is_no_error(proxy: FaultProxy, namespace: str) -> None:
    async with AsyncBroker(proxy.url, namespace=namespace, by=ADA) as broker:
        proxy.refuse()
        calls = [asyncio.create_task(broker.start("a", n, session=f"s{n}", key="k")) for n in range(20)]
        waits = asyncio.create_task(broker.wait((await started(proxy, calls)).run_id, 20))
        await asyncio.gather(*calls)
        async with broker.take(calls[0].result().run_id) as run:
            await run.finish()
        assert (await waits).state is RunState.FINISHED


async def started(proxy: FaultProxy, calls: list[asyncio.Task[Any]]) -> Any:
    done, _ = await asyncio.wait(calls, timeout=0.1)
    assert not done
    proxy.restore()
    return await calls[0]


async def test_who_waits_misses_nothing_when_the_line_is_cut(
    proxy: FaultProxy, server: RunningServer, namespace: str
) -> None:
    async with (
        AsyncBroker(proxy.url, namespace=namespace, by=ADA) as far,
        AsyncBroker(server.url, namespace=namespace, by=ADA) as near,
    ):
        for n in range(10):
            paused = await near.suspend("a", approval(n), session=f"s{n}")
            waits = asyncio.create_task(far.wait(paused.interrupt_ids[0], 20))
            proxy.cut()
            await near.inbox.answer(paused.interrupt_ids[0], Approve())
            async with asyncio.timeout(5):
                await waits


async def test_a_blocking_wait_misses_nothing_when_the_line_is_cut(
    proxy: FaultProxy, server: RunningServer, namespace: str
) -> None:
    with Broker(proxy.url, namespace=namespace) as far:
        async with AsyncBroker(server.url, namespace=namespace, by=ADA) as near:
            for n in range(5):
                paused = await near.suspend("a", approval(n), session=f"s{n}")
                waits = asyncio.create_task(asyncio.to_thread(far.wait, paused.interrupt_ids[0], 20))
                proxy.cut()
                await near.inbox.answer(paused.interrupt_ids[0], Approve())
                async with asyncio.timeout(5):
                    await waits


async def test_a_follower_and_a_worker_outlive_cuts_and_outages(
    proxy: FaultProxy, server: RunningServer, namespace: str
) -> None:
    async def asks(run: Any) -> Any:
        if run.seq == 0:
            return await run.suspend(approval(run.input))
        return str(run.resolutions[0].kind)

    async def approve(broker: AsyncBroker) -> None:
        async with aclosing(broker.inbox.follow("approvals")) as deliveries:
            async for delivery in deliveries:
                await broker.inbox.answer(delivery.record.id, Approve())

    worker = Worker(proxy.url, namespace=namespace, settings=QUICK)
    worker.add("asks", asks)
    serving = asyncio.create_task(worker.serve())
    async with (
        AsyncBroker(proxy.url, namespace=namespace, settings=QUICK, by=ADA) as far,
        AsyncBroker(server.url, namespace=namespace, settings=QUICK) as near,
    ):
        approving = asyncio.create_task(approve(far))
        for n in range(9):
            began = await near.start("asks", n, session=f"s{n}")
            (proxy.cut if n % 3 else proxy.refuse)()
            proxy.restore()
            found = await near.wait(began.run_id, 20)
            assert isinstance(found, RunRecord)
            assert (found.state, found.result) == (RunState.FINISHED, "approve")
        approving.cancel()
        await asyncio.gather(approving, return_exceptions=True)
    worker.stop()
    await serving


async def test_a_server_that_loads_is_waited_for(start_server: Callable[..., ServerProcess]) -> None:
    server = start_server({"key-load-delay": 0, "loading-process-events-interval-bytes": 1024})
    async with AsyncBroker(server.url, by=ADA) as broker:
        paused = await broker.suspend("a", approval(), session=SESSION)
        for n in range(20):
            await broker.start("a", random.randbytes(1000).hex(), session=f"s{n}")
        # Only while it reads a snapshot it answers now and then that it loads.
        server.call("BGREWRITEAOF")
        await await_until(lambda: b"aof_rewrite_in_progress:0" in persistence(server))
        server.config["key-load-delay"] = 10_000
        starting = asyncio.create_task(asyncio.to_thread(server.restart))
        await await_until(lambda: is_loading(server) or starting.done())
        assert told(await broker.inbox.answer(paused.interrupt_ids[0], Approve())) == "accepted"
        await starting
        assert len(await broker.history(SESSION)) == 2
    stats = server.call("INFO", "errorstats")
    assert isinstance(stats, bytes)
    assert b"errorstat_LOADING" in stats


def persistence(server: ServerProcess) -> bytes:
    said = server.call("INFO", "persistence")
    assert isinstance(said, bytes)
    return said


def is_loading(server: ServerProcess) -> bool:
    try:
        server.call("PING")
    except ReplyError as error:
        return str(error).startswith("LOADING")
    except OSError:
        return False
    return False
