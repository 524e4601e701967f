"""R17: connections that are open and dead. Nothing says so but our own deadlines; the wake comes by the next look."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from typing import Any

import pytest
import redis

from broker import Approve, AsyncBroker, Broker, Resolution, RunState, Sweeper, Worker
from broker._async._wire import at_once
from broker.store.keys import Keyspace
from broker.testing import FaultProxy, RunningServer, ServerProcess, await_until
from tests.clock import MOVABLE, Clock
from tests.worker.fleet import run_when

from .world import ADA, HOUR, QUICK, approval

LOOK_SECONDS = 0.5
Serve = Callable[..., Worker]


@pytest.fixture(autouse=True)
def quick(short_patience: float, monkeypatch: pytest.MonkeyPatch) -> float:
    """Everybody who waits looks again soon, and readers are not blocked for long."""
    for colour in ("_async", "_sync"):
        monkeypatch.setattr(f"broker.{colour}.waiting.LOOK_AGAIN_SECONDS", LOOK_SECONDS)
        monkeypatch.setattr(f"broker.{colour}.follow.BLOCK_MS", 200)
        monkeypatch.setattr(f"broker.{colour}.follow.MARGIN_SECONDS", LOOK_SECONDS)
    monkeypatch.setattr("broker.worker.bells.LOOK_SECONDS", LOOK_SECONDS)
    return short_patience


@pytest.fixture
async def near(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    async with AsyncBroker(server.url, namespace=namespace, settings=QUICK, by=ADA) as broker:
        yield broker


@pytest.fixture
async def far(near: AsyncBroker, proxy: FaultProxy) -> AsyncGenerator[AsyncBroker]:
    """The same by way of the proxy."""
    async with AsyncBroker(proxy.url, namespace=near.namespace, settings=QUICK) as broker:
        yield broker


@pytest.fixture
async def serve(near: AsyncBroker, proxy: FaultProxy) -> AsyncGenerator[Serve]:
    """Starts a worker behind the proxy."""
    serving: list[tuple[Worker, asyncio.Task[None]]] = []

    def start(handler: Any, **options: Any) -> Worker:
        worker = Worker(proxy.url, namespace=near.namespace, settings=QUICK, **options)
        worker.add("a", handler)
        serving.append((worker, asyncio.create_task(worker.serve())))
        return worker

    yield start
    for worker, task in serving:
        worker.stop()
        worker.stop()
        await task


@pytest.fixture
def client(server: RunningServer) -> Generator[redis.Redis]:
    with redis.Redis.from_url(server.url, protocol=2, legacy_responses=True) as client:
        yield client


def blocked(client: redis.Redis) -> int:
    """How many readers the server has blocked."""
    return int(client.info("clients")["blocked_clients"])


def is_subscribed(client: redis.Redis, namespace: str, id_: str) -> bool:
    return bool(client.pubsub_channels(Keyspace(namespace, 1).partition(0).key("settled", id_)))


async def asked(broker: AsyncBroker, n: int = 1) -> str:
    return (await broker.suspend("a", approval(n), session=f"s{n}")).interrupt_ids[0]


async def does(run: Any) -> str:
    return f"done {run.input}"


@pytest.mark.report("RA60")
async def test_R17_a_waiter_finds_out_by_itself(
    near: AsyncBroker, far: AsyncBroker, proxy: FaultProxy, client: redis.Redis
) -> None:
    """Off: the looks of `wait_for`, or the deadline of a call."""
    one = await asked(near)
    waits = asyncio.create_task(far.wait(one))
    await await_until(lambda: is_subscribed(client, near.namespace, one))
    looked = proxy.requests
    client.publish(near._link.space.partition(0).key("settled", one), "nothing")
    await await_until(lambda: proxy.requests > looked and rests(far))
    proxy.mute()
    await near.inbox.answer(one, Approve())
    async with asyncio.timeout(10):
        assert isinstance(await waits, Resolution)


async def test_R17_later_waiters_hear_bells_again(
    near: AsyncBroker,
    far: AsyncBroker,
    proxy: FaultProxy,
    client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The subscribed connection is found dead, by asking it. Off: `Announcements` asks nothing."""
    monkeypatch.setattr("broker._async._runtime.QUIET_SECONDS", 0.2)
    one = await asked(near)
    first = asyncio.create_task(far.wait(one))
    await await_until(lambda: is_subscribed(client, near.namespace, one))
    proxy.mute()
    two = await asked(near, 2)
    second = asyncio.create_task(far.wait(two))
    await await_until(lambda: is_subscribed(client, near.namespace, two))
    for each in (one, two):
        await near.inbox.answer(each, Approve())
    async with asyncio.timeout(10):
        await asyncio.gather(first, second)


@pytest.mark.report("RA60")
async def test_R17_a_blocking_waiter_finds_out_by_itself(
    near: AsyncBroker, proxy: FaultProxy, client: redis.Redis
) -> None:
    """Off: the looks of `wait_for`, or the limit on the socket."""
    one = await asked(near)
    with Broker(proxy.url, namespace=near.namespace, settings=QUICK) as blocking:
        waits = asyncio.create_task(asyncio.to_thread(blocking.wait, one))
        await await_until(lambda: is_subscribed(client, near.namespace, one))
        proxy.mute()
        await near.inbox.answer(one, Approve())
        async with asyncio.timeout(10):
            assert isinstance(await waits, Resolution)


