"""Commands to a paused thread: checked whole, answered once, and what matches nothing is told."""

from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Accepted,
    Action,
    AlreadyDecided,
    Approve,
    AsyncBroker,
    Interrupt,
    Invalid,
    InvalidInput,
    Parked,
    Phase,
    Refused,
    Reject,
    Replayed,
    ScheduledPause,
    Settlement,
    UnknownId,
    UnknownKind,
)
from broker.interop import entelix
from broker.interop.entelix import ApproveTool, GoTo, Resume, Update, parse_command, send
from tests.clients.asking import ADA, BEN, refund, render
from tests.clock import Clock

THREAD = "th_2"
UNKNOWN = UnknownKind(raw={"type": "quota_wait", "bucket": "eu"})
COMMANDS = [Resume(), Update(state=1), GoTo(node="x"), Resume(decisions={"tu_81": Approve()})]


async def suspended(broker: AsyncBroker, *interrupts: Interrupt, thread: str = THREAD) -> tuple[str, ...]:
    return (await broker.suspend("support", *interrupts, session=thread)).interrupt_ids


async def events(broker: AsyncBroker) -> list[str]:
    return [one.event for one in await entelix.audit(broker, THREAD)]


@pytest.mark.row("E6")
@pytest.mark.parametrize(
    "wire",
    [
        {"command": "approve_tool", "tool_use_id": "tu_81", "decision": "await_external"},
        {"decisions": {"tu_81": "await_external"}},
        {"decisions": {"tu_81": "approve", "tu_99": "await_external"}},
    ],
)
async def test_E6_await_external_is_no_answer(broker: AsyncBroker, wire: Any) -> None:
    """Refused before anything is written. Off: the look at `AwaitExternal` in `_decisions`."""
    (found,) = await suspended(broker, refund(call="tu_81"))
    with pytest.raises(InvalidInput, match="is await_external"):
        await send(broker, THREAD, parse_command(wire))
    assert (await broker.inbox.get(found)).state is Settlement.OPEN
    assert await events(broker) == ["paused"]
    # The broker itself takes it for no answer either.
    told = await broker.inbox.answer(found, entelix.AwaitExternal())
    assert isinstance(told, Invalid)
    assert (await broker.inbox.get(found)).state is Settlement.OPEN


@pytest.mark.row("E8")
async def test_E8_a_decision_for_another_call_releases_nothing_and_is_told(broker: AsyncBroker) -> None:
    """Off: `unmatched` left out."""
    (found,) = await suspended(broker, refund(call="tu_81"))
    sent = await send(broker, THREAD, ApproveTool(tool_use_id="tu_99", decision=Approve()))
    assert (sent.ok, sent.outcomes) == (False, {})
    assert isinstance(sent.unmatched["tu_99"], Parked)
    assert (await broker.inbox.get(found)).state is Settlement.OPEN
    assert await events(broker) == ["paused", "parked"]


@pytest.mark.row("E9")
async def test_E9_several_decisions_in_one_command(broker: AsyncBroker) -> None:
    ids = await suspended(broker, *(refund(n, call=f"tu_8{n}") for n in (1, 2, 3)))
    wire = {
        "decisions": {"tu_81": "approve", "tu_82": {"reject": {"reason": "duplicate"}}, "tu_83": "approve"}
    }
    sent = await send(broker, THREAD, parse_command(wire))
    assert sent.ok
    assert sent.outcomes.keys() == set(ids)
    (ready,) = await broker.runs.ready("agents")
    async with broker.take(ready) as run:
        told = {one.interrupt.call_id: entelix.decision_of(one) for one in run.interrupts}
        assert told == {"tu_81": Approve(), "tu_82": Reject(reason="duplicate"), "tu_83": Approve()}
        await run.finish()


@pytest.mark.row("E9")
async def test_E9_some_of_several_may_be_decided_and_the_run_waits_for_the_rest(broker: AsyncBroker) -> None:
    await suspended(broker, refund(1, call="tu_81"), refund(2, call="tu_82"))
    assert (await send(broker, THREAD, ApproveTool(tool_use_id="tu_82", decision=Approve()))).ok
    (left,) = await entelix.open_interrupts(broker, THREAD)
    assert left.interrupt.call_id == "tu_81"
    assert await broker.runs.ready("agents") == ()
    assert (await send(broker, THREAD, Resume(decisions={"tu_81": Approve()}))).ok
    assert len(await broker.runs.ready("agents")) == 1


async def test_one_decision_that_does_not_fit_changes_nothing(broker: AsyncBroker) -> None:
    """Off: `validate_answer` left out of `send`."""
    await suspended(broker, refund(call="tu_81"), render(call="job_1"))
    with pytest.raises(Refused) as refused:
        await send(broker, THREAD, Resume(decisions={"tu_81": Approve(), "job_1": Approve()}))
    assert isinstance(refused.value.outcome, Invalid)
    assert len(await entelix.open_interrupts(broker, THREAD)) == 2


