"""The sweeper: what becomes true by itself, once, however many sweep, and without leaving anything behind."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from datetime import timedelta
from typing import Any

import pytest
import redis

from broker import (
    Action,
    Approve,
    AsyncBroker,
    Expired,
    Interrupt,
    Mode,
    OnExpiry,
    Principal,
    Reject,
    Respond,
    RunState,
    Settlement,
    Sweeper,
    Unknown,
    UnknownId,
    WaitTimeout,
    Worker,
)
from broker.store.keys import Keyspace, Pool
from broker.testing import RunningServer, await_until
from tests.clock import MOVABLE, Clock
from tests.records import poke
from tests.waiters import Waiters

from .fleet import QUICK, ended, run_when

HOUR = timedelta(hours=1)


@pytest.fixture
async def timed(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    """A broker whose time is moved by `clock`."""
    async with AsyncBroker(
        server.url, namespace=namespace, settings=QUICK, by=Principal.local("me"), rendering=MOVABLE
    ) as broker:
        yield broker


@pytest.fixture
def clock(server: RunningServer, namespace: str) -> Generator[Clock]:
    clock = Clock(server.url, namespace)
    yield clock
    clock.close()


@pytest.fixture
def sweeper(timed: AsyncBroker) -> Sweeper:
    return Sweeper(timed, name="sweeper-1")


def approval(n: int = 1, **more: Any) -> Interrupt:
    return Interrupt.approval(Action(tool="refund", arguments={"n": n}), f"c{n}", **more)


async def sweep(sweeper: Sweeper) -> bool:
    """One sweep of the only partition."""
    return await sweeper.sweep(sweeper._link.space.partition(0))


@pytest.mark.parametrize(
    ("interrupt", "state", "event"),
    [
        (approval(expires_in=HOUR), Settlement.EXPIRED, "expired"),
        (Interrupt(expires_in=HOUR), Settlement.EXPIRED, "expired"),
        (approval(), Settlement.EXPIRED, "expired"),  # a day by default
        (approval(expires_in=HOUR, on_expiry=OnExpiry.WAIT), Settlement.OPEN, ""),
        (approval(expires_in=None), Settlement.OPEN, ""),
        (
            Interrupt(expires_in=HOUR, on_expiry=OnExpiry.DEFAULT, default_answer=Respond(payload="go")),
            Settlement.RESOLVED, "default_answer",
        ),
    ],
    ids=["deny", "cancel", "default deadline", "wait", "never", "default answer"],
)  # fmt: skip
async def test_what_is_due_ends_as_its_policy_says(
    timed: AsyncBroker, sweeper: Sweeper, clock: Clock, interrupt: Interrupt, state: Settlement, event: str
) -> None:
    paused = await timed.suspend("a", interrupt, session="s")
    one = paused.interrupt_ids[0]
    await sweep(sweeper)
    assert (await timed.inbox.get(one)).state is Settlement.OPEN
    clock.advance(timedelta(days=1))
    await sweep(sweeper)
    record = await timed.inbox.get(one)
    assert record.state is state
    assert (await timed.history("s"))[-1].event == (event or "suspended")
    run = await timed.runs.get(paused.run_id)
    assert run.state is (RunState.WAITING if state is Settlement.OPEN else RunState.READY)
    if state is Settlement.EXPIRED:
        assert isinstance(await timed.inbox.answer(one, Approve()), Expired)
        assert record.resolution is not None
        assert record.resolution.answer is None  # nobody said anything: no rejection
        async with timed.take(run.id) as again:
            assert again.resolutions[0].state is Settlement.EXPIRED
    if state is Settlement.RESOLVED:
        assert record.resolution is not None
        assert record.resolution.answer == Respond(payload="go")


async def test_of_several_the_deadline_of_one_may_decide(
    timed: AsyncBroker, sweeper: Sweeper, clock: Clock
) -> None:
    paused = await timed.suspend(
        "a", approval(1, expires_in=HOUR), approval(2, expires_in=2 * HOUR), session="s", mode=Mode.FIRST
    )
    clock.advance(HOUR)
    await sweep(sweeper)
    states = [(await timed.inbox.get(one)).state for one in paused.interrupt_ids]
    assert states == [Settlement.EXPIRED, Settlement.SUPERSEDED]


async def test_a_lost_lease_is_taken_back(timed: AsyncBroker, sweeper: Sweeper, clock: Clock) -> None:
    started = await timed.start("a", session="s")
    (run,) = await timed.queue("agents").lease(("a",), holder="gone")
    await sweep(sweeper)
    assert (await timed.runs.get(run.id)).state is RunState.LEASED
    clock.advance(QUICK.lease)
    await sweep(sweeper)
    back = await timed.runs.get(started.run_id)
    assert (back.state, back.tries, "gone" in back.errors[0]) == (RunState.READY, 1, True)
    assert await timed.runs.ready("agents") == (run.id,)  # at once: most often its worker has ended
    await timed.queue("agents").lease(("a",), holder="gone too")
    clock.advance(QUICK.lease)
    await sweep(sweeper)
    assert await timed.runs.ready("agents") == ()  # after a while
    clock.advance(QUICK.backoff_most)
    await sweep(sweeper)
    assert await timed.runs.ready("agents") == (run.id,)


async def test_two_sweepers_at_once_do_no_harm(
    timed: AsyncBroker, clock: Clock, server: RunningServer
) -> None:
    paused = [await timed.suspend("a", approval(n, expires_in=HOUR), session=f"s{n}") for n in range(40)]
    for n in range(5):
        await timed.start("b", session=f"r{n}")
    await timed.queue("agents").lease(("b",), limit=5)
    clock.advance(HOUR)
    async with AsyncBroker(server.url, namespace=timed.namespace, settings=QUICK, rendering=MOVABLE) as other:
        both = [Sweeper(timed, name="same"), Sweeper(other, name="same")]  # one name: both have the right
        for _ in range(2):
            assert await asyncio.gather(*(sweep(one) for one in both)) == [True, True]
    for one in paused:
        session = (await timed.inbox.get(one.interrupt_ids[0])).session_id
        assert [entry.event for entry in await timed.history(session)] == ["suspended", "expired"]
        assert (await timed.runs.get(one.run_id)).state is RunState.READY
    assert len(set(await timed.runs.ready("agents", ("a",), limit=500))) == 40
    for n in range(5):
        events = [entry.event for entry in await timed.history(f"r{n}")]
        assert events == ["started", "leased", "lease_lost"]


async def test_only_one_sweeps(timed: AsyncBroker, server: RunningServer) -> None:
    first, second = Sweeper(timed, name="one"), Sweeper(timed, name="two")
    assert await sweep(first)
    assert not await sweep(second)
    assert await sweep(first)
    task = asyncio.create_task(Sweeper(timed, name="three").run())
    await await_until(lambda: holder(server, timed) == b"d three")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await sweep(second)  # who leaves gives the right up


def holder(server: RunningServer, broker: AsyncBroker) -> Any:
    with redis.Redis.from_url(server.url) as client:
        return client.get(Keyspace(broker.namespace, 1).partition(0).key("sweeper"))


async def test_the_right_of_a_dead_sweeper_ends(broker: AsyncBroker) -> None:
    assert await sweep(Sweeper(broker, name="dead"))
    living = Sweeper(broker, name="living")
    await await_until(lambda: sweep(living), 5)


async def test_retention_leaves_nothing_behind(
    timed: AsyncBroker, sweeper: Sweeper, clock: Clock, server: RunningServer, namespace: str
) -> None:
    run_id, asked = "", ""
    for n in range(40):
        paused = await timed.suspend("a", approval(n), Interrupt(payload=n), session=f"s{n}")
        run_id, asked = paused.run_id, paused.interrupt_ids[0]
        await timed.inbox.answer(paused.interrupt_ids[0], Approve())
        await timed.inbox.answer(paused.interrupt_ids[1], Reject(reason="no"))
        async with timed.take(paused.run_id) as run:
            if n % 2:
                await run.suspend(approval(n + 100))
                await timed.runs.withdraw(run.id)
            else:
                await run.finish({"n": n})
        await timed.inbox.answer_call(f"s{n}", "never asked", Approve())
    kept = await timed.suspend("a", approval(), session="open")
    await sweep(sweeper)
    assert (await timed.runs.get(run_id)).id == run_id
    clock.advance(QUICK.keep_settled + HOUR)
    await swept(sweeper)
    with pytest.raises(UnknownId):
        await timed.runs.get(run_id)
    assert isinstance(await timed.inbox.answer(asked, Approve()), Unknown)
    assert [entry.event for entry in await timed.history("s0")][
        -1
    ] == "unmatched"  # said, not dropped in silence
    assert (await timed.inbox.get(kept.interrupt_ids[0])).state is Settlement.OPEN
    clock.advance(QUICK.keep_history)
    await timed.runs.withdraw(kept.run_id)
    await swept(sweeper)
    clock.advance(QUICK.keep_history + HOUR)
    await swept(sweeper)
    left = {key.partition("}")[2] for key in keys(server, namespace)}
    assert left <= {
        ":counter", ":pools", ":clock", ":meta", ":sweeper", ":interrupts", ":dispositions", ":unknown",
    }  # fmt: skip


async def swept(sweeper: Sweeper) -> None:
    """Sweeps until nothing is left to do."""
    for _ in range(30):
        await sweep(sweeper)


def keys(server: RunningServer, namespace: str) -> set[str]:
    with redis.Redis.from_url(server.url) as client:
        return {key.decode() for key in client.scan_iter(f"{{{namespace}*", count=1000)}


@pytest.mark.report("RA56")
async def test_bells_are_trimmed_and_nobody_owes_what_is_gone(
    timed: AsyncBroker,
    sweeper: Sweeper,
    server: RunningServer,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.worker.sweeper.BELL_COUNT", 100)
    monkeypatch.setattr("broker.worker.sweeper.TIDY_PERIODS", 0)
    p = Keyspace(namespace, 1).partition(0)

    async def come_and_go(n: int) -> None:
        paused = await timed.suspend("a", approval(n), session=f"s{n}")
        await timed.inbox.answer(paused.interrupt_ids[0], Approve())

    await timed.suspend("a", approval(), session="s")
    async with aclosing(timed.inbox.follow("approvals", consumer="owes")) as deliveries:
        await anext(deliveries)  # and leaves with it in its hands
    await asyncio.gather(*(come_and_go(n) for n in range(220)))
    await swept(sweeper)
    with redis.Redis.from_url(server.url) as client:
        for kind in ("interrupts", "dispositions"):
            assert client.xlen(p.key(kind)) <= 200  # exact to a node of the stream
        assert client.xpending(p.key("interrupts"), "approvals")["pending"] == 0


async def test_P9_one_sweep_a_period_after_a_loss_rings_again(
    timed: AsyncBroker, sweeper: Sweeper, clock: Clock, server: RunningServer, namespace: str
) -> None:
    """Sweeps are at most a period apart, so that is within two. Off: `_ring`, or the guard `ring-lost`."""
    p = Keyspace(namespace, 1).partition(0)
    one = (await timed.suspend("a", approval(), session="s")).interrupt_ids[0]
    with redis.Redis.from_url(server.url) as client:
        client.xgroup_create(p.key("interrupts"), "approvals", "0")
        client.xtrim(p.key("interrupts"), maxlen=0)
        await sweep(sweeper)
        assert client.xlen(p.key("interrupts")) == 0  # its bell may be on its way yet
        clock.advance(QUICK.sweep_every)
        await sweep(sweeper)
        ((_, entry),) = client.xrange(p.key("interrupts"))
        assert entry[b"interrupt"].decode() == one
        await sweep(sweeper)
        assert client.xlen(p.key("interrupts")) == 1  # and not at every sweep


@pytest.mark.report("RB42", "RB74")
async def test_RB74_P9_the_second_sweep_that_sees_a_ready_run_wakes_its_workers(
    timed: AsyncBroker, sweeper: Sweeper, server: RunningServer, namespace: str
) -> None:
    """Off: `_ring_ready`."""
    await timed.start("a", session="s")
    with closing(Waiters(server.url, Keyspace(namespace, 1).partition(0), Pool("agents", "a"))) as waiters:
        await sweep(sweeper)
        assert waiters.hear() == []
        await sweep(sweeper)
        assert waiters.hear() == [b""]


@pytest.mark.parametrize("known", [0, 1], ids=["names lost", "workers gone"])
async def test_P9_workers_whose_names_are_lost_are_woken_all_the_same(
    timed: AsyncBroker, sweeper: Sweeper, server: RunningServer, namespace: str, known: int
) -> None:
    """They listen for their queue too. Off: `everybody` of `ring_ready`, or the prelude's loop over names."""
    p = Keyspace(namespace, 1).partition(0)
    await timed.start("a", session="s")
    with redis.Redis.from_url(server.url) as client, client.pubsub() as listening:
        listening.subscribe(p.key("wake", ":agents"))
        assert listening.get_message(timeout=5)
        if known:
            client.sadd(p.key("idle", Pool("agents", "a")), "gone-1", "gone-2")
        for _ in range(2 + known):
            await sweep(sweeper)
        heard = listening.get_message(timeout=5)
        assert heard is not None
        assert heard["type"] == "message"


