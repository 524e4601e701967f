"""Who decides about a tool call: a gate over effects, an approver here, or somebody external through the broker."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker import (
    Approve,
    AsyncBroker,
    CallFailed,
    Edit,
    InvalidInput,
    JournalMismatch,
    Principal,
    Reject,
    Run,
    RunState,
    Settlement,
    Worker,
)
from broker.interop import entelix
from broker.interop.entelix import Approvals, AwaitExternal, Effect, EffectGate, effect, guarded
from tests.clock import Clock
from tests.worker.fleet import QUICK, ended, run_when

from .entering import PAUSED, asked, begin, comes_back, enter


class Bank:
    """A tool of each effect, and what they did; an approver, and what it was asked."""

    def __init__(self, decision: Any = None) -> None:
        self.did: list[int] = []
        self.requests: list[entelix.Request] = []
        self._decision = decision

    async def wire_transfer(self, amount: int) -> str:
        self.did.append(amount)
        return f"sent {amount}"

    async def decide(self, request: entelix.Request) -> Any:
        self.requests.append(request)
        return self._decision

    def handler(self, approvals: Approvals, amount: int = 40, *, fails: bool = False) -> Any:
        @guarded
        async def handle(run: Run[Any]) -> Any:
            try:
                sent = await approvals.call(run, self.wire_transfer, {"amount": amount}, tool_use_id="tu_81")
            except CallFailed as failed:
                sent = [failed.kind, failed.text]
            if fails:
                raise KeyError
            return sent

        return handle


GATES = {
    EffectGate.ALWAYS: (True, True, True),
    EffectGate.MUTATING_AND_ABOVE: (False, True, True),
    EffectGate.DESTRUCTIVE_ONLY: (False, False, True),
}


@pytest.mark.row("E13")
@pytest.mark.parametrize("gate", EffectGate)
def test_E13_three_gates_by_three_effects(gate: EffectGate) -> None:
    effects = (Effect.READ_ONLY, Effect.MUTATING, Effect.DESTRUCTIVE)
    assert tuple(gate.asks(one) for one in effects) == GATES[gate]


def test_an_effect_is_declared_and_what_does_not_say_counts_as_the_worst() -> None:
    @effect(Effect.READ_ONLY)
    def search() -> None: ...

    def unsaid() -> None: ...

    assert entelix.effect_of(search) is Effect.READ_ONLY
    assert entelix.effect_of(unsaid) is Effect.DESTRUCTIVE
    assert all(gate.asks(entelix.effect_of(unsaid)) for gate in EffectGate)


@pytest.mark.row("E13")
async def test_E13_a_call_that_no_gate_asks_about_runs_at_once(broker: AsyncBroker) -> None:
    bank = Bank(Reject(reason="never asked"))
    approvals = Approvals(approver=bank.decide, gate=EffectGate.DESTRUCTIVE_ONLY)

    @effect(Effect.MUTATING)
    async def note(text: str) -> str:
        return text

    async def handler(run: Run[Any]) -> Any:
        return await approvals.call(run, note, {"text": "x"}, tool_use_id="tu_1")

    started = await broker.start("support", session="th_2")
    assert await enter(broker, started.run_id, handler) == "x"
    assert bank.requests == []


@pytest.mark.row("E13")
@pytest.mark.parametrize("decision", [Reject(reason="over budget"), Approve(), AwaitExternal()])
async def test_E13_a_recorded_decision_beats_a_gate_narrowed_later(
    broker: AsyncBroker, decision: Any
) -> None:
    """Off: the gate looked at before what is recorded."""
    bank = Bank(decision)
    wide = bank.handler(Approvals(approver=bank.decide), fails=True)
    narrow_bank = Bank()
    narrow = Approvals(approver=narrow_bank.decide, gate=EffectGate.DESTRUCTIVE_ONLY)
    effect(Effect.READ_ONLY)(Bank.wire_transfer)
    try:
        started = await broker.start("support", session="th_2")
        if decision == AwaitExternal():
            assert await enter(broker, started.run_id, wide) is PAUSED
            await broker.inbox.answer((await asked(broker)).id, Reject(reason="over budget"))
        else:
            with pytest.raises(KeyError):
                await enter(broker, started.run_id, wide)
            await comes_back(broker, started.run_id)
        told = await enter(broker, started.run_id, bank.handler(narrow))
    finally:
        del Bank.wire_transfer.__broker_effect__  # type: ignore[attr-defined]
    assert len(bank.requests) == 1
    assert narrow_bank.requests == []
    if decision == Approve():
        assert told == "sent 40"
        assert bank.did == [40]
    else:
        assert told[0] == "rejected"
        assert "over budget" in told[1]
        assert bank.did == []


async def test_an_approver_sees_the_call_and_its_reject_reaches_the_agent(broker: AsyncBroker) -> None:
    bank = Bank(Reject(reason="over budget"))
    started = await broker.start("support", session="th_2")
    told = await enter(broker, started.run_id, bank.handler(Approvals(approver=bank.decide)))
    assert told == ["rejected", "over budget"]
    assert bank.did == []
    assert bank.requests == [
        entelix.Request(
            run_id=started.run_id, tool_use_id="tu_81", tool="wire_transfer", input={"amount": 40},
            effect=Effect.DESTRUCTIVE,
        )
    ]  # fmt: skip
    assert "40" not in repr(bank.requests[0])


@pytest.mark.row("E10")
async def test_E10_a_call_is_asked_about_once_and_its_decision_stays(broker: AsyncBroker) -> None:
    """Through a pause, a crash and another entry. Off: the approver outside the journal's step."""
    bank = Bank(AwaitExternal())
    approvals = Approvals(approver=bank.decide, reviewers=("ops",))
    run_id = await begin(broker, bank.handler(approvals))
    record = await asked(broker)
    assert (record.interrupt.kind.type, record.interrupt.call_id) == ("approval_pending", "tu_81")
    assert record.interrupt.reviewers == ("ops",)
    await broker.inbox.answer(record.id, Approve())
    with pytest.raises(KeyError):
        await enter(broker, run_id, bank.handler(approvals, fails=True))
    await comes_back(broker, run_id)
    assert await enter(broker, run_id, bank.handler(approvals)) == "sent 40"
    assert bank.did == [40]
    assert len(bank.requests) == 1
    shown = entelix.Interrupted.of(record)
    assert shown.payload == entelix.approval_payload(run_id, "tu_81", "wire_transfer", {"amount": 40})