async def test_resume_approves_what_is_no_call_and_needs_decisions_for_calls(broker: AsyncBroker) -> None:
    pause = Interrupt(kind=ScheduledPause(phase=Phase.AFTER, node="quote"))
    custom, scheduled, call = await suspended(broker, Interrupt(payload=1), pause, refund(call="tu_81"))
    sent = await send(broker, THREAD, Resume())
    assert sent.outcomes.keys() == {custom, scheduled}
    with pytest.raises(InvalidInput, match="decisions about tu_81"):
        await send(broker, THREAD, Resume())
    assert (await broker.inbox.get(call)).state is Settlement.OPEN


async def test_resume_does_not_run_a_call_again_that_may_have_run(broker: AsyncBroker) -> None:
    doubt = Interrupt.doubt(Action(tool="pay", arguments={}), "tu_81", 1)
    (found,) = await suspended(broker, doubt)
    with pytest.raises(InvalidInput):
        await send(broker, THREAD, Resume())
    assert (await broker.inbox.get(found)).state is Settlement.OPEN
    assert (await send(broker, THREAD, Resume(decisions={"tu_81~1": Approve()}))).ok


async def test_commands_are_answered_once_and_may_be_repeated(broker: AsyncBroker) -> None:
    (found,) = await suspended(broker, refund(call="tu_81"))
    command = ApproveTool(tool_use_id="tu_81", decision=Approve())
    assert isinstance((await send(broker, THREAD, command, by=ADA)).outcomes[found], Accepted)
    assert isinstance((await send(broker, THREAD, command, by=ADA)).outcomes[found], Replayed)
    other = ApproveTool(tool_use_id="tu_81", decision=Reject(reason="no"))
    assert isinstance((await send(broker, THREAD, other, by=BEN)).outcomes[found], AlreadyDecided)


@pytest.mark.parametrize("command", COMMANDS[:3], ids=("resume", "update", "goto"))
async def test_a_repeat_of_a_command_is_the_same_command(broker: AsyncBroker, command: Any) -> None:
    pause = Interrupt(kind=ScheduledPause(phase=Phase.AFTER, node="quote"))
    ids = await suspended(broker, pause, Interrupt())
    for outcome in (Accepted, Replayed):
        sent = await send(broker, THREAD, command)
        assert sent.ok
        assert {one: type(told) for one, told in sent.outcomes.items()} == dict.fromkeys(ids, outcome)


async def test_update_gives_up_calls_and_says_why(broker: AsyncBroker) -> None:
    custom, call = await suspended(broker, Interrupt(), refund(call="tu_81"))
    assert (await send(broker, THREAD, Update(state={"ok": True}))).ok
    records = [await broker.inbox.get(one) for one in (custom, call)]
    assert [one.state for one in records] == ["resolved", "cancelled"]
    assert entelix.decision_of(records[1]) is None
    assert all(one.resolution and one.resolution.answer for one in records)
    assert (await entelix.audit(broker, THREAD))[-1].reason == "the thread goes on by update"


@pytest.mark.parametrize("command", COMMANDS, ids=("resume", "update", "goto", "decision"))
async def test_a_thread_that_waits_for_nothing(broker: AsyncBroker, command: Any) -> None:
    if isinstance(command, Resume) and command.decisions:
        assert isinstance((await send(broker, THREAD, command)).unmatched["tu_81"], Parked)
    else:
        with pytest.raises(UnknownId):
            await send(broker, THREAD, command)


async def test_with_several_paused_runs_one_is_named(broker: AsyncBroker) -> None:
    one, two = [
        await broker.suspend("support", refund(call=call), session=THREAD) for call in ("tu_81", "tu_82")
    ]
    with pytest.raises(InvalidInput) as refused:
        await send(broker, THREAD, Update(state=1))
    assert refused.value.field == "run_id"
    assert one.run_id in refused.value.allowed
    assert (await send(broker, THREAD, Update(state=1), run_id=one.run_id)).ok
    assert (await send(broker, THREAD, ApproveTool(tool_use_id="tu_82", decision=Approve()))).ok
    assert two.interrupt_ids


async def test_an_unknown_command_does_nothing(broker: AsyncBroker) -> None:
    await suspended(broker, Interrupt())
    with pytest.raises(InvalidInput, match="command is not known"):
        await send(broker, THREAD, parse_command({"command": "fork", "decisions": {}}))
    assert len(await entelix.open_interrupts(broker, THREAD)) == 1


@pytest.mark.row("E4")
async def test_E4_an_unknown_kind_is_active_and_nothing_settles_it_by_itself(
    broker: AsyncBroker, clock: Clock, sweep: Any
) -> None:
    """Neither time nor a command. Off: `at_expiry` with deny for it, or `_KNOWN` left out."""
    (found,) = await suspended(broker, Interrupt(kind=UNKNOWN, payload={"bucket": "eu"}))
    (listed,) = (await broker.inbox.list(kind="quota_wait")).items
    assert listed.interrupt.kind.to_json() == {"type": "quota_wait", "bucket": "eu"}
    assert list(await broker.active(THREAD)) == [listed.run_id]
    clock.advance(timedelta(days=30))
    await sweep()
    for command in COMMANDS[:3]:
        with pytest.raises(InvalidInput):
            await send(broker, THREAD, command)
    assert isinstance(await broker.inbox.answer(found, Approve()), Invalid)
    assert (await broker.inbox.get(found)).state is Settlement.OPEN
    assert (await broker.cancel(found)).ok
