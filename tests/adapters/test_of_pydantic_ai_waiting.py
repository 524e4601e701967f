"""The capability that waits for answers inside of the agent's run: in time, too late, killed, raced, and for others."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext

from broker import (
    AlreadyDecided,
    Approve,
    AsyncBroker,
    Complete,
    Edit,
    InvalidInput,
    Reject,
    Replayed,
    RunRecord,
    RunState,
    Worker,
)
from broker.adapters.pydantic_ai import InlineWait, ResumableAgent, effect_key, resumable
from broker.testing import RunningServer
from tests.worker.fleet import QUICK

from .child import AGENT
from .stage import ME, Stage
from .subjects.pydantic_ai import PAY, agent_of, model_of

TEN = {"amount": 10}
LONG = 100.0

Serve = Callable[[Any], Any]


@pytest.fixture
def serve(server: RunningServer, namespace: str) -> Serve:
    """A worker of this process with an agent, for the length of a block."""

    @asynccontextmanager
    async def serving(handler: Any) -> AsyncGenerator[None]:
        worker = Worker(server.url, namespace=namespace, settings=QUICK)
        worker.add(AGENT, handler)
        task = asyncio.create_task(worker.serve())
        try:
            yield
        finally:
            worker.stop()
            await asyncio.wait_for(task, LONG)

    return serving


def staying(agent: Agent[Any, Any], monkeypatch: pytest.MonkeyPatch) -> ResumableAgent:
    """A resumable agent that waits, and must not be resumed from its stored state."""

    async def resumed(*_: Any) -> Any:
        raise AssertionError("it went on from its stored state")

    found = resumable(agent, capabilities=[InlineWait(LONG)])
    monkeypatch.setattr(found, "resume", resumed)
    return found


async def waiting(stage: Stage, scenario: Any = TEN) -> RunRecord:
    """A new run, once it has paused."""
    return await stage.when(await stage.start(scenario), RunState.WAITING, RunState.DEAD)


def free_and_pay(stage: Stage) -> Agent[Any, Any]:
    """An agent whose first turn has a call that needs nobody beside one that does."""
    agent: Agent[Any, Any] = Agent(model_of([("free", {}, "f1"), PAY]), name=AGENT, output_type=list[Any])

    @agent.tool_plain
    def free() -> str:
        stage.world.effect("free", None, "")
        return "free"

    @agent.tool(requires_approval=True)
    def pay(ctx: RunContext[Any], amount: int) -> str:
        stage.world.effect("pay", amount, effect_key(ctx))
        return f"paid {amount}"

    return agent


@pytest.mark.report("RB36")
async def test_answers_in_time_are_gone_on_with_in_the_same_run(
    stage: Stage, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pauses, one lease each: nothing is read back; what was told to the model before stays as it was."""
    async with serve(staying(agent_of("in_a_row", stage.world), monkeypatch)):
        run = await waiting(stage)
        (asked,) = await stage.asked(run)
        await stage.answer_all(run, [Approve()])
        again = await stage.next_pause(run)
        assert isinstance(await stage.answer(asked, Approve()), Replayed)
        await stage.answer_all(again, [Edit(arguments={"amount": 3})])
        done = await stage.ended(run)
    assert (done.state, done.result, done.seq) == (RunState.FINISHED, ["paid 10", "paid 3"], 2), done.errors
    assert [one.given for one in stage.world.effects] == [10, 3]
    assert len({one.key for one in stage.world.effects}) == 2


