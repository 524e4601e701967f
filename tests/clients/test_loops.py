"""One broker for each event loop, and what becomes of a task that is cancelled in the middle of a call."""

import asyncio
from contextlib import aclosing
from functools import partial

import pytest

from broker import Approve, AsyncBroker, InvalidInput, Worker
from broker.testing import RunningServer, await_until
from tests.clients.asking import ADA, refund


def test_a_broker_goes_on_in_the_next_loop(server: RunningServer, namespace: str) -> None:
    broker = AsyncBroker(server.url, namespace=namespace)

    async def start() -> int:
        async with broker:
            await broker.start("support", session="s")
            return len(await broker.runs.ready("agents"))

    assert [asyncio.run(start()) for _ in range(3)] == [1, 2, 3]


async def test_a_broker_of_a_living_loop_is_for_that_one(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace) as broker:

        def elsewhere() -> None:
            with pytest.raises(InvalidInput, match="another event loop"):
                asyncio.run(broker.fleet())

        await asyncio.to_thread(elsewhere)
        assert (await broker.fleet()).open == 0


async def test_two_loops_with_a_broker_each(server: RunningServer, namespace: str) -> None:
    async def answer(one: str) -> str:
        async with AsyncBroker(server.url, namespace=namespace, by=ADA) as broker:
            return (await broker.inbox.answer(one, Approve())).code

    async with AsyncBroker(server.url, namespace=namespace) as broker:
        paused = await broker.suspend("support", refund(), session="s")
        waits = asyncio.create_task(broker.wait(paused.interrupt_ids[0], 10))
        assert await asyncio.to_thread(lambda: asyncio.run(answer(paused.interrupt_ids[0]))) == "accepted"
        await waits


async def test_many_more_calls_than_connections(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace) as broker:
        await asyncio.gather(*(broker.start("support", session=f"s{n}") for n in range(500)))
        assert (await broker.queue("agents").counts()).popitem()[1] == 500
        pool = broker._link.client.connection_pool
        assert len(pool._available_connections) <= pool.max_connections == 64


async def test_a_cancelled_call_leaves_a_broker_that_works(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace, by=ADA) as broker:
        for n in range(60):
            call = asyncio.create_task(broker.start("support", {"n": n}, session=f"s{n}", key="k"))
            for _ in range(n % 6):
                await yielded()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert (await broker.start("support", {"n": n}, session=f"s{n}", key="k")).session_id == f"s{n}"


async def yielded() -> None:
    """One turn of the loop."""
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned


async def test_cancelling_a_follower_ends_it_each_time(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace, by=ADA) as broker:
        reading = 0

        async def follow() -> None:
            nonlocal reading
            async with aclosing(broker.inbox.follow("approvals")) as deliveries:
                reading += 1
                async for delivery in deliveries:
                    await broker.inbox.answer(delivery.record.id, Approve())

        for n in range(100):
            task = asyncio.create_task(follow())
            if n % 3 == 0:
                await broker.suspend("support", refund(n), session=f"s{n}")
            await await_until(lambda n=n: reading > n)  # type: ignore[misc]
            for _ in range(n):
                await yielded()
            task.cancel()
            async with asyncio.timeout(5):
                await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()


async def test_cancelling_a_wait_ends_it_each_time(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace, by=ADA) as broker:
        paused = await broker.suspend("support", refund(), session="s")
        for n in range(100):
            task = asyncio.create_task(broker.wait(paused.interrupt_ids[0]))
            for _ in range(n):
                await yielded()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
        task = asyncio.create_task(broker.wait(paused.interrupt_ids[0]))
        await broker.inbox.answer(paused.interrupt_ids[0], Approve())
        async with asyncio.timeout(5):
            await task


async def test_cancelling_a_worker_ends_it_each_time(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace, by=ADA) as broker:
        for n in range(15):
            worker = Worker(server.url, namespace=namespace, name=f"w-{n}")

            @worker.agent("support")
            async def support(_: object) -> None:
                await asyncio.Event().wait()

            started = await broker.start("support", session="s")
            task = asyncio.create_task(worker.serve())
            if n % 3:
                await await_until(partial(is_leased, broker, started.run_id))
            for _ in range(7 * n):
                await yielded()
            task.cancel()
            async with asyncio.timeout(10):
                await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
            assert len(await broker.runs.ready("agents")) == n + 1  # given back, each time


async def is_leased(broker: AsyncBroker, run_id: str) -> bool:
    return (await broker.runs.get(run_id)).state == "leased"