async def test_memory_stays_flat(
    timed: AsyncBroker, sweeper: Sweeper, clock: Clock, server: RunningServer, namespace: str
) -> None:
    counts, later = [], 2 * QUICK.keep_history
    for turn in range(3):
        for n in range(20):
            started = await timed.start("a", {"n": n}, session=f"s{turn}-{n}")
            async with timed.take(started.run_id) as run:
                await run.finish("x" * 100)
        clock.advance(later)
        await swept(sweeper)
        clock.advance(-later)
        counts.append(len(keys(server, namespace)))
    assert counts[0] == counts[1] == counts[2]


async def test_what_cannot_be_read_holds_up_nobody(
    timed: AsyncBroker, sweeper: Sweeper, clock: Clock, server: RunningServer, namespace: str
) -> None:
    p = Keyspace(namespace, 1).partition(0)
    paused = [await timed.suspend("a", approval(n, expires_in=HOUR), session=f"s{n}") for n in range(100)]
    ids = [one.interrupt_ids[0] for one in paused]
    with redis.Redis.from_url(server.url) as client:
        client.delete(*(p.key("interrupt", one) for one in ids[:40]))
        for one in ids[:20]:
            client.set(p.key("interrupt", one), "foreign")
        for run in paused[40:60]:
            poke(client, p.key("run", run.run_id), state="of another version")
    clock.advance(HOUR)
    await swept(sweeper)
    for one in ids[60:]:
        assert (await timed.inbox.get(one)).state is Settlement.EXPIRED


