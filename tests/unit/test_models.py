"""What the pausing worker writes: defaults by kind, deadlines, digests, and values that are values."""

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest

from broker.core.answers import AnswerKind, Approve, Reject
from broker.core.kinds import ApprovalPending, Custom, ScheduledPause
from broker.core.limits import JSON
from broker.core.models import (
    UNREADABLE,
    Action,
    Audience,
    Interrupt,
    InterruptState,
    OnExpiry,
    PendingToolCall,
)
from broker.errors import InvalidInput

REFUND = Action(tool="refund", arguments={"amount": 40})
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("interrupt", "offers", "expiry", "audience"),
    [
        (Interrupt.approval(REFUND, "c1"), "approve reject cancel", OnExpiry.DENY, Audience.APPROVALS),
        (Interrupt.completion(REFUND, "c1"), "complete fail cancel", OnExpiry.DENY, Audience.COMPLETIONS),
        (Interrupt(), "respond approve reject cancel", OnExpiry.CANCEL, Audience.APPROVALS),
        (
            Interrupt(kind=ScheduledPause(phase="before", node="n")),  # type: ignore[arg-type]
            "approve respond cancel",
            OnExpiry.CANCEL,
            Audience.APPROVALS,
        ),
        (UNREADABLE, "cancel", OnExpiry.WAIT, Audience.APPROVALS),
        (
            Interrupt(offers=(AnswerKind.EDIT,), on_expiry=OnExpiry.WAIT, audience=Audience.COMPLETIONS),
            "edit",
            OnExpiry.WAIT,
            Audience.COMPLETIONS,
        ),
    ],
)
def test_what_is_not_said_follows_from_the_kind(
    interrupt: Interrupt, offers: str, expiry: OnExpiry, audience: Audience
) -> None:
    assert interrupt.offered == tuple(offers.split())
    assert interrupt.at_expiry is expiry
    assert interrupt.addressed_to is audience


def test_f22_nothing_approves_at_expiry_unless_a_default_answer_was_given() -> None:
    with pytest.raises(InvalidInput, match="default_answer"):
        Interrupt(on_expiry=OnExpiry.DEFAULT)
    with pytest.raises(InvalidInput, match="default_answer"):
        Interrupt(default_answer=Approve())
    with pytest.raises(InvalidInput, match="default_answer is not among the offers"):
        Interrupt(on_expiry=OnExpiry.DEFAULT, default_answer=Approve(), offers=(AnswerKind.RESPOND,))
    assert Interrupt(on_expiry=OnExpiry.DEFAULT, default_answer=Reject(reason="late")).at_expiry == "default"


def test_f21_default_never_and_a_span_are_three_different_deadlines() -> None:
    spans = [Interrupt(), Interrupt(expires_in=None), Interrupt(expires_in=timedelta(minutes=15))]
    wires = [interrupt.to_wire().get("expires_in_ms", "absent") for interrupt in spans]
    assert wires == ["absent", None, 900_000]
    assert [Interrupt.from_bytes(interrupt.to_bytes()).expires_in for interrupt in spans] == [
        "default",
        None,
        timedelta(minutes=15),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"expires_in": timedelta()},
        {"expires_in": timedelta(seconds=-1)},
        {"expires_at": datetime(2030, 1, 1)},  # noqa: DTZ001 - that is the fault
        {"expires_at": NOON, "expires_in": timedelta(1)},
        {"expires_at": NOON, "expires_in": None},
        {"expires_in": "soon"},
    ],
)
def test_p12_deadlines_that_make_no_sense_are_refused(fields: JSON) -> None:
    with pytest.raises(InvalidInput, match="expires_"):
        Interrupt(**fields)


def test_instants_are_utc_and_whole_milliseconds() -> None:
    east = timezone(timedelta(hours=2))
    when = Interrupt(expires_at=datetime(2030, 1, 1, 14, 0, 0, 1999, tzinfo=east)).expires_at
    assert when == datetime(2030, 1, 1, 12, 0, 0, 1000, tzinfo=UTC)
    assert when is not None
    assert when.tzinfo is UTC


def test_an_approval_s_call_is_its_tool_use() -> None:
    assert Interrupt(kind=ApprovalPending(tool_use_id="tu_81")).call_id == "tu_81"
    with pytest.raises(InvalidInput, match="call_id differs"):
        Interrupt(kind=ApprovalPending(tool_use_id="tu_81"), call_id="tu_82")