@pytest.mark.parametrize("decision", [Approve(), AwaitExternal()])
async def test_a_decision_is_about_these_arguments(broker: AsyncBroker, decision: Any) -> None:
    bank = Bank(decision)
    approvals = Approvals(approver=bank.decide)
    started = await broker.start("support", session="th_2")
    if decision == Approve():
        with pytest.raises(KeyError):
            await enter(broker, started.run_id, bank.handler(approvals, fails=True))
        await comes_back(broker, started.run_id)
    else:
        assert await enter(broker, started.run_id, bank.handler(approvals)) is PAUSED
        await broker.inbox.answer((await asked(broker)).id, Approve())
    did = list(bank.did)
    with pytest.raises(JournalMismatch):
        await enter(broker, started.run_id, bank.handler(approvals, amount=400))
    assert bank.did == did


@pytest.mark.parametrize("decision", [None, "approve", Edit(arguments={"amount": 1})])
async def test_what_is_no_decision_never_dispatches(broker: AsyncBroker, decision: Any) -> None:
    bank = Bank(decision)
    started = await broker.start("support", session="th_2")
    with pytest.raises(InvalidInput):
        await enter(broker, started.run_id, bank.handler(Approvals(approver=bank.decide)))
    assert bank.did == []


async def test_an_approver_that_raises_fails_the_attempt(broker: AsyncBroker) -> None:
    async def broken(_: entelix.Request) -> Any:
        raise ConnectionError

    bank = Bank()
    started = await broker.start("support", session="th_2")
    with pytest.raises(ConnectionError):
        await enter(broker, started.run_id, bank.handler(Approvals(approver=broken)))
    assert bank.did == []
    assert "ConnectionError" in (await broker.runs.get(started.run_id)).errors[0]


# E11, E12: silence, and nobody waiting any more ------------------------------------------------------------------

REQUEST = entelix.Request(run_id="r", tool_use_id="tu_81", tool="pay", input=None, effect=Effect.MUTATING)


async def silent(_: entelix.Request) -> Any:
    await asyncio.Event().wait()