async def test_one_sweeper_of_a_fleet_does_it_all(broker: AsyncBroker, serve: Callable[..., Worker]) -> None:
    async def a(run: Any) -> Any:
        if run.seq == 0:
            return await run.suspend(approval(expires_in=timedelta(milliseconds=50)))
        return str(run.resolutions[0].state)

    for n in range(3):
        serve(a=a, options={"name": f"w-{n}"})
    ids = [(await broker.start("a", session=f"s{n}")).run_id for n in range(20)]
    for one in ids:
        assert (await ended(broker, one)).result == "expired"


async def test_a_worker_may_leave_the_sweeping_to_others(
    broker: AsyncBroker, serve: Callable[..., Worker]
) -> None:
    async def a(run: Any) -> Any:
        return await run.suspend(approval(expires_in=timedelta(milliseconds=10)))

    serve(a=a, options={"sweeps": False})
    started = await broker.start("a", session="s")
    paused = await run_when(broker, started.run_id, RunState.WAITING)
    with pytest.raises(WaitTimeout):
        await broker.wait(paused.interrupt_ids[0], 0.3)
    assert (await broker.inbox.get(paused.interrupt_ids[0])).state is Settlement.OPEN
    task = asyncio.create_task(Sweeper(broker).run())
    await broker.wait(paused.interrupt_ids[0], 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
