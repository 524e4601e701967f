"""G25 to G30: subagents of an AG-UI thread, how each closes, what each waits for; told to a ledger and observed."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import AsyncBroker, Settlement
from broker.errors import InvalidInput
from broker.interop import agui
from broker.interop.agui import InvocationState, Rule, SubagentLedger, SubagentOutcome, subagent_outcomes
from tests.seed_systems.agui.making import ask, entry, ids, request, transfer
from tests.seed_systems.agui.spoiling import valid
from tests.seed_systems.agui.streams import (
    SUSPENDED,
    Event,
    Stream,
    begin,
    end,
    event,
    finished,
    interrupts,
    message,
    run,
    started,
)


def broken(stream: Stream) -> list[tuple[Rule, int | None]]:
    validator = agui.StreamValidator()
    for one in stream:
        validator.feed(one)
    validator.close()
    return [(one.rule, one.event) for one in validator.violations]


def interrupt(name: str, owner: str | None = None) -> agui.Interrupt:
    return agui.Interrupt(id=name, reason="confirmation", subagent_run_id=owner)


def observed(*events: Event) -> SubagentLedger:
    ledger = SubagentLedger()
    for one in events:
        assert ledger.observe(one) == []
    return ledger


def states(ledger: SubagentLedger) -> dict[str, InvocationState]:
    return {name: one.state for name, one in ledger.invocations.items()}


# G25 -------------------------------------------------------------------------------------------------------------


@pytest.mark.row("G25")
@pytest.mark.parametrize(
    ("listed", "owners"),
    [
        (["int_4"], {"int_4": "sub_3"}),
        (["int_4"], {"int_4": None}),
        (["int_4"], {"int_5": None}),
        (["int_4"], {"int_4": "sub_2", "int_5": "sub_2"}),
        ([], {"int_4": "sub_2"}),
    ],
    ids=["another's", "the main agent's", "no interrupt of the run", "not all named", "an empty list"],
)
def test_G25_ids_and_tags_that_do_not_agree_are_refused(
    listed: list[str], owners: dict[str, str | None]
) -> None:
    closed = finished("sub_2", outcome={"type": "suspended", "interruptIds": listed})
    stream = run(started("sub_2"), closed, outcome=interrupts(**owners))
    assert set(broken(stream)) == {(Rule.INTERRUPT_OWNER, 4)}
    ledger = observed(*stream[:-1])
    assert {rule for rule, _ in ledger.observe(stream[-1])} == {Rule.INTERRUPT_OWNER}


@pytest.mark.row("G25")
def test_G25_an_owner_that_says_it_is_done_is_refused() -> None:
    stream = run(started("sub_2"), finished("sub_2"), outcome=interrupts(int_4="sub_2"))
    assert broken(stream) == [(Rule.INTERRUPT_OWNER, 4)]


@pytest.mark.row("G25")
def test_G25_ids_and_tags_that_agree_are_taken_and_an_absent_list_only_warned_of() -> None:
    agreeing = run(started("sub_2"), finished("sub_2", "int_4"), outcome=interrupts(int_4="sub_2"))
    assert broken(agreeing) == []
    silent = run(started("sub_2"), finished("sub_2", outcome=SUSPENDED), outcome=interrupts(int_4="sub_2"))
    assert broken(silent) == [(Rule.OWNER_UNNAMED, 4)]
    assert Rule.OWNER_UNNAMED.level is agui.Level.WARNING


@pytest.mark.row("G25", "G26")
def test_G25_each_outcome_is_derived_from_who_owns_what() -> None:
    parents = {"root": None, "mid": "root", "leaf": "mid", "other": None}
    owners = {"int_1": "leaf", "int_2": "leaf", "int_3": None, "int_4": "unseen"}
    assert subagent_outcomes(parents, owners) == {
        "root": SubagentOutcome.suspended(),
        "mid": SubagentOutcome.suspended(),
        "leaf": SubagentOutcome.suspended(["int_1", "int_2"]),
        "other": SubagentOutcome.success(),
        "unseen": SubagentOutcome.suspended(["int_4"]),
    }
    assert subagent_outcomes({"a": "b", "b": "a"}, {"int_1": "a"})["b"] == SubagentOutcome.suspended()


@pytest.mark.row("G25", "G27")
@given(valid(least_subagents=1), st.data())
def test_G25_what_a_ledger_says_always_agrees_with_the_interrupts(
    stream: Stream, data: st.DataObject
) -> None:
    """A producer that only tells what happened sends a stream that conforms, whatever it closed early."""
    ledger = SubagentLedger()
    told: Stream = []
    early = data.draw(st.sets(st.sampled_from(["sub_0", "sub_1", "sub_2"])))
    asked = [agui.Interrupt.from_json(one) for one in stream[-1].get("outcome", {}).get("interrupts", [])]
    for one in stream[:-1]:
        if one["type"] == "SUBAGENT_STARTED":
            told.append(ledger.started(one["subagentRunId"], "payer", parent=one.get("parentSubagentRunId")))
        elif one["type"] != "SUBAGENT_FINISHED":
            told.append(one)
            ledger.observe(one)
    for one in asked:
        ledger.raised(one)
    told += [ledger.finished(name) for name in sorted(early & ledger.invocations.keys())]
    told += ledger.run_finished(asked)
    assert broken([*told, stream[-1]]) == []
    assert set(ledger.outcomes()) == set(ledger.invocations)


# G26 -------------------------------------------------------------------------------------------------------------


def family() -> Stream:
    """`sub_1` has started `sub_2`, which owns `int_4`, and `sub_3`, which owns `int_5`."""
    return run(
        started("sub_1"), started("sub_2", "sub_1"), started("sub_3", "sub_1"), finished("sub_2", "int_4"),
        finished("sub_3", "int_5"), finished("sub_1", outcome=SUSPENDED),
        outcome=interrupts(int_4="sub_2", int_5="sub_3"),
    )  # fmt: skip


@pytest.mark.row("G26")
def test_G26_an_ancestor_waits_and_settles_when_its_descendants_interrupts_do() -> None:
    ledger = observed(*family())
    assert {name: set(one.waits_for) for name, one in ledger.waiting.items()} == {
        "sub_1": {"int_4", "int_5"}, "sub_2": {"int_4"}, "sub_3": {"int_5"},
    }  # fmt: skip
    assert ledger.invocations["sub_1"].outcome == SubagentOutcome.suspended()
    assert ledger.settle(["int_4"]) == ["sub_2"]
    assert ledger.settle(["int_4"]) == []
    assert ledger.settle(["int_5", "int_of_nobody"]) == ["sub_1", "sub_3"]
    assert ledger.waiting == {}


@pytest.mark.row("G26")
@pytest.mark.parametrize("status", ["resolved", "cancelled"])
def test_G26_the_answers_that_the_next_run_starts_with_settle_them(status: str) -> None:
    resume = [{"interruptId": name, "status": status} for name in ("int_4", "int_5")]
    asked = {"threadId": "th_1", "runId": "run_2", "messages": [], "resume": resume}
    ledger = observed(*family(), begin("run_2", input=asked))
    assert ledger.waiting == {}


@pytest.mark.row("G26")
def test_G26_one_that_waits_for_interrupts_that_nobody_claims_waits_for_all_of_its_run() -> None:
    closed = finished("sub_1", outcome={"type": "suspended", "interruptIds": []})
    ledger = observed(*run(started("sub_1"), closed, outcome=interrupts(int_4=None, int_5=None)))
    assert ledger.waiting["sub_1"].waits_for == {"int_4", "int_5"}
    nothing = run(started("sub_1"), finished("sub_1", outcome=SUSPENDED))
    assert broken(nothing) == [(Rule.WAITS_FOR_NOTHING, 4)]


@pytest.mark.row("G26")
async def test_G26_the_brokers_questions_suspend_and_settle_whoever_started_whom(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    """A producer pauses in the broker; a client that has only the stream sees who waits, answers, and sees it end."""
    producer, sent = SubagentLedger(), [begin("run_5", "th_2")]
    sent += [producer.started("sub_1", "planner"), producer.started("sub_2", "payer", parent="sub_1")]
    waiting = await ask(broker, transfer("call_9", subagent_run_id="sub_2"), transfer("call_10"))
    last = await threads.ended(waiting, "run_5")
    assert isinstance(last, agui.RunFinished)
    assert isinstance(last.outcome, agui.Interrupted)
    sent += [*producer.run_finished(last.outcome.interrupts), last.to_json()]
    assert broken(sent) == []

    mine, others = await ids(broker, waiting)
    client = SubagentLedger(json.loads(json.dumps(sent)))
    assert {name: set(one.waits_for) for name, one in client.waiting.items()} == {
        "sub_1": {mine},
        "sub_2": {mine},
    }
    answers = [entry(mine, {"approved": True}), entry(others, {"approved": False})]
    resumed = request(*answers)
    assert isinstance(await threads.receive(resumed), agui.Plan)
    opening = begin("run_6", "th_2", input=resumed.to_json())
    assert producer.observe(opening) == client.observe(opening) == []
    assert client.waiting == producer.waiting == {}
    records = [await broker.inbox.get(one) for one in (mine, others)]
    assert {one.state for one in records} == {Settlement.RESOLVED}
    going = [producer.started("sub_2", "payer"), *producer.run_finished(), end(run="run_6", thread="th_2")]
    assert broken([*sent, opening, *going]) == []


# G27 -------------------------------------------------------------------------------------------------------------


@pytest.mark.row("G27")
def test_G27_an_invocation_that_is_open_when_its_run_finishes_is_refused() -> None:
    assert broken(run(started("sub_2"))) == [(Rule.SUBAGENT_LEFT_OPEN, 3)]
    assert observed(begin(), started("sub_2")).observe(end()) == [
        (Rule.SUBAGENT_LEFT_OPEN, "sub_2 is active when its run finishes")
    ]


@pytest.mark.row("G27")
def test_G27_a_ledger_closes_what_is_open_the_innermost_first() -> None:
    ledger = SubagentLedger()
    ledger.started("sub_1", "planner", description="Plans.", tool_call_id="call_1", message_id="m_1")
    ledger.started("sub_2", "payer", parent="sub_1")
    ledger.started("sub_3", "clerk")
    assert ledger.run_finished([interrupt("int_4", "sub_2")]) == [
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "sub_3"},
        finished("sub_2", "int_4"),
        finished("sub_1", outcome=SUSPENDED),
    ]
    assert ledger.run_finished() == []


@pytest.mark.row("G27")
def test_G27_an_error_of_the_run_ends_every_invocation() -> None:
    failed = [
        begin(),
        started("sub_1"),
        started("sub_2", "sub_1"),
        finished("sub_2"),
        event("RUN_ERROR", message="x"),
    ]
    assert broken(failed) == []
    ledger = observed(*failed)
    assert states(ledger) == {"sub_1": InvocationState.ABANDONED, "sub_2": InvocationState.FINISHED}
    assert ledger.waiting == {}
    assert broken([*failed, begin("run_2"), finished("sub_1"), end(run="run_2")]) == [
        (Rule.SUBAGENT_NOT_ACTIVE, 7)
    ]


@pytest.mark.row("G27")
def test_G27_a_late_error_of_the_run_leaves_the_interrupts_open() -> None:
    late = [*family(), event("RUN_ERROR", message="the flush failed")]
    assert broken(late) == []
    assert observed(*late).waiting.keys() == {"sub_1", "sub_2", "sub_3"}


# G28 -------------------------------------------------------------------------------------------------------------


@pytest.mark.row("G28")
def test_G28_a_suspended_id_goes_on_in_a_later_run_and_a_fresh_one_is_fine_too() -> None:
    first = run(started("sub_2"), finished("sub_2", "int_4"), outcome=interrupts(int_4="sub_2"))
    again = [*first, begin("run_6"), started("sub_2"), finished("sub_2"), end(run="run_6")]
    assert broken(again) == []
    ledger = observed(*again[:-2])
    assert states(ledger) == {"sub_2": InvocationState.ACTIVE}
    assert ledger.waiting == {}, "who goes on, waits no more"
    assert broken([*first, begin("run_6"), started("sub_8"), finished("sub_8"), end(run="run_6")]) == []
    failed = [begin(), started("sub_2"), event("RUN_ERROR", message="x")]
    assert broken([*failed, *again[4:]]) == [], "nor had it ended where its run broke off"


@pytest.mark.row("G28")
@pytest.mark.parametrize("ids", [(), ("int_4",)], ids=["finished", "suspended"])
def test_G28_an_id_never_starts_twice_in_a_run(ids: tuple[str, ...]) -> None:
    part = [started("sub_2"), finished("sub_2", *ids)]
    outcome = interrupts(int_4="sub_2") if ids else None
    assert broken(run(*part, *part, outcome=outcome)) == [(Rule.SUBAGENT_REUSED, 4)]
    assert broken(run(started("sub_2"), *part, outcome=outcome)) == [(Rule.SUBAGENT_ACTIVE, 3)]


@pytest.mark.row("G28")
@pytest.mark.parametrize(
    ("closing", "found"),
    [(finished("sub_2"), [(Rule.SUBAGENT_REUSED, 6)]), (event("SUBAGENT_ERROR", subagentRunId="sub_2", message="x"),
                                                        [(Rule.SUBAGENT_REUSED, 6)])],
    ids=["finished", "failed"],
)  # fmt: skip
def test_G28_an_id_that_has_ended_names_nothing_else_in_a_later_run(closing: Event, found: list[Any]) -> None:
    stream = [
        *run(started("sub_2"), closing),
        begin("run_2"),
        started("sub_2"),
        finished("sub_2"),
        end(run="run_2"),
    ]
    assert broken(stream) == found


# G29 -------------------------------------------------------------------------------------------------------------


@pytest.mark.row("G29")
def test_G29_tags_without_lifecycle_are_accepted_and_their_owner_waits() -> None:
    stream = run(*message(subagentRunId="never_announced"), outcome=interrupts(int_7="never_announced"))
    assert broken(stream) == []
    ledger = observed(*stream)
    assert ledger.outcomes() == {"never_announced": SubagentOutcome.suspended(["int_7"])}
    assert ledger.invocations["never_announced"].name is None
    assert ledger.settle(["int_7"]) == ["never_announced"]


@pytest.mark.row("G29")
def test_G29_what_announces_itself_does_so_before_its_first_event() -> None:
    late = run(*message(subagentRunId="sub_1"), started("sub_1"), finished("sub_1"))
    assert broken(late) == [(Rule.SUBAGENT_LATE, 5)]
    after = run(started("sub_1"), finished("sub_1"), *message(subagentRunId="sub_1"))
    assert broken(after) == [], "what comes after its end is its own still"


# G30 -------------------------------------------------------------------------------------------------------------


@pytest.mark.row("G30")
def test_G30_a_subagent_fails_and_its_run_goes_on_to_success() -> None:
    ledger = SubagentLedger()
    opened = ledger.started("sub_2", "payer")
    failed = ledger.failed("sub_2", "upstream down", code="E_UP")
    assert failed == {
        "type": "SUBAGENT_ERROR",
        "subagentRunId": "sub_2",
        "message": "upstream down",
        "code": "E_UP",
    }
    assert broken(run(opened, failed, *message(), *ledger.run_finished())) == []
    assert states(ledger) == {"sub_2": InvocationState.FAILED}
    assert ledger.outcomes() == {}


# What a producer cannot do ---------------------------------------------------------------------------------------


def refused(fault: Callable[[SubagentLedger], object], word: str) -> None:
    ledger = SubagentLedger(
        [begin(), started("sub_1"), started("sub_2", "sub_1"), finished("sub_2", "int_4")]
    )
    ledger.raised(interrupt("int_5", "sub_1"))
    before = ledger.invocations, ledger.outcomes()
    with pytest.raises(InvalidInput) as told:
        fault(ledger)
    assert told.value.field == "subagentRunId"
    assert word in str(told.value)
    assert (ledger.invocations, ledger.outcomes()) == before


@pytest.mark.row("G25", "G28")
@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (lambda ledger: ledger.started("sub_1", "again"), "active"),
        (lambda ledger: ledger.started("sub_2", "again"), "suspended"),
        (lambda ledger: ledger.started("sub_3", "payer", parent="sub_9"), "sub_9"),
        (lambda ledger: ledger.finished("sub_2"), "not active"),
        (lambda ledger: ledger.finished("sub_9"), "not active"),
        (lambda ledger: ledger.failed("sub_9", "x"), "not active"),
        (lambda ledger: ledger.raised(interrupt("int_6", "sub_2")), "suspended"),
        (lambda ledger: ledger.raised(interrupt("int_5", "sub_2")), "int_5"),
        (lambda ledger: ledger.run_finished([interrupt("int_7"), interrupt("int_6", "sub_2")]), "suspended"),
    ],
    ids=[
        "active",
        "closed",
        "no such parent",
        "finished twice",
        "finish",
        "fail",
        "raise",
        "raised by two",
        "end",
    ],
)
def test_what_would_break_a_rule_is_refused_and_changes_nothing(fault: Any, word: str) -> None:
    refused(fault, word)


def test_a_malformed_event_is_not_observed() -> None:
    ledger = SubagentLedger([begin(), started("sub_1")])
    with pytest.raises(InvalidInput, match="outcome"):
        ledger.observe({"type": "SUBAGENT_FINISHED", "subagentRunId": "sub_1", "outcome": None})
    assert ledger.invocations["sub_1"].is_active
    ledger.raised(interrupt("int_1", "sub_1"))
    ledger.raised(interrupt("int_1", "sub_1"))
    ledger.run_started()
    assert ledger.invocations == {}
