"""Why a dispatch paused, on entelix's wire."""

import pytest

from broker.core.kinds import ApprovalPending, Custom, Phase, ScheduledPause, UnknownKind, parse_kind
from broker.core.limits import JSON
from broker.core.models import Interrupt, OnExpiry
from broker.errors import InvalidInput


@pytest.mark.row("E1")
@pytest.mark.parametrize(
    ("wire", "kind", "label"),
    [
        ({"type": "custom"}, Custom(), "custom"),
        (
            {"type": "approval_pending", "tool_use_id": "tu_81"},
            ApprovalPending(tool_use_id="tu_81"),
            "approval pending",
        ),
        (
            {"type": "scheduled_pause", "phase": "before", "node": "quote"},
            ScheduledPause(phase=Phase.BEFORE, node="quote"),
            "paused before quote",
        ),
        (
            {"type": "scheduled_pause", "phase": "after", "node": "quote"},
            ScheduledPause(phase=Phase.AFTER, node="quote"),
            "paused after quote",
        ),
    ],
)
def test_e1_the_three_kinds(wire: JSON, kind: JSON, label: str) -> None:
    assert parse_kind(wire) == kind
    assert kind.to_wire() == wire
    assert kind.label == label
    assert kind.type == wire["type"]


@pytest.mark.row("E2")
@pytest.mark.parametrize(
    "payload",
    [
        None,
        False,
        {"run_id": "run_5", "tool_use_id": "tu_81", "tool": "wire_transfer", "input": {"amount": 40}},
    ],
)
def test_e2_kind_and_payload_are_stored_together(payload: JSON) -> None:
    interrupt = Interrupt(kind=ApprovalPending(tool_use_id="tu_81"), payload=payload)
    assert interrupt.to_wire()["payload"] == payload
    assert Interrupt.from_bytes(interrupt.to_bytes()) == interrupt


@pytest.mark.row("E3")
@pytest.mark.parametrize(
    ("wire", "field"),
    [
        ({}, "type"),
        ({"type": None}, "type"),
        ({"type": ""}, "type"),
        ({"type": 3}, "type"),
        ("custom", "InterruptionKind"),
        (None, "InterruptionKind"),
        ({"type": "approval_pending"}, "tool_use_id"),
        ({"type": "approval_pending", "tool_use_id": None}, "tool_use_id"),
        ({"type": "approval_pending", "tool_use_id": 81}, "tool_use_id"),
        ({"type": "scheduled_pause", "phase": "during", "node": "quote"}, "phase"),
        ({"type": "scheduled_pause", "phase": "before"}, "node"),
    ],
)
def test_e3_malformed_kinds_are_refused(wire: JSON, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_kind(wire)
    assert caught.value.field == field


@pytest.mark.row("E3")
def test_e3_an_extra_key_is_no_fault() -> None:
    kind = parse_kind({"type": "custom", "x": 1})
    assert isinstance(kind, Custom)
    assert kind.to_wire() == {"type": "custom", "x": 1}


def test_e4_an_unknown_kind_is_kept_raw_and_never_settled_by_itself() -> None:
    raw = {"type": "quota_wait", "bucket": "eu"}
    kind = parse_kind(raw)
    match kind:
        case Custom() | ApprovalPending() | ScheduledPause():
            pytest.fail("it was taken for something else")
        case _:
            assert kind == UnknownKind(raw=raw)
    assert (kind.type, kind.to_wire()) == ("quota_wait", raw)
    interrupt = Interrupt(kind=kind)
    assert interrupt.offered == ("cancel",)
    assert interrupt.at_expiry is OnExpiry.WAIT


@pytest.mark.parametrize("given", [{"type": "custom"}, "custom", None])
def test_a_kind_is_given_as_one(given: JSON) -> None:
    with pytest.raises(InvalidInput, match="kind has the wrong type or value"):
        Interrupt(kind=given)