@pytest.mark.parametrize(
    "other",
    [
        {"payload": 1},
        {"message": "Pay 400?"},
        {"action": Action(tool="refund", arguments={"amount": 400})},
        {"offers": (AnswerKind.APPROVE,)},
        {"response_schema": {"type": "object"}},
        {"on_expiry": OnExpiry.WAIT},
        {"policy_version": "2"},
        {"call_id": "c2"},
    ],
)
def test_rule_8_the_content_digest_covers_what_a_decider_is_shown(other: JSON) -> None:
    base: JSON = {"action": REFUND, "message": "Pay 40?", "call_id": "c1"}
    assert Interrupt(**base).content_digest == Interrupt(**base).content_digest
    assert Interrupt(**base).content_digest != Interrupt(**base | other).content_digest


@pytest.mark.parametrize(
    "other",
    [
        {"expires_in": timedelta(1)},
        {"metadata": {"trace": 1}},
        {"labels": ("a",)},
        {"traceparent": "00-1"},
        {"agent": "a", "build": "b", "epoch": 2},
    ],
)
def test_what_a_decider_is_not_asked_about_does_not_change_the_digest(other: JSON) -> None:
    assert Interrupt(action=REFUND).content_digest == Interrupt(action=REFUND, **other).content_digest


def test_a12_the_content_digest_survives_the_wire_and_key_order() -> None:
    one = Interrupt(action=Action(tool="t", arguments={"a": 1, "b": 2.0}), payload={"x": 1, "y": None})
    two = Interrupt(action=Action(tool="t", arguments={"b": 2, "a": 1.0}), payload={"y": None, "x": 1})
    assert one.content_digest == two.content_digest == Interrupt.from_bytes(one.to_bytes()).content_digest


def test_s3_arguments_must_be_there_and_may_be_null() -> None:
    call = PendingToolCall.from_json({"tool_call_id": "tc_8", "tool_name": "now", "arguments": None})
    assert call.arguments is None
    with pytest.raises(InvalidInput, match="arguments is missing"):
        PendingToolCall.from_json({"tool_call_id": "tc_8", "tool_name": "now"})


def test_s13_the_order_of_pending_calls_is_kept() -> None:
    calls = tuple(
        PendingToolCall(tool_call_id=i, tool_name="t", arguments=None) for i in ("tc_9", "tc_1", "tc_5")
    )
    state = InterruptState(pending_tool_calls=calls, system_prompt="Be careful.")
    assert InterruptState.from_bytes(state.to_bytes()).pending_tool_calls == calls


def test_values_are_equal_by_value_frozen_and_copied_by_copy_and_pickle() -> None:
    interrupt = Interrupt.approval(REFUND, "c1", payload=[1])
    assert interrupt == Interrupt.approval(REFUND, "c1", payload=[1])
    assert interrupt != Interrupt.approval(REFUND, "c1", payload=[2])
    assert copy.deepcopy(interrupt) == interrupt
    assert pickle.loads(pickle.dumps(interrupt)) == interrupt  # noqa: S301 - our own bytes
    with pytest.raises(ValueError, match="frozen"):
        interrupt.reason = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"resaon": "x"}, "resaon"),
        ({"labels": "abc"}, "labels"),
        ({"labels": ("x",) * 33}, "labels"),
        ({"offers": ("delegate",)}, "offers.0"),
        ({"offers": ()}, "offers"),
        ({"message": "\ud800"}, "message"),
        ({"agent": "no spaces"}, "agent"),
        ({"call_id": "{x}"}, "call_id"),
        ({"priority": "1"}, "priority"),
        ({"metadata": [1]}, "metadata"),
        ({"metadata": {"a": {"b": object()}}}, "metadata.a.b"),
        ({"pending_handle": {"a": float("inf")}}, "pending_handle.a"),
    ],
)
def test_p12_bad_fields_are_named(fields: JSON, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Interrupt(**fields)
    assert caught.value.field == field


def test_p12_too_large_a_record_is_refused_when_it_is_written() -> None:
    with pytest.raises(InvalidInput, match="Interrupt takes"):
        Interrupt(payload="x" * 2000).to_bytes(most=1000)


def test_custom_is_the_default_kind() -> None:
    assert Interrupt().kind == Custom()
    assert Interrupt().to_wire() == {"kind": {"type": "custom"}, "payload": None, "reason": "custom"}


def test_a_copy_with_other_fields_has_digests_of_its_own() -> None:
    action = Action(tool="refund", arguments={"n": 1})
    asked = Interrupt.approval(action, "c1")
    assert asked.model_copy().content_digest == asked.content_digest
    assert asked.model_copy(update={"message": "Now!"}).content_digest != asked.content_digest
    assert (
        action.model_copy(update={"arguments": {"n": 2}}).digest
        == Action(tool="refund", arguments={"n": 2}).digest
    )
    assert action == Action(tool="refund", arguments={"n": 1})
