"""What we write we read, and what another version wrote we keep (P10)."""

import pickle

import pytest
from hypothesis import given

from broker.core import wire
from broker.core.answers import Answer, AnswerKind, UnknownAnswer, Verdict, parse_answer
from broker.core.dispositions import Disposition, SubagentOutcome, UnknownDisposition, parse_disposition
from broker.core.kinds import InterruptionKind, UnknownKind, parse_kind
from broker.core.limits import JSON
from broker.core.models import Interrupt, InterruptState, OnExpiry
from broker.core.shape import Model, slots
from broker.errors import Corrupt, InvalidInput

from . import strategies as make

EVERY = pytest.mark.parametrize("model", make.RECORDS, ids=lambda model: model.__name__)


@EVERY
def test_p10_every_record_and_fields_of_another_version_survive_the_round_trip(model: type[Model]) -> None:
    nullable = {slot.wire for slot in slots(model) if slot.nullable}

    @given(value=make.RECORDS[model], added=make.json_values)
    def check(value: Model, added: JSON) -> None:
        plain = value.to_wire()
        assert model.from_bytes(value.to_bytes()) == value
        assert model.from_json(value.to_json()) == value
        assert {name for name, item in plain.items() if item is None} <= nullable
        newer = model.from_wire(plain | {"zz_new": added})
        assert newer.unknown == {"zz_new": added}
        assert model.from_bytes(newer.to_bytes()).to_wire() == plain | {"zz_new": added}

    check()


def test_null_for_an_optional_field_is_refused_and_a_missing_required_one_is_named() -> None:
    for model in make.RECORDS:
        required = [slot.wire for slot in slots(model) if slot.required]
        if required:
            with pytest.raises(InvalidInput, match=f"^{required[0]} is missing"):
                model.from_wire({})
        for slot in slots(model):
            if not slot.nullable and not slot.required:
                with pytest.raises(InvalidInput, match=rf"^{slot.wire} is null"):
                    model.from_wire({slot.wire: None})


@given(kind=make.kinds)
def test_kinds(kind: InterruptionKind) -> None:
    assert parse_kind(kind.to_wire()) == kind


@given(answer=make.answers)
def test_answers(answer: Answer) -> None:
    assert parse_answer(answer.to_wire()) == answer


@given(disposition=make.dispositions)
def test_dispositions(disposition: Disposition) -> None:
    assert parse_disposition(disposition.to_wire()) == disposition


@given(outcome=make.subagents)
def test_g7_subagent_outcomes(outcome: SubagentOutcome) -> None:
    assert SubagentOutcome.from_json(outcome.to_json()) == outcome


def test_p10_unknown_variants_arrive_as_such_inside_other_records() -> None:
    raw = {
        "kind": {"type": "quota_wait", "bucket": "eu"},
        "payload": None,
        "reason": "acme:quota",
        "on_expiry": "escalate",
        "offers": ["approve", "delegate"],
        "default_answer": {"kind": "delegate", "to": "lead"},
    }
    interrupt = Interrupt.from_bytes(wire.encode(raw))
    assert interrupt.kind == UnknownKind(raw={"type": "quota_wait", "bucket": "eu"})
    assert interrupt.default_answer == UnknownAnswer(raw={"kind": "delegate", "to": "lead"})
    assert interrupt.on_expiry is not None
    assert interrupt.offers is not None
    assert not interrupt.on_expiry.is_known
    assert interrupt.on_expiry not in list(OnExpiry)
    assert interrupt.offers[0] is AnswerKind.APPROVE
    assert interrupt.offers[1].value == "delegate"
    assert interrupt.to_wire() == raw
    assert pickle.loads(pickle.dumps(interrupt)) == interrupt  # noqa: S301 - our own bytes


def test_p10_an_unknown_disposition_is_kept_whole() -> None:
    raw = {"kind": "awaiting_review", "board": ["a"]}
    assert Disposition.from_wire(raw) == UnknownDisposition(raw=raw)
    assert Disposition.from_wire(raw).to_wire() == raw


def test_opaque_bytes_pass_untouched() -> None:
    opaque = bytes(range(256))
    state = InterruptState(framework="langgraph", opaque=opaque)
    assert InterruptState.from_bytes(state.to_bytes()).opaque == opaque
    assert InterruptState.from_json(state.to_json()).opaque == opaque


@pytest.mark.parametrize(
    "record",
    [
        {"answer": {"kind": "approve"}, "by": {"id": "kim"}, "op": "o"},
        {"interrupt_id": 7, "answer": {"kind": "approve"}, "by": {"id": "kim"}, "op": "o"},
        {"interrupt_id": "i", "answer": "approve", "by": {"id": "kim"}, "op": "o"},
        {"interrupt_id": "i", "answer": {"kind": "approve"}, "by": {"id": "kim", "verified": 1}, "op": "o"},
        {"interrupt_id": "i", "answer": {"kind": "approve"}, "by": None, "op": "o"},
        {"interrupt_id": "i", "answer": {"kind": "reject"}, "by": {"id": "kim"}, "op": "o"},
        {"interrupt_id": "i", "answer": {"kind": "approve"}, "by": {"id": "kim"}, "op": "o", "changed": "a"},
    ],
)
def test_a_broken_record_is_corrupt_and_names_its_key(record: dict[str, JSON]) -> None:
    with pytest.raises(Corrupt, match=r"ns:0\.0") as caught:
        Verdict.from_bytes(wire.encode(record), key="{ns:0.0}:verdict:i")
    assert caught.value.key == "{ns:0.0}:verdict:i"
    assert caught.value.__context__ is None


def test_reading_our_own_bytes_does_not_check_their_contents_again(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Interrupt.question({"deep": [1, {"a": "b"}]}, metadata={"x": 1}).to_bytes()

    def no_check(*_: object) -> None:
        pytest.fail("JSON was checked at a read")

    monkeypatch.setattr("broker.core.fields.check_json", no_check)
    monkeypatch.setattr("broker.core.shape.check_json", no_check)
    assert Interrupt.from_bytes(data).payload == {"deep": [1, {"a": "b"}]}