@pytest.mark.report("RA60")
async def test_R17_a_follower_finds_out_by_itself(
    near: AsyncBroker, far: AsyncBroker, proxy: FaultProxy, client: redis.Redis
) -> None:
    """What the dead connection was given comes again. Off: the deadline of a read, or the own leftovers first."""
    async with aclosing(far.inbox.follow("approvals", consumer="me", claim_after=HOUR)) as deliveries:
        delivery = asyncio.ensure_future(anext(deliveries))
        await await_until(lambda: blocked(client) == 1)
        proxy.mute()
        one = await asked(near)
        async with asyncio.timeout(10):
            assert (await delivery).record.id == one


@pytest.mark.report("RA60")
async def test_R17_a_blocking_follower_finds_out_by_itself(
    near: AsyncBroker, proxy: FaultProxy, client: redis.Redis
) -> None:
    """Off: the limit on the socket of its client."""
    with (
        Broker(proxy.url, namespace=near.namespace, settings=QUICK) as blocking,
        closing(blocking.inbox.follow("approvals", consumer="me", claim_after=HOUR)) as deliveries,
    ):
        delivery = asyncio.create_task(asyncio.to_thread(next, deliveries))
        await await_until(lambda: blocked(client) == 1)
        proxy.mute()
        one = await asked(near)
        async with asyncio.timeout(10):
            assert (await delivery).record.id == one


@pytest.mark.report("RA60")
async def test_R17_a_worker_finds_out_by_itself(
    near: AsyncBroker, serve: Serve, proxy: FaultProxy, client: redis.Redis
) -> None:
    """Off: the looks of a worker that waits."""
    serve(does)
    await await_until(lambda: client.pubsub_channels("*:wake:*"))
    for n in range(2):
        proxy.mute()
        started = await near.start("a", n, session=f"s{n}")
        assert (await run_when(near, started.run_id, RunState.FINISHED)).result == f"done {n}"


async def test_R17_a_worker_whose_bells_hang_at_the_start_comes_to_work(
    near: AsyncBroker, serve: Serve, proxy: FaultProxy
) -> None:
    """Off: the deadline of the look that says that it waits."""
    proxy.drop_next_reply(b"SADD", then="silence")
    serve(does)
    await await_until(lambda: proxy.dropped == 1)
    started = await near.start("a", 1, session="s")
    assert (await run_when(near, started.run_id, RunState.FINISHED)).result == "done 1"


async def test_R17_leases_are_renewed_over_a_new_connection(
    near: AsyncBroker, serve: Serve, proxy: FaultProxy
) -> None:
    """Off: the limit on the renewer's socket."""
    goes_on = asyncio.Event()

    async def waits(_: Any) -> str:
        await goes_on.wait()
        return "done"

    serve(waits, sweeps=False)
    started = await near.start("a", session="s")
    before = (await run_when(near, started.run_id, RunState.LEASED)).fence
    await await_until(lambda: seen(near))
    proxy.mute()
    since = await await_until(lambda: seen(near))
    await await_until(lambda: was_seen_later(near, since))
    assert await Sweeper(near, name="near").sweep(near._link.space.partition(0))
    goes_on.set()
    run = await run_when(near, started.run_id, RunState.FINISHED)
    assert (run.fence, run.errors) == (before, ())


async def seen(broker: AsyncBroker) -> Any:
    """When the worker last said that it is there."""
    return next((one.seen_at for one in (await broker.fleet()).workers), None)


async def was_seen_later(broker: AsyncBroker, since: Any) -> bool:
    """Whether the worker has said again that it is there, which it does behind its renewals."""
    return bool(await seen(broker) > since)


async def test_R17_a_sweeper_finds_out_by_itself(
    near: AsyncBroker, server: RunningServer, proxy: FaultProxy
) -> None:
    """Off: the deadline of a call."""
    clock = Clock(server.url, near.namespace)
    given: dict[str, Any] = {"namespace": near.namespace, "settings": QUICK, "rendering": MOVABLE}
    async with AsyncBroker(proxy.url, **given) as other:
        sweeping = asyncio.create_task(Sweeper(other).run())
        one = (await other.suspend("a", approval(expires_in=HOUR), session="s")).interrupt_ids[0]
        proxy.mute()
        clock.advance(2 * HOUR)
        async with asyncio.timeout(10):
            await near.wait(one)
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)
    clock.close()


async def test_R17_a_slow_consumer_is_served_late_and_holds_up_nobody(
    own_server: ServerProcess, own_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subscriber that does not read is cut off by the server; what it missed is in the records.

    Off: neither the loss of a subscription nor its return rings for who waits.
    """
    monkeypatch.setattr("broker._async.waiting.LOOK_AGAIN_SECONDS", 60)
    own_server.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 100 100 1")
    with FaultProxy(own_server.url) as proxy:
        async with AsyncBroker(proxy.url) as slow, AsyncBroker(own_server.url, by=ADA) as quick:
            ids = [await asked(quick, n) for n in range(50)]
            waits = [asyncio.create_task(slow.wait(one)) for one in ids]
            await await_until(lambda: len(own_client.pubsub_channels()) == len(ids))
            await await_until(lambda: rests(slow))
            proxy.hang()
            own_client.publish(own_client.pubsub_channels()[0], b"x" * 100_000)
            await await_until(lambda: own_client.pubsub_channels() == [])
            for one in ids:
                await quick.inbox.answer(one, Approve())
            proxy.restore()
            async with asyncio.timeout(20):
                await asyncio.gather(*waits)


def rests(broker: AsyncBroker) -> bool:
    """Whether nobody who waits is looking or about to."""
    link = broker._link
    bells = [bell for some in link.announcements._bells.values() for bell in some]
    return link._slots._free == at_once(link.options) and not any(bell._event.is_set() for bell in bells)
