"""Events of streamed runs, and waits for external events (from 2.68): the broker is what resolves their tokens."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, CallDeferred, DeferredToolResults, RunContext, ToolApproved
from pydantic_ai.capabilities import RequestInput
from pydantic_ai.messages import (
    DeferredToolRequestsEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    ToolCallPartDelta,
)

from broker import Accepted, Approve, AsyncBroker, InvalidInput, Replayed, RunState
from broker.adapters import Finished, current_run
from broker.adapters.pydantic_ai import InlineWait, resolve_external_event, resumable
from broker.adapters.pydantic_ai.events import Token

from .stage import ME, Stage
from .subjects.pydantic_ai import OUTPUT, PAY, agent_of, model_of
from .test_of_pydantic_ai_waiting import Serve, serve, waiting
from .world import World

__all__ = ["serve"]

TEN = {"amount": 10}


# Streams ---------------------------------------------------------------------------------------------------------


async def test_a_listener_is_told_as_the_run_goes_and_the_pause_comes_last(
    stage: Stage, serve: Serve
) -> None:
    """Deltas before the pause, results after it; each event of which run (it is drained before it parks)."""
    told: list[tuple[str, int, Any]] = []

    async def listen(event: Any) -> None:
        run = current_run()
        told.append((run.id, run.seq, event))
        if isinstance(event, DeferredToolRequestsEvent):
            assert (await stage.broker.runs.get(run.id)).state is RunState.LEASED

    async with serve(resumable(agent_of("pay", stage.world), on_event=listen)):
        run = await waiting(stage)
        first = [event for _, _, event in told]
        assert any(
            isinstance(one, PartDeltaEvent) and isinstance(one.delta, ToolCallPartDelta) for one in first
        )
        assert not any(isinstance(one, FunctionToolResultEvent) for one in first)
        await stage.answer_all(run, [Approve()])
        done = await stage.ended(run)
    assert done.result == ["paid 10"], done.errors
    assert {(run_id, seq) for run_id, seq, _ in told} == {(run.id, 0), (run.id, 1)}
    results = [event for _, seq, event in told if seq == 1 and isinstance(event, FunctionToolResultEvent)]
    assert [one.part.content for one in results] == ["paid 10"]


async def test_events_go_on_through_a_wait_and_beside_the_agents_own(stage: Stage, serve: Serve) -> None:
    heard: list[str] = []
    own: list[str] = []

    async def handler(_: Any, events: Any) -> None:
        own.extend([type(event).__name__ async for event in events])

    agent = resumable(
        agent_of("pay", stage.world), capabilities=[InlineWait(60)], event_stream_handler=handler,
        on_event=lambda event: heard.append(type(event).__name__),
    )  # fmt: skip
    async with serve(agent):
        run = await waiting(stage)
        await stage.answer_all(run, [Approve()])
        assert (await stage.ended(run)).result == ["paid 10"]
    assert heard == own
    assert heard.index("DeferredToolRequestsEvent") < heard.index("FunctionToolResultEvent")


async def test_the_caller_of_a_run_without_a_worker_hears_it(broker: AsyncBroker, world: World) -> None:
    """Its listener stands in the place of the agent's, also for what it does after the answers."""
    agents: list[Any] = []
    callers: list[Any] = []
    support = resumable(agent_of("pay", world), on_event=agents.append)
    told = await support.run(broker, TEN, session="s1", key="k", on_event=callers.append)
    assert isinstance(told, Accepted)
    before = len(callers)
    assert before > 0
    assert (await broker.inbox.answer(told.interrupt_ids[0], Approve(), by=ME)).ok
    done = await support.run(broker, TEN, session="s1", key="k", wait=60, on_event=callers.append)
    assert done == Finished(["paid 10"])
    assert any(isinstance(one, FunctionToolResultEvent) for one in callers[before:])
    assert agents == []


async def test_what_a_listener_raises_ends_the_attempt(broker: AsyncBroker, world: World) -> None:
    def broken(_: Any) -> None:
        raise LookupError("the client has gone")

    support = resumable(agent_of("pay", world))
    with pytest.raises(LookupError, match="gone"):
        await support.run(broker, TEN, session="s1", key="k", on_event=broken)
    assert (await broker.inbox.list()).items == ()


# Waits for external events ---------------------------------------------------------------------------------------


def asking(stage: Stage, ask: Any, *turns: list[Any], **options: Any) -> Agent[Any, Any]:
    """An agent that hands its tokens to `ask`, with a tool of each kind."""
    agent: Agent[Any, Any] = Agent(
        model_of(*turns or ([PAY],)), name="payer", output_type=OUTPUT,
        capabilities=[RequestInput(ask=ask, **options)],
    )  # fmt: skip

    @agent.tool(requires_approval=True)
    def pay(ctx: RunContext[Any], amount: int) -> str:
        stage.world.effect("pay", amount, str((ctx.tool_call_metadata or {}).get("by")))
        return f"paid {amount}"

    @agent.tool_plain
    def free() -> str:
        stage.world.effect("free", None, "")
        return "free"

    @agent.tool_plain
    def ask_(about: str) -> str:  # noqa: ARG001 - the question itself
        raise CallDeferred(kind="question")

    @agent.tool_plain
    def render() -> str:
        raise CallDeferred

    return agent


