"""Confirmations: by call id, bound to the arguments, once, and never by accident."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from broker import AnswerKind, Approve, AsyncBroker, Conflict, Edit, Reject, RunState, Unknown, gated
from broker.interop import adk
from tests.clock import Clock

from .script import Player, error, value

PAY = ("wire_transfer", {"amount": 40, "to": "acct_2"})
LOOK = ("lookup", {"name": "ada"})


class Bank:
    """A tool that moves money and one that looks; what they did."""

    def __init__(self) -> None:
        self.did: list[Any] = []

    @property
    def tools(self) -> list[Callable[..., Any]]:
        async def wire_transfer(amount: int, to: str) -> str:
            self.did.append(("wire_transfer", amount, to))
            return f"sent {amount}"

        async def lookup(name: str) -> str:
            self.did.append(("lookup", name))
            return f"found {name}"

        return [wire_transfer, lookup]


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def player(timed: AsyncBroker, clock: Clock, bank: Bank) -> Player:
    """A script that looks and pays; paying is asked about."""
    return Player(timed, clock, bank.tools, LOOK, PAY, policy={"per_tool": ["wire_transfer"]})


def hosted(host: AsyncBroker) -> adk.AsyncAgentSession:
    """The session as another process sees it: by session and agent alone."""
    return adk.AsyncAgentSession(host, "s", "airline")


@pytest.mark.row("A10")
async def test_approved_it_runs_and_denied_it_never_does(
    player: Player, bank: Bank, host: AsyncBroker
) -> None:
    """The script is frozen at the call with everything it has; the denial is its result, and final."""
    assert await player.start() is RunState.WAITING
    assert bank.did == [("lookup", "ada")]
    session = hosted(host)
    frozen = await session.load()
    assert frozen is not None
    assert frozen.disposition == adk.AwaitingConfirmation()
    assert (frozen.call.entry, frozen.call.args, frozen.iteration) == ("8", PAY[1], 1)
    assert frozen.tool_roster == ("lookup", "wire_transfer")
    (told,) = await session.decide(*adk.Decision.all_of({"8": "deny"}))
    assert told.accepted
    assert told.stored is not None
    assert "Not approved by host: denied" in told.stored.to_json()["Raise"]
    settled = await session.load()
    assert settled is not None
    assert settled.disposition == told.stored
    assert await player.go() is RunState.FINISHED
    assert await player.result() == [value("found ada"), told.stored.to_json()]
    assert bank.did == [("lookup", "ada")]


@pytest.mark.row("A10", "A22")
@pytest.mark.parametrize(
    ("policy", "asks"),
    [("never", []), ("always", ["7", "8"]), ({"per_tool": ["wire_transfer"]}, ["8"]), ("bogus", ["7", "8"])],
)
async def test_a_policy_asks_about_its_tools(
    timed: AsyncBroker, clock: Clock, bank: Bank, host: AsyncBroker, policy: Any, asks: list[str]
) -> None:
    player = Player(timed, clock, bank.tools, LOOK, PAY, policy=policy)
    state, asked = await player.start(), []
    while state is RunState.WAITING:
        (request,) = await hosted(host).requests()
        asked.append(request.function_call_id)
        done = len(bank.did)
        (told,) = await hosted(host).decide(*adk.Decision.all_of({str(request.function_call_id): "approve"}))
        assert (told.accepted, len(bank.did)) == (True, done)
        state = await player.go()
    assert asked == asks
    assert await player.result() == [value("found ada"), value("sent 40")]


@pytest.mark.row("A9")
async def test_without_a_decision_nothing_changes_and_the_request_is_the_same(
    player: Player, bank: Bank, host: AsyncBroker
) -> None:
    await player.start()
    session = hosted(host)
    before = (await session.requests(), await session.load(), list(await player.asked()))
    assert [one.to_json() for one in before[0]] == [
        {"toolName": "wire_transfer", "functionCallId": "8", "args": {"amount": 40, "to": "acct_2"}}
    ]
    assert await player.go() is RunState.WAITING
    assert (await session.requests(), await session.load(), list(await player.asked())) == before
    assert bank.did == [("lookup", "ada")]


@pytest.mark.row("A11")
async def test_a_tool_name_is_no_key(player: Player, bank: Bank, host: AsyncBroker) -> None:
    await player.start()
    session = hosted(host)
    told = await session.decide(*adk.Decision.all_of({"wire_transfer": "approve", "7": "approve"}))
    assert (told[0].accepted, told[0].outcome) == (False, Unknown(id="wire_transfer"))
    assert not told[1].accepted
    assert (await player.record()).state is RunState.WAITING
    (told_8,) = await session.decide(*adk.Decision.all_of({"8": "approve"}))
    assert told_8.accepted
    await player.go()
    assert bank.did[1:] == [("wire_transfer", 40, "acct_2")]


@pytest.mark.row("A13")
async def test_two_calls_of_one_tool_take_two_decisions(
    timed: AsyncBroker, clock: Clock, bank: Bank, host: AsyncBroker
) -> None:
    """The decision about the first says nothing of the second, though it is equal to it."""
    player = Player(timed, clock, bank.tools, PAY, PAY, policy="always")
    await player.start()
    session = hosted(host)
    first, second = await session.decide(*adk.Decision.all_of({"7": "approve", "8": "deny"}))
    assert (first.accepted, second.outcome) == (True, Unknown(id="8"))
    assert await player.go() is RunState.WAITING
    assert bank.did == [("wire_transfer", 40, "acct_2")]
    (second,) = await session.decide(*adk.Decision.all_of({"8": "deny"}))
    assert second.accepted
    assert await player.go() is RunState.FINISHED
    assert bank.did == [("wire_transfer", 40, "acct_2")]


@pytest.mark.row("A12")
async def test_a_decision_about_other_arguments_is_void(
    player: Player, bank: Bank, host: AsyncBroker
) -> None:
    """Off: `fits` in `AsyncAgentSession._said`."""
    await player.start()
    session = hosted(host)
    other = adk.fingerprint("wire_transfer", {"amount": 400, "to": "acct_2"})
    (told,) = await session.decide(adk.Decision(call_id="8", decision=adk.Word.APPROVE, fingerprint=other))
    assert isinstance(told.outcome, Conflict)
    assert (told.open, (await player.record()).state) == (True, RunState.WAITING)
    same = 'wire_transfer\x1f{"to":"acct_2","amount":40}'
    (told,) = await session.decide(adk.Decision(call_id="8", decision=adk.Word.APPROVE, fingerprint=same))
    assert told.accepted
    await player.go()
    assert bank.did[1:] == [("wire_transfer", 40, "acct_2")]


@pytest.mark.row("A12", "A28")
async def test_arguments_that_a_plug_in_changes_after_the_decision_are_asked_about_again(
    timed: AsyncBroker, clock: Clock, bank: Bank, host: AsyncBroker
) -> None:
    """The approver saw what the plug-in had made of them; when it makes something else of them, that is void.

    Off: `_ask_again_where_changed`.
    """
    fees = [1, 360, 360]

    def add_fee(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return (
            {**arguments, "amount": arguments["amount"] + fees.pop(0)}
            if tool == "wire_transfer"
            else arguments
        )

    player = Player(timed, clock, bank.tools, PAY, policy="always", rewrite=add_fee)
    session = hosted(host)
    await player.start()
    assert [one.args["amount"] for one in await session.requests()] == [41]
    (told,) = await session.decide(*adk.Decision.all_of({"7": "approve"}))
    assert told.accepted
    assert await player.go() is RunState.WAITING
    assert player.error is None
    assert bank.did == []
    assert [one.args["amount"] for one in await session.requests()] == [400]
    assert [one.disposition for one in [await session.load()] if one] == [adk.AwaitingConfirmation()]
    (told,) = await session.decide(*adk.Decision.all_of({"7": "approve"}))
    assert told.accepted
    assert await player.go() is RunState.FINISHED
    assert bank.did == [("wire_transfer", 400, "acct_2")]


async def test_arguments_that_an_approver_edits_are_those_that_run(
    timed: AsyncBroker, clock: Clock, host: AsyncBroker
) -> None:
    """ADK-Rust has no edits; a tool of the broker's may offer them."""
    sent = []

    @gated(offers=(AnswerKind.APPROVE, AnswerKind.EDIT))
    async def wire_transfer(amount: int, to: str) -> str:
        sent.append((amount, to))
        return f"sent {amount}"

    player = Player(timed, clock, [wire_transfer], PAY)
    await player.start()
    assert await player.answer("7", Edit(arguments={"amount": 30, "to": "acct_2"})) == "accepted"
    found = await hosted(host).load()
    assert found is not None
    assert found.disposition == adk.AwaitingConfirmation()
    assert await player.go() is RunState.FINISHED
    assert (await player.result(), sent) == ([value("sent 30")], [(30, "acct_2")])


