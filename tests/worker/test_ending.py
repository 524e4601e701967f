"""Workers that are told to stop: they drain, and leave no lease behind."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from broker import AsyncBroker, Interrupt, InvalidInput, Run, RunState, Sweeper, Worker
from broker.testing import RunningServer, await_until

from .fleet import QUICK, Agents, ended, run_when

Start = Callable[..., Agents]


async def nobody_is_left(broker: AsyncBroker) -> bool:
    return (await broker.fleet()).workers == ()


async def test_a_worker_drains_on_sigterm(broker: AsyncBroker, agents: Start, tmp_path: Path) -> None:
    started = await broker.start("waits", str(tmp_path / "go"), session="s")
    worker = agents(concurrency=1)
    assert worker.begins() == started.run_id
    later = await broker.start("pauses", session="s")
    worker.terminate()
    worker.says("drains 1 runs")
    (tmp_path / "go").touch()
    assert worker.exit_code() == 0
    assert (await broker.runs.get(started.run_id)).result == worker.pid
    assert (await broker.runs.get(later.run_id)).state is RunState.READY
    assert await nobody_is_left(broker)


async def test_a_second_sigterm_gives_back_at_once(broker: AsyncBroker, agents: Start) -> None:
    started = await broker.start("hangs", session="s")
    worker = agents()
    assert worker.begins() == started.run_id
    worker.terminate()
    worker.says("drains 1 runs")
    worker.terminate()
    assert worker.exit_code() == 0
    run = await broker.runs.get(started.run_id)
    assert (run.state, run.tries, run.errors) == (RunState.READY, 0, ())
    assert await nobody_is_left(broker)


async def test_a_drain_that_takes_too_long_gives_back_the_rest(broker: AsyncBroker, agents: Start) -> None:
    started = await broker.start("hangs", session="s")
    worker = agents(drain=0.1)
    assert worker.begins() == started.run_id
    worker.terminate()
    assert worker.exit_code() == 0
    run = await broker.runs.get(started.run_id)
    assert (run.state, run.tries) == (RunState.READY, 0)


async def test_a_drain_that_is_longer_than_a_lease_keeps_its_runs(
    broker: AsyncBroker, serve: Callable[..., Worker], server: RunningServer
) -> None:
    """Off: the renewals end with the leasing."""
    goes_on, began = asyncio.Event(), asyncio.Event()

    async def waits(run: Run[Any]) -> int:
        began.set()
        await goes_on.wait()
        return run.fence

    worker = serve(waits=waits, options={"sweeps": False})
    started = await broker.start("waits", session="s")
    await began.wait()
    worker.stop()
    with redis.Redis.from_url(server.url) as client:
        stopped = client.time()[0]
        await await_until(lambda: client.time()[0] > stopped + 2 * QUICK.lease.total_seconds())
    assert await Sweeper(broker).sweep(broker._link.space.partition(0))
    goes_on.set()
    run = await ended(broker, started.run_id)
    assert (run.result, run.errors) == (1, ())


async def test_a_worker_that_is_cancelled_gives_back(
    broker: AsyncBroker, server: RunningServer, namespace: str
) -> None:
    begun = asyncio.Event()

    async def support(_: Run[Any]) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = Worker(server.url, namespace=namespace, settings=QUICK)
    worker.add("support", support)
    started = await broker.start("support", session="s")
    task = asyncio.create_task(worker.serve())
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    run = await broker.runs.get(started.run_id)
    assert (run.state, run.tries) == (RunState.READY, 0)
    assert await nobody_is_left(broker)


async def test_a_handler_that_does_not_heed_its_cancellation_keeps_nothing(
    broker: AsyncBroker, server: RunningServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.worker.main.STUCK_SECONDS", 0.05)
    begun, let_go = asyncio.Event(), asyncio.Event()

    async def stubborn(_: Run[Any]) -> None:
        begun.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    worker = Worker(server.url, namespace=namespace, settings=QUICK)
    worker.add("support", stubborn)
    started = await broker.start("support", session="s")
    task = asyncio.create_task(worker.serve())
    await begun.wait()
    worker.stop()
    worker.stop()
    await task
    run = await broker.runs.get(started.run_id)
    assert (run.state, run.tries) == (RunState.READY, 0)
    let_go.set()


async def test_a_thread_that_is_stuck_keeps_nothing(broker: AsyncBroker, agents: Start) -> None:
    started = await broker.start("stuck", session="s")
    worker = agents(program="stuck")
    assert worker.begins() == started.run_id
    worker.terminate()
    worker.says("drains 1 runs")
    worker.terminate()
    assert worker.exit_code() == 0
    assert (await broker.runs.get(started.run_id)).state is RunState.READY


async def test_a_stop_before_the_start_counts(server: RunningServer, namespace: str) -> None:
    worker = Worker(server.url, namespace=namespace)
    worker.add("support", lambda _: None)
    worker.stop()
    await worker.serve()
    worker.stop()  # afterwards it is harmless


async def test_a_worker_serves_again(broker: AsyncBroker, server: RunningServer, namespace: str) -> None:
    worker = Worker(server.url, namespace=namespace, settings=QUICK)

    @worker.agent("support")
    async def support(run: Run[Any]) -> int:
        worker.stop()
        return run.fence

    for n in range(2):
        started = await broker.start("support", session=f"s{n}")
        await worker.serve()
        assert (await broker.runs.get(started.run_id)).state is RunState.FINISHED


async def test_a_worker_without_agents_says_so(server: RunningServer) -> None:
    with pytest.raises(InvalidInput, match="agents"):
        await Worker(server.url).serve()
    for wrong in ({"concurrency": 0}, {"queue": "a b"}, {"build": "-"}):
        with pytest.raises(InvalidInput):
            Worker(server.url, **wrong)
    with pytest.raises(InvalidInput):
        Worker(server.url).add("support", "no function")  # type: ignore[arg-type]


async def test_a_handler_may_end_its_own_run(broker: AsyncBroker, serve: Callable[..., Worker]) -> None:
    async def support(run: Run[Any]) -> str:
        await run.finish("by itself")
        return "ignored"

    serve(support=support)
    started = await broker.start("support", session="s")
    assert (await ended(broker, started.run_id)).result == "by itself"


async def test_a_handler_that_gives_back_is_called_again(
    broker: AsyncBroker, serve: Callable[..., Worker]
) -> None:
    async def support(run: Run[Any]) -> int | None:
        if run.fence < 3:
            await run.release()
            return None
        return run.attempt

    serve(support=support)
    started = await broker.start("support", session="s")
    assert (await ended(broker, started.run_id)).result == 1
    await run_when(broker, started.run_id, RunState.FINISHED)


async def test_a_handler_goes_on_after_it_ended_its_run(
    broker: AsyncBroker, serve: Callable[..., Worker]
) -> None:
    """A renewal that finds the run finished by the handler itself takes nothing away from it."""
    over = 0

    async def support(run: Run[Any]) -> None:
        nonlocal over
        await (run.finish() if run.input % 2 else run.suspend(Interrupt()))
        over += 1

    often = QUICK.model_copy(update={"renew_fraction": 0.002})
    serve(support=support, options={"settings": often, "concurrency": 64})
    await asyncio.gather(*(broker.start("support", n, session=f"s{n}") for n in range(300)))
    await await_until(lambda: over == 300)