@pytest.mark.row("E11")
@pytest.mark.parametrize(
    ("policy", "deadline", "seconds"),
    [
        (timedelta(milliseconds=10), None, "0.01"),
        (timedelta(milliseconds=10), timedelta(hours=1), "0.01"),
        (timedelta(minutes=5), timedelta(seconds=-1), "0"),
    ],
)
async def test_E11_silence_is_a_reject_with_a_reason(
    policy: timedelta, deadline: timedelta | None, seconds: str
) -> None:
    """The shorter of the two counts. Off: `patient` without its scope."""
    until = datetime.now(UTC) + deadline if deadline is not None else None
    told = await entelix.patient(silent, policy=policy, deadline=until)(REQUEST)
    assert told == Reject(reason=f"no decision within {seconds} s")


@pytest.mark.row("E11")
async def test_E11_the_policy_is_five_minutes_where_nobody_says_otherwise(
    broker: AsyncBroker, clock: Clock, sweep: Callable[[], Awaitable[object]]
) -> None:
    """Of a question in the broker too: its end says `expired`, and entelix is told a reject with the reason."""
    assert timedelta(seconds=300) == entelix.approving.PATIENCE
    bank = Bank(AwaitExternal())
    approvals = Approvals(approver=bank.decide, expires_in=entelix.approving.PATIENCE)
    run_id = await begin(broker, bank.handler(approvals))
    found = await asked(broker)
    assert entelix.decision_of(found) == AwaitExternal()
    clock.advance(timedelta(seconds=299))
    await sweep()
    assert (await broker.inbox.get(found.id)).state is Settlement.OPEN
    clock.advance(timedelta(seconds=2))
    await sweep()
    record = await broker.inbox.get(found.id)
    assert record.state is Settlement.EXPIRED
    assert entelix.decision_of(record) == Reject(reason="no decision within 300 s")
    kind, text = await enter(broker, run_id, bank.handler(approvals))
    assert kind == "expired"
    assert text.startswith("Nobody answered in time.")
    assert bank.did == []


async def test_a_timeout_of_the_approvers_own_is_its_error() -> None:
    async def impatient(_: entelix.Request) -> Any:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await entelix.patient(impatient)(REQUEST)


async def test_a_patient_approver_says_what_the_approver_says() -> None:
    assert await entelix.patient(Bank(Approve()).decide)(REQUEST) == Approve()
    assert await entelix.external(REQUEST) == AwaitExternal()


@pytest.mark.row("E12")
async def test_E12_cancelling_the_waiter_is_no_decision(
    broker: AsyncBroker, serve: Callable[..., Worker]
) -> None:
    """A drain in the middle of the wait gives the run back, and the next worker's approver is asked anew.

    Off: `patient` with `except BaseException`.
    """
    bank, waits = Bank(Approve()), asyncio.Event()

    async def waiting(_: entelix.Request) -> Any:
        waits.set()
        await asyncio.Event().wait()

    worker = serve(
        support=bank.handler(Approvals(approver=entelix.patient(waiting))), options={"settings": QUICK}
    )
    started = await broker.start("support", session="th_2")
    await asyncio.wait_for(waits.wait(), 20)
    worker.stop()
    worker.stop()
    run = await run_when(broker, started.run_id, RunState.READY)
    assert run.errors == ()
    assert [one.event for one in await entelix.audit(broker, "th_2")] == ["started", "leased", "released"]
    serve(support=bank.handler(Approvals(approver=bank.decide)))
    assert (await ended(broker, started.run_id)).result == "sent 40"


@pytest.mark.row("E12")
async def test_E12_giving_up_is_neither_a_reject_nor_a_timeout(broker: AsyncBroker) -> None:
    """Off: `decision_of` with cancelled as a reject."""
    bank = Bank(AwaitExternal())
    approvals = Approvals(approver=bank.decide)
    run_id = await begin(broker, bank.handler(approvals))
    found = await asked(broker)
    await broker.cancel(found.id, "shift over", by=Principal(id="worker-3"))
    record = await broker.inbox.get(found.id)
    assert record.state is Settlement.CANCELLED
    assert entelix.decision_of(record) is None
    last = (await entelix.audit(broker, "th_2"))[-1]
    assert (last.event, last.by, last.reason) == ("abandoned", Principal(id="worker-3"), "shift over")
    kind, _ = await enter(broker, run_id, bank.handler(approvals))
    assert kind == "cancelled"
    assert bank.did == []