@pytest.mark.row("A20")
async def test_two_agents_of_a_session_have_a_checkpoint_each(
    timed: AsyncBroker, host: AsyncBroker, wire: dict[str, Any]
) -> None:
    analyst, writer = (adk.AsyncAgentSession(timed, "s_1", name) for name in ("analyst", "writer"))
    one = adk.Checkpoint.from_json(wire)
    other = adk.Checkpoint.from_json(wire | {"iteration": 9})
    await analyst.save(one)
    await writer.save(other)
    assert await adk.AsyncAgentSession(host, "s_1", "analyst").load() == one
    assert await adk.AsyncAgentSession(host, "s_1", "writer").load() == other
    (told,) = await adk.AsyncAgentSession(host, "s_1", "writer").decide(*adk.Decision.all_of({"7": "deny"}))
    assert told.accepted
    await writer.clear()
    assert (await analyst.load(), await writer.load()) == (one, None)
    assert len(await analyst.requests()) == 1


@pytest.mark.row("A11")
async def test_a_decision_about_a_call_of_a_run_that_is_over_says_nothing_of_another(
    timed: AsyncBroker, clock: Clock, bank: Bank, host: AsyncBroker
) -> None:
    """Scripts number their calls from the beginning. Off: `mine` in `_past`."""
    first, second = (
        Player(timed, clock, bank.tools, *lines, policy="always") for lines in ((PAY,), (LOOK, PAY))
    )
    second.how = {"policy": {"per_tool": ["wire_transfer"]}}
    await first.start()
    (told,) = await hosted(host).decide(*adk.Decision.all_of({"7": "approve"}))
    assert told.accepted
    assert await first.go() is RunState.FINISHED
    await second.start()
    (told,) = await hosted(host).decide(*adk.Decision.all_of({"7": "approve"}))
    assert told.outcome == Unknown(id="7")
    assert (await second.record()).state is RunState.WAITING


