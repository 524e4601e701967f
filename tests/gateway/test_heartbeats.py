"""F23 at the front door: a job tells by interrupt id or token, and a sweeper acts on its silence."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Accepted,
    Action,
    AlreadyDecided,
    AsyncBroker,
    CallFailed,
    Interrupt,
    OnMissed,
    Pending,
    Principal,
    Run,
    RunRecord,
    Settings,
    Settlement,
    Sweeper,
    UnknownId,
    Untrusted,
    Worker,
    current_call,
    long_running,
)
from broker.store.roles import Role, acl_rules
from broker.testing import RunningServer, ServerProcess, await_until

from .test_tokens import job

QUICK = Settings(sweep_every=timedelta(milliseconds=100))
SPAN = timedelta(milliseconds=600)


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    async with AsyncBroker(server.url, namespace=namespace, settings=QUICK) as broker:
        yield broker


async def test_a_job_tells_by_token_for_as_long_as_it_runs(broker: AsyncBroker) -> None:
    one = await job(broker, heartbeat=timedelta(minutes=10))
    for purpose in ("heartbeat", "complete"):
        text = (await broker.tokens.create(one, purpose)).text
        before = (await broker.inbox.get(one)).heartbeat_by
        assert isinstance(await broker.heartbeat(text), Accepted)
        after = (await broker.inbox.get(one)).heartbeat_by
        assert before is not None
        assert after is not None
        assert before < after
    assert (await broker.complete(one, 1, by=Principal(id="studio"))).ok
    assert isinstance(await broker.heartbeat(one), AlreadyDecided)


async def test_a_token_to_decide_tells_of_no_job(broker: AsyncBroker) -> None:
    asked = Interrupt.approval(Action(tool="t", arguments={}), "c")
    one = (await broker.suspend("shop", asked, session="s")).interrupt_ids[0]
    text = (await broker.tokens.create(one, "decide")).text
    with pytest.raises(Untrusted, match="not to heartbeat"):
        await broker.heartbeat(text)
    assert (await broker.heartbeat("int_0000" + "f" * 32)).code == "unknown"
    with pytest.raises(UnknownId):
        await broker.heartbeat("handle-77")


async def test_a_sweeper_fails_the_call_of_a_silent_job_and_its_run_is_told_why(
    broker: AsyncBroker, server: RunningServer
) -> None:
    """While it tells, it lives beyond its span; with the token that the call was given."""
    tokens: list[str] = []

    @long_running(heartbeat=SPAN)
    async def render() -> Pending:
        tokens.append(current_call().token)
        assert isinstance(await broker.heartbeat(tokens[0]), Accepted)
        return Pending(handle="job-9")

    worker = Worker(server.url, namespace=broker.namespace, settings=QUICK)

    @worker.agent("studio")
    async def studio(run: Run[None]) -> Any:
        try:
            return await run.call(render, {}, call_id="c-1")
        except CallFailed as failed:
            return str(failed)

    serving = asyncio.create_task(worker.serve())
    started = await broker.start("studio", session="s")

    async def paused() -> bool:
        return bool(await broker.active("s"))

    await await_until(paused)
    loop = asyncio.get_running_loop()
    until, beats = loop.time() + 3 * SPAN.total_seconds(), 0

    async def told_long_enough() -> bool:
        nonlocal beats
        beats += (await broker.heartbeat(tokens[0])).ok
        return loop.time() > until

    await await_until(told_long_enough)
    assert beats > 3
    ended = await broker.wait(started.run_id or "", 20)
    worker.stop()
    await serving
    assert isinstance(ended, RunRecord)
    assert "It missed a heartbeat" in str(ended.result)


async def test_a_sweeper_rings_for_a_silent_job_where_that_was_chosen(broker: AsyncBroker) -> None:
    one = await job(broker, heartbeat=SPAN, on_missed=OnMissed.RING)
    sweeping = asyncio.create_task(Sweeper(broker).run())

    async def missed() -> bool:
        events = [entry.event for entry in await broker.history("s")]
        return events.count("heartbeat_missed") >= 2

    await await_until(missed)
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)
    assert (await broker.inbox.get(one)).state is Settlement.OPEN


async def test_heartbeats_and_their_miss_race_and_one_wins(broker: AsyncBroker) -> None:
    """P8: a job that tells at the very end of its span, and a sweeper: both are told the same."""
    tiny = timedelta(milliseconds=40)
    ids = [await job(broker, f"s{n}", heartbeat=tiny) for n in range(30)]
    sweeper = Sweeper(broker)
    told: dict[str, list[str]] = {one: [] for one in ids}

    async def tell(one: str) -> None:
        for _ in range(20):
            told[one].append((await broker.heartbeat(one)).code)

    async def sweep() -> None:
        for _ in range(40):
            await sweeper.sweep(broker._link.space.partition(0))

    await asyncio.gather(*[tell(one) for one in ids], sweep())
    for one in ids:
        codes = told[one]
        ended = (await broker.inbox.get(one)).state
        assert codes == sorted(codes), codes  # accepted up to a moment, expired from then on
        assert ("expired" in codes) <= (ended is Settlement.EXPIRED)


async def test_a_worker_may_tell_that_a_job_runs(start_server: Any, namespace: str) -> None:
    server: ServerProcess = start_server()
    server.call("ACL", "SETUSER", "w", "on", ">w", *acl_rules(namespace, Role.WORKER))
    async with AsyncBroker(server.url, namespace=namespace) as broker:
        one = await job(broker, heartbeat=SPAN * 100)
        async with AsyncBroker(f"unix://w:w@{server.socket}", namespace=namespace) as worker:
            assert (await worker.heartbeat(one)).ok
