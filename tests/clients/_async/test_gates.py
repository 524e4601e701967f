"""Gated calls, in this colour: nothing runs before it was agreed to, and what runs is what was agreed to."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import redis

from broker import (
    Accepted,
    Action,
    AnswerKind,
    Approve,
    AsyncBroker,
    Cancel,
    Complete,
    Corrupt,
    Edit,
    Interrupt,
    Invalid,
    InvalidInput,
    JournalMismatch,
    Mode,
    OnExpiry,
    Parked,
    Reject,
    Respond,
    RunState,
    Verdict,
    current_call,
    gated,
)
from broker.errors import RosterMismatch
from broker.store.keys import Keyspace
from broker.testing import RunningServer
from tests.clients.asking import ADA
from tests.clock import Clock
from tests.journal.asked import call

from ._runtime import Run
from .journaling import Agent, talking

EDITABLE = (AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT)


class Bank:
    """What was paid, and under which key."""

    def __init__(self) -> None:
        self.paid: list[tuple[Any, ...]] = []
        self.keys: list[str] = []

    @property
    def tool(self) -> Any:
        @gated(offers=(*EDITABLE, AnswerKind.CANCEL), reviewers="cashiers", labels=("money",))
        async def pay(amount: int, to: str = "ada") -> str:
            self.paid.append((amount, to))
            self.keys.append(current_call().key)
            return f"paid {amount}"

        return pay


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def agent(timed: AsyncBroker, clock: Clock, bank: Bank) -> Agent:
    """An agent that wants to pay 40."""
    return Agent(timed, clock, talking([call("c1", "pay", amount=40)], tools=[bank.tool]))


async def test_an_approved_call_runs(agent: Agent, bank: Bank) -> None:
    """A10: the question shows the call, whom it is for, and the conversation."""
    assert await agent.start() is RunState.WAITING
    assert bank.paid == []
    (record,) = (await agent.asked()).values()
    assert record.interrupt.action is not None
    assert (record.interrupt.action.tool, record.interrupt.action.arguments) == ("pay", {"amount": 40})
    assert (record.interrupt.reviewers, record.interrupt.labels) == (("cashiers",), ("money",))
    state = await agent.broker.runs.state(agent.run_id)
    assert state is not None
    assert state.context_snapshot == [{"role": "user", "content": "hello"}]
    assert await agent.answer("c1", Approve()) == "accepted"
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), bank.paid) == (["paid 40"], [(40, "ada")])
    assert bank.keys == [f"{agent.run_id}:c1"]


async def test_F17_an_edited_call_runs_as_it_was_edited(
    agent: Agent, bank: Bank, server: RunningServer, namespace: str
) -> None:
    """A28: types are kept, and the difference is on record. Off: `Answered.running`, or `changed` of a verdict."""
    await agent.start()
    (record,) = (await agent.asked()).values()
    outcome = await agent.broker.inbox.answer(record.id, Edit(arguments={"amount": 30, "to": "bob"}), by=ADA)
    assert isinstance(outcome, Accepted)
    with redis.Redis.from_url(server.url) as client:
        data = client.get(Keyspace(namespace, 1).partition(0).key("verdict", record.id))
    assert isinstance(data, bytes)
    assert Verdict.from_bytes(data).changed == ("arguments.amount", "arguments.to")
    assert await agent.go() is RunState.FINISHED
    assert bank.paid == [(30, "bob")]
    assert type(bank.paid[0][0]) is int


async def test_F17_an_edit_of_other_types_than_the_functions_is_refused(agent: Agent, bank: Bank) -> None:
    """B62: and the right one counts afterwards. Off: the schema in `questions.approval`."""
    await agent.start()
    (record,) = (await agent.asked()).values()
    for arguments, field in (
        ({"amount": "many"}, "arguments.amount"),
        ({"amount": None}, "arguments.amount"),
        ({"amount": 30, "to": 7}, "arguments.to"),
        ({"to": "bob"}, "arguments"),
        ({"amount": 30, "sum": 30}, "arguments"),
    ):
        outcome = await agent.broker.inbox.answer(record.id, Edit(arguments=arguments))
        assert isinstance(outcome, Invalid), outcome
        assert outcome.field == field
    assert await agent.answer("c1", Edit(arguments={"amount": 30})) == "accepted"
    assert await agent.go() is RunState.FINISHED
    assert bank.paid == [(30, "ada")]


ENDS = {
    "rejected": (
        Reject(reason="too much"),
        "Error (rejected): Not approved by ada: too much. It was not run.",
    ),
    "cancelled": (Cancel(reason="moot"), "Error (cancelled): Given up by ada: moot. It was not run."),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_call_that_was_not_agreed_to_says_who_and_why(agent: Agent, bank: Bank, end: str) -> None:
    """A10: it never runs, and the model is told by whom and what for."""
    answer, said = ENDS[end]
    await agent.start()
    (record,) = (await agent.asked()).values()
    await agent.broker.inbox.answer(record.id, answer, by=ADA)
    assert await agent.go() is RunState.FINISHED
    assert (await agent.result(), bank.paid) == ([said], [])


@pytest.mark.report("RB80")
async def test_RB80_an_expired_call_says_that_nobody_answered(agent: Agent, bank: Bank) -> None:
    """Expiry is never reported as a rejection. Off: `_ended` of entries.py, with one text for all ends."""
    await agent.start()
    (record,) = (await agent.asked()).values()
    agent.clock.advance(timedelta(hours=25))
    await agent.broker.inbox.answer(record.id, Approve())
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["Error (expired): Nobody answered in time. It was not run."]
    assert bank.paid == []


async def test_a_question_keeps_to_its_own_time(timed: AsyncBroker, clock: Clock) -> None:
    @gated(expires_in=timedelta(minutes=15), on_expiry=OnExpiry.CANCEL, message="May I?")
    async def quick() -> None: ...

    @gated(expires_in=None, message=lambda **arguments: f"May I {arguments['what']}?")
    async def patient(what: str) -> str:
        return what

    turn = [call("c1", "quick"), call("c2", "patient", what="wait")]
    agent = Agent(timed, clock, talking(turn, tools=[quick, patient]))
    await agent.start()
    asked = await agent.asked()
    assert [one.interrupt.message for one in asked.values()] == ["May I?", "May I wait?"]
    first, second = asked["c1"], asked["c2"]
    assert first.deadline is not None
    assert first.deadline - first.opened_at == timedelta(minutes=15)
    assert second.deadline is None


async def test_a_message_that_cannot_be_made_hides_no_question(timed: AsyncBroker, clock: Clock) -> None:
    @gated(message=lambda nothing_of_that: f"{nothing_of_that}?")
    async def work() -> None: ...

    agent = Agent(timed, clock, talking([call("c1", "work")], tools=[work]))
    assert await agent.start() is RunState.WAITING


@pytest.mark.report("RB5", "RB32", "RB37")
async def test_RB5_RB32_RB37_two_calls_of_one_tool_take_two_decisions(
    timed: AsyncBroker, clock: Clock, bank: Bank
) -> None:
    """A13: and each gets its own, and the run goes on after both. Off: guard `complete` without its condition."""
    turn = [call("c7", "pay", amount=40), call("c8", "pay", amount=40)]
    agent = Agent(timed, clock, talking(turn, tools=[bank.tool]))
    await agent.start()
    await agent.answer("c7", Approve())
    assert (await agent.record()).state is RunState.WAITING
    await agent.answer("c8", Reject(reason="once is enough"))
    await agent.go()
    assert bank.paid == [(40, "ada")]
    assert (await agent.result())[0] == "paid 40"


@pytest.mark.report("RB1")
async def test_RB1_a_second_equal_call_asks_again(timed: AsyncBroker, clock: Clock, bank: Bank) -> None:
    """Identity is never a content hash: what was approved before was another call. Off: `gate` of begin.lua."""
    turns = ([call("c1", "pay", amount=40)], [call("c2", "pay", amount=40)])
    agent = Agent(timed, clock, talking(*turns, tools=[bank.tool]))
    await agent.start()
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.WAITING
    assert list(await agent.asked()) == ["c2"]
    assert bank.paid == [(40, "ada")]


async def test_a_decision_by_the_name_of_a_tool_releases_nothing(agent: Agent, bank: Bank) -> None:
    """A11: decisions are by call id; a tool's name is none."""
    await agent.start()
    by_name = partial(agent.broker.inbox.answer_call, "s", run_id=agent.run_id, seq=1)
    assert (await by_name(call_id="pay", answer=Approve())).code == "unknown"
    assert isinstance(await agent.broker.inbox.answer_call("s", "pay", Approve()), Parked)
    assert (await agent.record()).state is RunState.WAITING
    assert isinstance(await by_name(call_id="c1", answer=Approve()), Accepted)
    await agent.go()
    assert bank.paid == [(40, "ada")]


