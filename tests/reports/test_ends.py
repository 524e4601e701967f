"""What comes at the end of a run or behind it, keys that come again, limits that are near, which agent asked."""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Accepted,
    Approve,
    AsyncBroker,
    Complete,
    Conflict,
    InterruptState,
    Limits,
    Pending,
    Replayed,
    Run,
    RunState,
    Settings,
    Unknown,
    current_call,
    long_running,
)
from broker.store.commands.values import micros
from broker.testing import RunningServer
from tests.clients._async.journaling import Agent, talking
from tests.clients.asking import ADA, BEN, refund
from tests.clock import Clock
from tests.journal.asked import call

Connect = Callable[..., Any]
Sweep = Callable[[], Awaitable[object]]


@pytest.mark.report("RA27")
async def test_RA27_what_is_said_while_a_run_ends_is_on_record(broker: AsyncBroker, clock: Clock) -> None:
    """Between the last look of the handler and its end; what comes behind the end is refused.

    Off: guard `say-closed` of say.lua, or its line of the history.
    """

    async def handler(run: Run[Any]) -> list[Any]:
        heard = list(await run.step(run.said))
        assert isinstance(await broker.runs.say(run.id, "wait", op="m-1"), Accepted)
        return heard

    agent = Agent(broker, clock, handler)
    assert await agent.start() is RunState.FINISHED
    assert await agent.result() == []
    assert isinstance(await broker.runs.say(agent.run_id, "wait", op="m-1"), Replayed)
    assert isinstance(await broker.runs.say(agent.run_id, "too late"), Conflict)
    assert await broker.runs.said(agent.run_id) == ("wait",)
    events = [one.event for one in await broker.history("s")]
    assert events == ["started", "leased", "said", "finished"]


@pytest.mark.report("RA34")
async def test_RA34_a_key_is_free_when_the_records_of_its_run_are_gone(
    broker: AsyncBroker, clock: Clock, sweep: Sweep
) -> None:
    """And not before; tokens of the old run complete nothing of the new one.

    Off: `place(SEG.retention, ...)` of `close_run`; for the token, the comparison in `AsyncBroker._said`.
    """
    tokens: list[str] = []

    @long_running
    async def render() -> Pending:
        tokens.append(current_call().token)
        return Pending()

    handler = talking([call("c1", "render")], tools=[render])

    async def life(number: int) -> None:
        started = await broker.start("airline", "hello", session="s", key="nightly")
        assert isinstance(started, Accepted), number
        agent = Agent(broker, clock, handler)
        agent.run_id = started.run_id
        assert await agent.go() is RunState.WAITING
        if number:
            assert isinstance(await broker.complete(tokens[0], "from the old job"), Unknown)
            assert (await agent.record()).state is RunState.WAITING
        assert isinstance(await broker.complete(tokens[number], f"v-{number}"), Accepted)
        assert await agent.go() is RunState.FINISHED
        assert await agent.result() == [f"v-{number}"]
        again = await broker.start("airline", "hello", session="s", key="nightly")
        assert isinstance(again, Replayed)
        assert again.run_id == started.run_id

    await life(0)
    kept = broker._link.settings.keep_settled + timedelta(minutes=1)
    clock.advance(kept)
    now, at = broker._link._clock
    broker._link._clock = (now + micros(kept), at)  # as whoever asks for the time after an hour
    await sweep()
    await life(1)


@pytest.mark.report("RA50")
async def test_RA50_at_half_of_a_limit_whoever_writes_is_warned(
    server: RunningServer, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Off: the warning of `check_size`."""
    limits = Limits(state_bytes=10_000, record_bytes=10_000)
    async with AsyncBroker(
        server.url, namespace=namespace, settings=Settings(limits=limits), by=ADA
    ) as broker:

        def warned() -> list[str]:
            found = [one.getMessage() for one in caplog.records if "more than half" in one.getMessage()]
            caplog.clear()
            return found

        with caplog.at_level(logging.WARNING, logger="broker"):
            for size, times in ((4_000, 0), (6_000, 1)):
                state = InterruptState(framework="mine", opaque=b"x" * size)
                paused = await broker.suspend("a", refund(), session=f"s{size}", state=state)
                assert len(found := warned()) == times
                assert all(line.startswith("InterruptState takes 6") and "10000" in line for line in found)
                await broker.inbox.answer(paused.interrupt_ids[0], Approve())
                assert warned() == []
            await broker.suspend("a", refund(payload="x" * 6_000), session="t")
            (line,) = warned()
            assert line.startswith("Interrupt takes 6")
            assert "xxx" not in line


@pytest.mark.report("RB43")
async def test_RB43_a_question_carries_the_path_of_the_agents_that_asked(
    broker: AsyncBroker, connect: Connect
) -> None:
    """The same call of two agents: another path is another question. Off: a path that `Interrupt` does not write."""
    paths = (("planner", "payer"), ("planner",))
    run_id: str | None = None
    asked = []
    for seq, path in enumerate(paths, 1):
        paused = await broker.suspend(
            "a", refund(agent_path=path), session="s", key="k", seq=seq, replace=run_id is not None
        )
        run_id = paused.run_id
        asked.append(paused.interrupt_ids[0])
    other = await connect(by=BEN)
    assert len(set(asked)) == 2
    assert [(await other.inbox.get(one)).interrupt.agent_path for one in asked] == list(paths)
    (listed,) = (await other.inbox.list()).items
    assert (listed.id, listed.interrupt.agent_path) == (asked[1], ("planner",))
    assert (await other.inbox.answer(asked[0], Complete(value=1))).ok is False
