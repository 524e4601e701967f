"""What one party says, and that refusal, failure and abandonment stay three things."""

import pytest

from broker.core.answers import (
    AnswerKind,
    Approve,
    Cancel,
    Complete,
    Fail,
    Principal,
    PrincipalKind,
    Reject,
    Respond,
    UnknownAnswer,
    parse_answer,
)
from broker.core.limits import JSON
from broker.errors import InvalidInput


@pytest.mark.parametrize(
    "wire",
    [
        {"kind": "approve"},
        {"kind": "approve", "note": "fine"},
        {"kind": "edit", "arguments": {"to": "b"}},
        {"kind": "edit", "arguments": None},
        {"kind": "reject", "reason": "over budget"},
        {"kind": "respond", "payload": {"approved": True}},
        {"kind": "complete", "value": None},
        {"kind": "fail", "error": "quota"},
        {"kind": "cancel"},
        {"kind": "cancel", "reason": "left", "payload": {"toolCall": "call_9"}},
    ],
)
def test_every_answer_has_one_form(wire: JSON) -> None:
    assert parse_answer(wire).to_wire() == wire
    assert parse_answer(wire).kind == wire["kind"]


def test_f15_e5_a_rejection_needs_a_reason_and_is_neither_failure_nor_abandonment() -> None:
    with pytest.raises(InvalidInput, match="reason is missing"):
        parse_answer({"kind": "reject"})
    assert len({Reject(reason="x").kind, Fail(error="x").kind, Cancel(reason="x").kind, Approve().kind}) == 4


@pytest.mark.parametrize("payload", [False, 0, "", [], {}])
def test_g16_falsy_payloads_are_payloads(payload: JSON) -> None:
    assert Respond(payload=payload).to_wire()["payload"] == payload
    assert Cancel(payload=payload).to_wire()["payload"] == payload
    assert Complete(value=payload).to_wire()["value"] == payload


def test_g16_absent_and_null_mean_none_on_a_cancel_and_null_is_a_result_on_a_completion() -> None:
    assert parse_answer({"kind": "cancel", "payload": None}) == Cancel()
    assert Cancel(payload=None).to_wire() == {"kind": "cancel"}
    assert Complete(value=None).to_wire() == {"kind": "complete", "value": None}


@pytest.mark.parametrize("wire", [{}, {"kind": None}, {"kind": 1}, "approve", None, [], {"kind": "respond"}])
def test_s18_malformed_answers_never_approve(wire: JSON) -> None:
    with pytest.raises(InvalidInput):
        parse_answer(wire)


def test_p10_an_unknown_answer_is_kept_whole() -> None:
    raw = {"kind": "maybe", "sure": 0.5}
    answer = parse_answer(raw)
    assert answer == UnknownAnswer(raw=raw)
    assert answer.to_wire() == raw
    assert answer.kind not in list(AnswerKind)
    assert not answer.kind.is_known


def test_p12_an_answer_from_outside_is_held_to_the_limits() -> None:
    with pytest.raises(InvalidInput, match=r"payload\.a is NaN or infinite"):
        parse_answer({"kind": "respond", "payload": {"a": float("nan")}})


def test_f43_a_bare_name_is_a_person_nobody_verified() -> None:
    assert Principal.local("kim") == Principal(id="kim", kind=PrincipalKind.PERSON, verified=False)
    for word in (1, "yes", "true"):
        with pytest.raises(InvalidInput, match="verified"):
            Principal.from_json({"id": "kim", "verified": word})
        with pytest.raises(InvalidInput, match="verified"):
            Principal(id="kim", verified=word)  # type: ignore[arg-type]