async def test_somebody_may_answer_in_the_place_of_a_tool(timed: AsyncBroker, clock: Clock) -> None:
    @gated(offers=(AnswerKind.RESPOND, AnswerKind.APPROVE))
    async def ask() -> str:
        raise AssertionError

    agent = Agent(timed, clock, talking([call("c1", "ask")], tools=[ask]))
    await agent.start()
    await agent.answer("c1", Respond(payload={"seat": "7A"}))
    await agent.go()
    assert await agent.result() == ['{"seat": "7A"}']


async def test_a_call_asks_before_it_runs_whatever_the_model_repeats(agent: Agent, bank: Bank) -> None:
    """A9: entered again without a decision (an operator sends it back), nothing changes."""
    await agent.start()
    before = await agent.asked()
    assert agent.error is None
    assert await agent.go() is RunState.WAITING
    assert await agent.asked() == before
    assert bank.paid == []


@pytest.mark.report("RA43", "RB30", "RB83")
@pytest.mark.row("A28")
async def test_RB30_RB83_other_arguments_after_the_decision_run_nothing(
    timed: AsyncBroker, clock: Clock, bank: Bank
) -> None:
    """A28: dead, with both digests; the model answered otherwise. Off: guards `question-digest` and `gate-digest`."""
    amounts = [40, 400]

    async def handler(run: Run[Any]) -> Any:
        return await run.calls([call("c1", "pay", amount=amounts.pop(0))], [bank.tool])

    agent = Agent(timed, clock, handler)
    await agent.start()
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.DEAD
    assert isinstance(agent.error, JournalMismatch)
    assert bank.paid == []
    said = (await agent.record()).errors[-1]
    assert agent.error.recorded in said
    assert agent.error.found in said