async def test_a_token_is_resolved_from_anywhere_and_the_run_pauses_meanwhile(
    stage: Stage, serve: Serve
) -> None:
    """Nothing waits in a process: the worker is gone when the token is resolved, and calls of each kind are in it."""
    tokens: list[str] = []
    turn = [("free", {}, "f1"), ("pay", TEN, "c1"), ("ask_", {"about": "colour"}, "q1"), ("render", {}, "r1")]
    async with serve(resumable(asking(stage, lambda _, __, token: tokens.append(token), turn))):
        run = await waiting(stage)
    assert (run.state, len(tokens)) == (RunState.WAITING, 1), run.errors
    said = DeferredToolResults(
        approvals={"c1": ToolApproved(override_args={"amount": 3})}, calls={"q1": "blue", "r1": 240}
    )
    told = await resolve_external_event(stage.broker, tokens[0], said, by=ME)
    assert {name: type(one) for name, one in told.items()} == dict.fromkeys(("c1", "q1", "r1"), Accepted)
    again = await resolve_external_event(stage.broker, tokens[0], said, by=ME)
    assert {type(one) for one in again.values()} == {Replayed}
    async with serve(resumable(asking(stage, lambda _, __, token: tokens.append(token), turn))):
        done = await stage.ended(run)
    assert sorted(map(str, done.result)) == ["240", "blue", "free", "paid 3"], done.errors
    assert [(one.what, one.given, one.key) for one in stage.world.effects] == [
        ("free", None, ""),
        ("pay", 3, ME.id),
    ]
    assert len(tokens) == 1


async def test_a_token_may_be_resolved_before_the_run_has_paused(stage: Stage, serve: Serve) -> None:
    """Whoever is handed the token may be quicker than the pause: the answer is kept and counts (P5)."""
    codes: list[str] = []

    async def ask(_: Any, requests: Any, token: str) -> None:
        said = {"approvals": {one.tool_call_id: True for one in requests.approvals}}
        told = await resolve_external_event(stage.broker, token, said, by=ME)
        codes.extend(one.code for one in told.values())

    async with serve(resumable(asking(stage, ask))):
        done = await stage.ended(await stage.start(TEN))
    assert (done.result, codes) == (["paid 10"], ["parked"]), done.errors
    assert [one.given for one in stage.world.effects] == [10]


async def test_what_asks_may_answer_itself_and_its_timeout_is_the_deadline(
    stage: Stage, serve: Serve
) -> None:
    async with serve(
        resumable(asking(stage, lambda _, requests, __: requests.build_results(approve_all=True)))
    ):
        done = await stage.ended(await stage.start(TEN))
    assert (done.result, done.seq) == (["paid 10"], 0), done.errors
    soon = timedelta(seconds=0.3)
    async with serve(resumable(asking(stage, lambda *_: None, timeout=soon))):
        done = await stage.ended(await stage.start(TEN))
    assert "nobody answered" in done.result[0].lower(), done.errors
    assert len(stage.world.effects) == 1


async def test_a_wait_is_gone_on_with_inline_where_it_may(
    stage: Stage, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[str] = []
    agent = resumable(
        asking(stage, lambda _, __, token: tokens.append(token), [("free", {}, "f1"), PAY]),
        capabilities=[InlineWait(60)],
    )
    monkeypatch.setattr(agent, "resume", None)
    async with serve(agent):
        run = await waiting(stage)
        said = {"approvals": {"c1": False}}
        await resolve_external_event(stage.broker, tokens[0], said, by=ME)
        done = await stage.ended(run)
    assert done.result[0] == "free", done.errors
    assert "denied" in done.result[1]


@pytest.mark.parametrize("token", ["", "x", "W10=", "WzEsMiwzLDQsNV0="])
async def test_what_is_no_token_is_named(broker: AsyncBroker, token: str) -> None:
    with pytest.raises(InvalidInput, match="token"):
        await resolve_external_event(broker, token, {}, by=ME)


async def test_a_decision_of_another_shape_answers_nothing(broker: AsyncBroker) -> None:
    token = str(Token("s", "run_1", 1, "payer", []))
    given: tuple[Any, ...] = ({"approvals": 3}, {"approvals": {"c1": "maybe"}}, "yes", {"calls": []})
    for payload in given:
        with pytest.raises(InvalidInput, match="payload"):
            await resolve_external_event(broker, token, payload, by=ME)