@pytest.mark.row("A23")
async def test_a_live_handler_and_a_queued_decision_leave_the_same_record(
    timed: AsyncBroker, clock: Clock, bank: Bank, host: AsyncBroker
) -> None:
    async def handler(request: adk.ConfirmationRequest) -> str:
        return "approve" if request.args["amount"] == 40 else "deny"

    records = []
    for way in ("handler", "queued"):
        player = Player(timed, clock, bank.tools, PAY, policy="always")
        await player.start()
        session = adk.AsyncAgentSession(host, "s", "airline", run_id=player.run_id)
        if way == "handler":
            (told,) = await session.confirm(handler)
        else:
            (told,) = await session.decide(*adk.Decision.all_of({"7": "approve"}))
        assert told.accepted
        (interrupt,) = (await player.record()).interrupt_ids
        found = (await host.inbox.get(interrupt)).resolution
        assert found is not None
        records.append((found.state, found.answer, found.by))
        assert await player.go() is RunState.FINISHED
        assert await player.result() == [value("sent 40")]
    assert records[0] == records[1]


async def hang(_: adk.ConfirmationRequest) -> str:
    await asyncio.Event().wait()
    raise AssertionError


def fail(_: adk.ConfirmationRequest) -> str:
    raise LookupError("who?")


@pytest.mark.row("A23", "A26")
@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (hang, "timeout"),
        (fail, "LookupError"),
        (lambda _: "yes", "ValueError"),
        (lambda _: True, "ValueError"),
    ],
    ids=["hangs", "fails", "another word", "no word"],
)
async def test_a_handler_that_fails_leaves_the_question_open(
    player: Player, bank: Bank, host: AsyncBroker, handler: Any, said: str
) -> None:
    await player.start()
    session = hosted(host)
    patience = timedelta(milliseconds=20) if said == "timeout" else None
    (told,) = await session.confirm(handler, timeout=patience)
    assert (told.call_id, told.accepted, told.error, told.open) == ("8", False, said, True)
    assert (await player.record()).state is RunState.WAITING
    (told,) = await session.confirm(lambda _: adk.prompt_answer({"outcome": "selected", "optionId": "other"}))
    assert told.accepted
    assert await player.go() is RunState.FINISHED
    assert bank.did == [("lookup", "ada")]


@pytest.mark.row("A25")
async def test_managed_answers_are_taken_and_one_for_an_unknown_call_is_reported(
    player: Player, bank: Bank, host: AsyncBroker
) -> None:
    await player.start()
    session = hosted(host)

    def event(call_id: str, result: str = "allow") -> adk.ManagedAnswer:
        return adk.ManagedAnswer.from_json(
            {"type": "user.tool_confirmation", "tool_use_id": call_id, "result": result}
        )

    assert (await session.answer(event("tu_81"))).outcome == Unknown(id="tu_81")
    odd = await session.answer(adk.ManagedAnswer.from_json({"type": "user.approve_all"}))
    assert (odd.accepted, odd.error) == (False, "an event that is not known")
    result = adk.CustomToolResult(custom_tool_use_id="8", content=[])
    assert not (await session.answer(result)).accepted
    assert (await player.record()).state is RunState.WAITING
    assert (await session.answer(event("8"))).accepted
    await player.go()
    assert bank.did[1:] == [("wire_transfer", 40, "acct_2")]


@pytest.mark.row("A26")
async def test_a_prompt_that_was_cancelled_runs_nothing(
    player: Player, bank: Bank, host: AsyncBroker
) -> None:
    await player.start()
    (told,) = await hosted(host).confirm(lambda _: adk.prompt_answer({"outcome": "cancelled"}))
    assert told.accepted
    await player.go()
    assert "Given up by host" in (await player.result())[1]["Raise"]
    assert bank.did == [("lookup", "ada")]


def test_what_a_script_is_told_of_a_decision() -> None:
    assert error("x") == adk.Resolved(record=adk.Raise(error="x")).to_json()
    approved, denied = adk.Decision.all_of({"1": "approve", "2": "deny"})
    assert (approved.answer, denied.answer) == (Approve(), Reject(reason="denied"))
