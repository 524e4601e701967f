"""Dispositions on ADK-Rust's wire, and subagent outcomes on AG-UI's."""

import pytest

from broker.core.dispositions import (
    AwaitingCompletion,
    AwaitingConfirmation,
    PendingResult,
    Raise,
    Resolved,
    SubagentOutcome,
    UnknownDisposition,
    Value,
    parse_disposition,
)
from broker.core.limits import JSON
from broker.core.states import CallState
from broker.errors import InvalidInput


@pytest.mark.row("A1")
@pytest.mark.parametrize(
    ("wire", "disposition"),
    [
        ({"kind": "pending_result"}, PendingResult()),
        ({"kind": "resolved", "Value": {"rows": 3}}, Resolved(record=Value(value={"rows": 3}))),
        ({"kind": "resolved", "Raise": "no such table"}, Resolved(record=Raise(error="no such table"))),
        ({"kind": "awaiting_confirmation"}, AwaitingConfirmation()),
        ({"kind": "awaiting_completion"}, AwaitingCompletion()),
        (
            {"kind": "awaiting_completion", "pending_handle": {"job": "j-9"}},
            AwaitingCompletion(pending_handle={"job": "j-9"}),
        ),
    ],
)
def test_a1_the_six_forms(wire: JSON, disposition: JSON) -> None:
    assert parse_disposition(wire) == disposition
    assert disposition.to_wire() == wire
    assert disposition.kind in list(CallState)


@pytest.mark.row("A2")
@pytest.mark.parametrize(
    "wire",
    [
        {"kind": "resolved"},
        {"kind": "resolved", "Value": 1, "Raise": "x"},
        {"kind": "resolved", "Value": 1, "note": "x"},
        {"kind": "resolved", "value": 1},
        {"kind": "resolved", "Raise": None},
        {"kind": "resolved", "Raise": 7},
    ],
)
def test_a2_resolved_has_exactly_one_of_value_and_raise(wire: JSON) -> None:
    with pytest.raises(InvalidInput):
        parse_disposition(wire)


@pytest.mark.row("A2")
def test_a2_a_null_value_is_a_result() -> None:
    wire = {"kind": "resolved", "Value": None}
    assert parse_disposition(wire) == Resolved(record=Value(value=None))
    assert parse_disposition(wire).to_wire() == wire


@pytest.mark.row("A3")
def test_a3_a_null_handle_reads_and_is_written_as_absent() -> None:
    assert parse_disposition({"kind": "awaiting_completion", "pending_handle": None}) == AwaitingCompletion()
    assert AwaitingCompletion(pending_handle=None).to_wire() == {"kind": "awaiting_completion"}


@pytest.mark.row("A4")
@pytest.mark.parametrize("wire", [{}, {"kind": None}, "pending_result", None, {"Value": 1}])
def test_a4_a_missing_kind_or_a_bare_string_is_an_error(wire: JSON) -> None:
    with pytest.raises(InvalidInput):
        parse_disposition(wire)


@pytest.mark.row("A4")
def test_a4_p10_an_unknown_kind_is_kept_and_taken_for_nothing_else() -> None:
    raw = {"kind": "awaiting_review", "board": 1}
    assert parse_disposition(raw) == UnknownDisposition(raw=raw)
    assert parse_disposition(raw).to_wire() == raw
    assert parse_disposition(raw).kind not in list(CallState)


@pytest.mark.parametrize("kind", ["pending_result", "awaiting_confirmation", "awaiting_completion"])
def test_a1_the_other_three_take_extra_keys(kind: str) -> None:
    assert parse_disposition({"kind": kind, "x": None}).to_wire() == {"kind": kind, "x": None}


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        ({}, SubagentOutcome.success()),
        ({"outcome": {"type": "success"}}, SubagentOutcome.success()),
        ({"outcome": {"type": "suspended"}}, SubagentOutcome.suspended()),
        ({"outcome": {"type": "suspended", "interruptIds": []}}, SubagentOutcome.suspended([])),
        (
            {"outcome": {"type": "suspended", "interruptIds": ["int_4"]}},
            SubagentOutcome.suspended(("int_4",)),
        ),
    ],
)
def test_g7_an_absent_outcome_is_success_and_each_form_comes_back(
    event: JSON, outcome: SubagentOutcome
) -> None:
    assert SubagentOutcome.of_event(event) == outcome
    if event:
        assert outcome.to_wire() == event["outcome"]


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        {},
        {"type": None},
        {"type": ""},
        {"type": 0},
        {"type": "suspended", "interruptIds": None},
        {"type": "suspended", "interruptIds": "int_4"},
        {"type": "suspended", "interruptIds": [4]},
        {"type": "success", "interruptIds": []},
        {"type": "success", "interruptIds": ["int_4"]},
    ],
)
def test_g8_null_outcomes_null_ids_and_ids_on_a_success_are_refused(outcome: JSON) -> None:
    with pytest.raises(InvalidInput):
        SubagentOutcome.of_event({"outcome": outcome})


def test_p10_an_unknown_subagent_outcome_is_neither_done_nor_waiting() -> None:
    outcome = SubagentOutcome.of_event({"outcome": {"type": "paused_by_budget", "left": 3}})
    assert not outcome.is_suspended
    assert outcome != SubagentOutcome.success()
    assert outcome.to_wire() == {"type": "paused_by_budget", "left": 3}


def test_interrupt_ids_are_none_or_the_ones_it_owns() -> None:
    assert SubagentOutcome.success().interrupt_ids == ()
    assert SubagentOutcome.suspended().interrupt_ids == ()
    assert SubagentOutcome.suspended(["a", "b"]).interrupt_ids == ("a", "b")
    assert SubagentOutcome.suspended(["a"]).is_suspended