async def test_calls_that_need_nobody_run_once_whoever_goes_on(
    stage: Stage, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they came to is in the stored state too: a worker that stays and one that reads it find the same."""
    async with serve(staying(free_and_pay(stage), monkeypatch)):
        run = await waiting(stage)
        await stage.answer_all(run, [Reject(reason="too much")])
        done = await stage.ended(run)
    assert done.result[0] == "free", done.errors
    assert "too much" in done.result[1]
    async with serve(resumable(free_and_pay(stage), capabilities=[InlineWait(0)])):
        late = await waiting(stage)
        await stage.answer_all(late, [Approve()])
        done = await stage.ended(late)
    assert done.result == ["free", "paid 10"], done.errors
    assert [one.what for one in stage.world.effects] == ["free", "free", "pay"]


async def test_three_answered_one_by_one_and_a_result_from_outside(
    stage: Stage, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(staying(agent_of("three", stage.world), monkeypatch)):
        run = await waiting(stage)
        for one in await stage.asked(run):
            assert stage.world.effects == []
            assert (await stage.answer(one, Approve())).ok
        assert (await stage.ended(run)).result == ["paid 1", "paid 2", "paid 3"]
    async with serve(staying(agent_of("external", stage.world), monkeypatch)):
        run = await waiting(stage)
        await stage.answer_all(run, [Complete(value="frames=240")])
        assert (await stage.ended(run)).result == ["frames=240"]


async def test_answers_that_come_too_late_find_the_run_parked(stage: Stage, serve: Serve) -> None:
    """The handler has ended, the worker has its place for others, and the run goes on as any paused one."""
    async with serve(resumable(agent_of("pay", stage.world), capabilities=[InlineWait(0.05)])):
        run = await waiting(stage)
        assert run.interrupt_ids
    assert (await stage.broker.runs.get(run.id)).state is RunState.WAITING
    await stage.answer_all(run, [Approve()])
    async with serve(resumable(agent_of("pay", stage.world))):
        done = await stage.ended(run)
    assert (done.result, done.seq) == (["paid 10"], 1), done.errors
    assert [one.given for one in stage.world.effects] == [10]


async def test_a_worker_that_is_killed_while_it_waits_has_changed_nothing(stage: Stage) -> None:
    """Killed with -9: the question is there, its answer counts once, another process goes on (P1, P6)."""
    run = await stage.paused("pay", TEN, inline=LONG)
    (asked,) = await stage.asked(run)
    assert (await stage.answer(asked, Approve())).ok
    assert isinstance(await stage.answer(asked, Reject(reason="no, wait")), AlreadyDecided)
    done = await stage.finished(run, "pay", inline=LONG)
    assert (done.state, done.result) == (RunState.FINISHED, ["paid 10"]), done.errors
    assert [(one.given, one.pid) for one in stage.world.effects] == [(10, stage.pids[1])]


@pytest.mark.report("RB31")
async def test_one_that_waits_and_one_that_does_not_run_it_once(stage: Stage) -> None:
    """Whoever leases the run first goes on with it; the other has nothing to do (P6, RB31)."""
    run_id = await stage.start(TEN)
    stage.worker("pay", inline=LONG)
    run = await stage.when(run_id, RunState.WAITING)
    await stage.is_up(stage.worker("pay"))
    await stage.answer_all(run, [Approve()])
    done = await stage.ended(run)
    assert (done.result, [one.given for one in stage.world.effects]) == (["paid 10"], [10]), done.errors


async def test_killed_after_the_effect_of_an_answer_in_time(stage: Stage) -> None:
    """What was approved is delivered again under the same key (P6)."""
    run_id = await stage.start(TEN)
    victim = stage.worker("pay", inline=LONG)
    run = await stage.when(run_id, RunState.WAITING)
    stage.world.hold()
    await stage.answer_all(run, [Approve()])
    await stage.has_effects(1)
    victim.kill()
    stage.world.let_go()
    done = await stage.finished(run, "pay", inline=LONG)
    assert (done.state, done.result) == (RunState.FINISHED, ["paid 10"]), done.errors
    first, second = stage.world.effects
    assert first.key == second.key


async def test_without_a_worker_it_is_the_run_that_waits(broker: AsyncBroker, stage: Stage) -> None:
    """`run(wait=)` needs no capability; one that is there makes no difference before the first pause."""
    support = resumable(agent_of("pay", stage.world), capabilities=[InlineWait(LONG)])
    told = await support.run(broker, TEN, session="s1", key="k")
    assert not isinstance(told, RunRecord)
    assert (await broker.runs.get(told.run_id)).state is RunState.WAITING  # type: ignore[union-attr]
    assert (await broker.inbox.answer(told.interrupt_ids[0], Approve(), by=ME)).ok  # type: ignore[union-attr]


@pytest.mark.parametrize("seconds", [-1, float("nan"), 1e9])
def test_a_wait_has_a_bound(seconds: float) -> None:
    with pytest.raises(InvalidInput, match="seconds"):
        InlineWait(seconds)
