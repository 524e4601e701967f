"""How a run ends for its client, by how it stands in the broker; and the calls that the client makes itself."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from ag_ui import core as official

from broker import (
    Action,
    Approve,
    AsyncBroker,
    Broker,
    Complete,
    Fail,
    Interrupt,
    InvalidInput,
    Mode,
    Phase,
    ScheduledPause,
    Settlement,
)
from broker.interop import agui
from broker.testing import RunningServer
from tests.clients.asking import ADA, colour, render

from .making import EDITABLE, ask, entry, foreign, ids, request, transfer

YES = {"approved": True}


def interrupts(event: agui.RunFinished | agui.RunError) -> list[dict[str, Any]]:
    assert isinstance(event, agui.RunFinished)
    assert isinstance(event.outcome, agui.Interrupted)
    official.RunFinishedEvent.model_validate(event.to_json())
    return [one.to_json() for one in event.outcome.interrupts]


@pytest.mark.report("RB84")
@pytest.mark.row("G23")
async def test_G23_while_something_is_open_the_end_is_an_interrupt_with_the_same_id(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    asked = transfer("call_9"), transfer("call_8")
    done = await broker.suspend(
        "payer", *asked, session="th_2", key="run_5", protocol_id="run_5", mode=Mode.EACH
    )
    run, (first, second) = done.run_id, done.interrupt_ids
    assert [one["id"] for one in interrupts(await threads.ended(run, "run_5"))] == [first, second]
    await broker.inbox.answer(first, Approve())
    async with broker.take(run) as held:
        with pytest.raises(InvalidInput, match="leased"):
            await threads.ended(run, "run_6")
        await held.finish("too soon")
    event = await threads.ended(run, "run_6")
    assert [one["id"] for one in interrupts(event)] == [second]
    assert event.to_json()["runId"] == "run_6"
    assert isinstance(await threads.receive(request(entry(second, YES), run="run_7")), agui.Plan)
    async with broker.take(run) as held:
        await held.finish({"sent": 2})
    assert (await threads.ended(run, "run_7")).to_json() == {
        "type": "RUN_FINISHED",
        "threadId": "th_2",
        "runId": "run_7",
        "result": {"sent": 2},
        "outcome": {"type": "success"},
    }


@pytest.mark.row("G23")
async def test_G23_a_run_that_died_ends_as_an_error(broker: AsyncBroker, threads: agui.AsyncThreads) -> None:
    run = (await broker.start("payer", session="th_2", protocol_id="run_5")).run_id
    async with broker.take(run) as held:
        await held.fail("Upstream", "down", final=True)
    event = await threads.ended(run, "run_5")
    assert isinstance(event, agui.RunError)
    assert event.to_json() == {
        "type": "RUN_ERROR",
        "message": "The run failed and is set aside.",
        "code": "dead",
    }
    official.RunErrorEvent.model_validate(event.to_json())


@pytest.mark.row("G31")
async def test_G31_a_cancelled_run_leaves_nothing_open_and_the_next_run_is_an_ordinary_one(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, transfer())
    (mine,) = await ids(broker, run)
    assert not (await threads.receive(request())).ok
    await broker.runs.withdraw(run, reason="the user left")
    assert (await threads.ended(run, "run_7")).to_json()["outcome"] == {"type": "cancelled"}
    assert (await broker.inbox.get(mine)).state is Settlement.WITHDRAWN
    assert await threads.receive(request()) == agui.Plan()
    late = await threads.receive(request(entry(mine, YES)))
    assert isinstance(late, agui.Refusal)
    assert late.code == "conflict"


def pick(call: str = "call_9", **more: Any) -> Interrupt:
    """A call that the client makes."""
    return agui.frontend_call(Action(tool="pick_seat", arguments={"row": 3}), call, **more)


def told(call: str, content: str = "", **more: Any) -> dict[str, Any]:
    return {"id": f"m_{call}", "role": "tool", "toolCallId": call, "content": content, **more}


@pytest.mark.row("G32")
async def test_G32_frontend_calls_end_in_success_and_each_is_answered_by_a_tool_message_before_it_goes_on(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, pick("call_8"), pick("call_9"))
    event = await threads.ended(run, "run_5")
    assert isinstance(event, agui.RunFinished)
    assert not event.closes
    assert event.to_json()["outcome"] == {"type": "success", "pendingToolCallIds": ["call_8", "call_9"]}
    official.RunFinishedEvent.model_validate(event.to_json())
    declined = told("call_9", error="declined")
    official.ToolMessage.model_validate(declined)
    for messages, missing in (([], ("call_8", "call_9")), ([declined], ("call_8",))):
        came = await threads.receive(request(messages=messages))
        assert isinstance(came, agui.Refusal)
        assert (came.code, came.ids) == ("PENDING_TOOL_CALLS", missing)
    both = [{"id": "m_1", "role": "user", "content": "go"}, told("call_8", "12A"), declined]
    came = await threads.receive(request(messages=[*both, told("call_8", "12B")]))
    assert isinstance(came, agui.Refusal)
    assert (came.code, came.ids) == ("conflict", ("call_8",))
    assert (await broker.runs.get(run)).protocol_ids == ("run_5",)
    came = await threads.receive(request(messages=both))
    assert isinstance(came, agui.Plan)
    assert came.run_id == run
    async with broker.take(run) as held:
        assert [one.answer for one in held.resolutions] == [
            Complete(value="12A", protocol_id="run_6"),
            Fail(error="declined", protocol_id="run_6"),
        ]
        assert await threads.receive(request(messages=both)) == agui.Plan(run, replayed=True)


@pytest.mark.row("G32", "G10")
async def test_G32_a_turn_with_approvals_too_is_interrupted_and_needs_both(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, transfer("call_8"), pick("call_9"))
    first, _ = await ids(broker, run)
    assert [one["id"] for one in interrupts(await threads.ended(run, "run_5"))] == [first]
    came = await threads.receive(request(messages=[told("call_9", "12A")]))
    assert isinstance(came, agui.Refusal)
    assert came.code == "PENDING_INTERRUPTS"
    came = await threads.receive(request(entry(first, YES)))
    assert isinstance(came, agui.Refusal)
    assert came.code == "PENDING_TOOL_CALLS"
    came = await threads.receive(request(entry(first, YES), messages=[told("call_9", "12A")]))
    assert isinstance(came, agui.Plan)
    assert await broker.runs.ready("agents") == (run,)


async def test_a_job_of_the_servers_own_is_shown_as_an_interrupt(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, render())
    (shown,) = interrupts(await threads.ended(run, "run_5"))
    assert (shown["reason"], shown["toolCallId"]) == ("broker:awaiting_completion", "job_1")
    came = await threads.receive(request(entry(shown["id"], {"asset": "v-9"})))
    assert isinstance(came, agui.Plan)
    record = await broker.inbox.get(shown["id"])
    assert record.resolution is not None
    assert record.resolution.answer == Complete(value={"asset": "v-9"}, protocol_id="run_6")


@pytest.mark.row("G34", "G1")
async def test_G34_a_client_that_never_saw_the_call_can_show_it(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    asked = transfer(message="Send it?", metadata={"team": "ops"}, subagent_run_id="sub_2", offers=EDITABLE)
    run = await ask(broker, asked)
    (shown,) = interrupts(await threads.ended(run, "run_5"))
    deadline = (await broker.inbox.get(shown["id"])).deadline
    assert deadline is not None
    assert shown == {
        "id": (await ids(broker, run))[0],
        "reason": "tool_call",
        "message": "Send it?",
        "toolCallId": "call_9",
        "responseSchema": {
            "type": "object",
            "properties": {
                "approved": {"type": "boolean"},
                "reason": {"type": "string"},
                "editedArgs": {"type": "object"},
            },
            "required": ["approved"],
        },
        "expiresAt": f"{deadline:%Y-%m-%dT%H:%M:%S}.{deadline.microsecond // 1000:03}Z",
        "metadata": {
            "team": "ops",
            "toolCall": {"toolCallId": "call_9", "tool": "wire_transfer", "args": {"to": "a", "n": 1}},
        },
        "subagentRunId": "sub_2",
    }


@pytest.mark.row("G33")
@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (transfer(), "tool_call"),
        (colour(), "input_required"),
        (Interrupt(reason="confirmation"), "confirmation"),
        (Interrupt(reason="acme:budget_hold"), "acme:budget_hold"),
        (Interrupt(), "broker:custom"),
        (Interrupt(kind=ScheduledPause(phase=Phase.BEFORE, node="pay"), reason="paused"), "broker:paused"),
        (Interrupt(reason="tool_call"), "broker:tool_call"),
        (Interrupt(reason="core:mine"), "broker:core:mine"),
    ],
)
async def test_G33_the_reasons_of_questions(
    broker: AsyncBroker, threads: agui.AsyncThreads, question: Interrupt, reason: str
) -> None:
    run = await ask(broker, question)
    (shown,) = interrupts(await threads.ended(run, "run_5"))
    assert shown["reason"] == reason


@pytest.mark.row("G1", "G24")
async def test_G1_an_interrupt_of_another_agent_comes_out_as_it_went_in(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    wire = {
        "id": "int_4",
        "reason": "acme:budget_hold",
        "message": "More?",
        "toolCallId": "call_9",
        "expiresAt": "2190-01-01T00:00:00+02:00",
        "metadata": {"priority": None},
        "subagentRunId": "sub_2",
        "newer": [None],
    }
    run = await foreign(broker, wire)
    assert interrupts_raw(await threads.ended(run, "run_5")) == [wire]


def interrupts_raw(event: agui.RunFinished | agui.RunError) -> Any:
    return event.to_json()["outcome"]["interrupts"]


@pytest.mark.row("G6")
async def test_G6_nothing_is_closed_on_an_unknown_outcome(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await foreign(broker, {"id": "int_4", "reason": "confirmation"})
    body = {
        "type": "RUN_FINISHED",
        "threadId": "th_2",
        "runId": "run_5",
        "outcome": {"type": "paused_by_budget"},
    }
    event = agui.RunFinished.from_json(body)
    assert (event.closes, agui.suspension_of(event, "payer")) == (False, None)
    assert [one["id"] for one in interrupts_raw(await threads.ended(run, "run_5"))] == ["int_4"]


@pytest.mark.row("G37")
async def test_G37_order_is_arrival_order_whatever_the_timestamps_say(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    later, sooner = timedelta(hours=9), timedelta(hours=1)
    run = await ask(
        broker,
        transfer("call_9", expires_in=later, metadata={"timestamp": 900}),
        transfer("call_8", expires_in=sooner, metadata={"timestamp": 100}),
    )
    first, second = await ids(broker, run)
    shown = interrupts(await threads.ended(run, "run_5"))
    assert [one["toolCallId"] for one in shown] == ["call_9", "call_8"]
    listed = [
        entry(second, YES, metadata={"timestamp": 900}),
        entry(first, YES, metadata={"timestamp": 100}),
    ]
    assert isinstance(await threads.receive(request(*listed)), agui.Plan)
    answered = [one for one in await broker.history("th_2") if one.state == Settlement.RESOLVED]
    assert [one.interrupt_id for one in answered] == [second, first]
    event = agui.RunError(message="late", timestamp=100)
    assert agui.RunError.from_json(event.to_json()).timestamp == 100


async def test_a_run_keeps_the_agui_runs_it_went_through(
    broker: AsyncBroker, threads: agui.AsyncThreads, connect: Callable[..., Any]
) -> None:
    run = (await broker.start("payer", session="th_2", key="run_1", protocol_id="run_1")).run_id
    went = ["run_1"]
    for n in range(2, 6):
        async with broker.take(run) as held:
            assert list(held.protocol_ids) == went
            await held.suspend(transfer(f"call_{n}"))
        (mine,) = await ids(broker, run)
        came = await threads.receive(request(entry(mine, YES), run=f"run_{n}"))
        assert isinstance(came, agui.Plan)
        went.append(f"run_{n}")
        other = await connect()
        assert list((await other.runs.get(run)).protocol_ids) == went
    async with broker.take(run) as held:
        await held.finish()
    assert list((await broker.runs.get(run)).protocol_ids) == went


@pytest.mark.row("G10", "G15", "G23")
async def test_G10_the_blocking_twin_does_the_same(
    broker: AsyncBroker, server: RunningServer, namespace: str
) -> None:
    run = await ask(broker, transfer("call_9"), transfer("call_8"))
    first, second = await ids(broker, run)

    def client() -> None:
        with Broker(server.url, namespace=namespace, by=ADA) as blocking:
            threads = agui.Threads(blocking)
            assert [one["id"] for one in interrupts(threads.ended(run, "run_5"))] == [first, second]
            came = threads.receive(request(entry(first, YES)))
            assert isinstance(came, agui.Refusal)
            assert (came.code, came.ids) == ("PARTIAL_RESUME", (second,))
            whole = request(entry(first, YES), entry(second, status="cancelled"))
            assert isinstance(threads.receive(whole), agui.Plan)
            assert threads.receive(whole) == agui.Plan(run, replayed=True)

    await asyncio.to_thread(client)