async def test_a_run_sent_back_with_the_right_arguments_goes_on(
    timed: AsyncBroker, clock: Clock, bank: Bank
) -> None:
    """X3: the answer survives, and the failure is visible."""
    amounts = [40, 400, 40]

    async def handler(run: Run[Any]) -> Any:
        (message,) = await run.calls([call("c1", "pay", amount=amounts.pop(0))], [bank.tool])
        return message["content"]

    agent = Agent(timed, clock, handler)
    await agent.start()
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.DEAD
    await timed.dead.requeue(agent.run_id)
    assert await agent.go() is RunState.FINISHED
    assert bank.paid == [(40, "ada")]


@pytest.mark.report("RB28")
async def test_RB28_a_tool_that_is_gone_leaves_its_decision(agent: Agent, bank: Bank) -> None:
    """A18: refused with an error that says so; a worker that has the tool goes on. Off: `RosterMismatch`."""
    await agent.start()
    await agent.answer("c1", Approve())
    whole, agent.handler = agent.handler, talking([call("c1", "pay", amount=40)], tools=[])
    assert await agent.go() is RunState.READY
    assert isinstance(agent.error, RosterMismatch)
    assert "roster_mismatch" in (await agent.record()).errors[0]
    agent.handler = whole
    assert await agent.go() is RunState.FINISHED
    assert bank.paid == [(40, "ada")]


@pytest.mark.parametrize("tampered", ["missing", "another", "rejected"])
async def test_without_its_verdict_nothing_runs(
    agent: Agent, bank: Bank, server: RunningServer, namespace: str, tampered: str
) -> None:
    """Rule 35, P1: the mark alone does not count."""
    await agent.start()
    (record,) = (await agent.asked()).values()
    await agent.answer("c1", Approve())
    key = Keyspace(namespace, 1).partition(0).key("verdict", record.id)
    with redis.Redis.from_url(server.url) as client:
        if tampered == "missing":
            client.delete(key)
        else:
            answer = Reject(reason="no") if tampered == "rejected" else Approve()
            other = record.id if tampered == "rejected" else "int_0000" + "f" * 32
            client.set(key, Verdict(interrupt_id=other, answer=answer, by=ADA, op="op").to_bytes())
    assert await agent.go() is RunState.READY
    assert isinstance(agent.error, Corrupt)
    assert bank.paid == []


def test_a_tool_has_no_default_answer() -> None:
    with pytest.raises(InvalidInput):
        gated(on_expiry=OnExpiry.DEFAULT)


async def test_a_question_that_is_open_already_is_kept(timed: AsyncBroker, clock: Clock, bank: Bank) -> None:
    """Mode each, asked by hand: the journal finds its call asked about and does not ask twice."""

    async def handler(run: Run[Any]) -> Any:
        turn = [call("c1", "pay", amount=40), call("c2", "pay", amount=50)]
        if run.seq == 0:
            asked = [
                Interrupt.approval(Action(tool="pay", arguments={"amount": amount}), call_id)
                for call_id, amount in (("c1", 40), ("c2", 50))
            ]
            await run.suspend(*asked, mode=Mode.EACH)
            return None
        return [message["content"] for message in await run.calls(turn, [bank.tool])]

    agent = Agent(timed, clock, handler)
    await agent.start()
    second = (await agent.asked())["c2"]
    await agent.answer("c1", Approve())
    assert await agent.go() is RunState.WAITING
    assert bank.paid == [(40, "ada")]
    assert [one.id for one in (await agent.asked()).values()] == [second.id]
    await agent.answer("c2", Approve())
    assert await agent.go() is RunState.FINISHED
    assert await agent.result() == ["paid 40", "paid 50"]


async def test_completing_an_approval_is_not_offered(agent: Agent) -> None:
    await agent.start()
    (record,) = (await agent.asked()).values()
    assert (await agent.broker.inbox.answer(record.id, Complete(value=1))).code == "invalid"
