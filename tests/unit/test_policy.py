"""The rules before the first write: what may be suspended and what may answer it."""

from datetime import UTC, datetime, timedelta

import pytest

from broker.core import policy
from broker.core.answers import Answer, AnswerKind, Approve, Complete, Edit, Reject, Respond, UnknownAnswer
from broker.core.limits import JSON, Limits
from broker.core.models import Action, Interrupt, InterruptState, PendingToolCall
from broker.core.policy import approved_digest, check_schema, check_suspension, expiry, validate_answer
from broker.errors import InvalidInput, MissingExtra

REFUND = Action(tool="refund", arguments={"amount": 40})
APPROVAL = Interrupt.approval(REFUND, "c1")
SCHEMA: JSON = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "lines": {"type": "array", "items": {"type": "integer"}}},
    "required": ["approved"],
}
QUESTION = Interrupt.question({"text": "Pay?"}, SCHEMA)


def call(call_id: str, tool: str = "refund", arguments: JSON = None) -> PendingToolCall:
    return PendingToolCall(tool_call_id=call_id, tool_name=tool, arguments=arguments or {"amount": 40})


@pytest.mark.parametrize(
    ("interrupt", "answer"),
    [
        (APPROVAL, Approve()),
        (APPROVAL, Reject(reason="no")),
        (APPROVAL.model_copy(update={"offers": (AnswerKind.EDIT,)}), Edit(arguments={"amount": 4})),
        (Interrupt.completion(REFUND, "c1"), Complete(value=None)),
        (QUESTION, Respond(payload={"approved": False, "lines": [1]})),
        (QUESTION, Reject(reason="no")),
        (Interrupt(), Respond(payload=None)),
    ],
)
def test_answers_that_fit(interrupt: Interrupt, answer: Answer) -> None:
    assert validate_answer(interrupt, answer) is None


@pytest.mark.parametrize(
    ("interrupt", "answer", "field"),
    [
        (APPROVAL, Edit(arguments={}), "answer.kind"),
        (APPROVAL, Respond(payload=True), "answer.kind"),
        (APPROVAL, UnknownAnswer(raw={"kind": "approve"}), "answer.kind"),
        (APPROVAL, UnknownAnswer(raw={"kind": "delegate"}), "answer.kind"),
        (Interrupt(offers=(AnswerKind.EDIT,)), Edit(arguments={}), "answer.kind"),
        (QUESTION, Respond(payload={"approved": "yes"}), "payload.approved"),
        (QUESTION, Respond(payload={"approved": True, "lines": [1, "2"]}), "payload.lines[1]"),
        (QUESTION, Respond(payload={}), "payload"),
        (QUESTION, Respond(payload=None), "payload"),
    ],
)
def test_f16_g19_s17_answers_that_do_not_fit_are_invalid_by_field(
    interrupt: Interrupt, answer: Answer, field: str
) -> None:
    invalid = validate_answer(interrupt, answer)
    assert invalid is not None
    assert invalid.field == field
    assert invalid.allowed


def test_f16_a_completion_is_held_to_the_schema_too() -> None:
    interrupt = Interrupt.completion(REFUND, "c1", response_schema={"type": "integer"})
    assert validate_answer(interrupt, Complete(value=3)) is None
    assert validate_answer(interrupt, Complete(value="3")) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema.json"},
        {"properties": {"a": [{"$dynamicRef": "other.json#x"}]}},
        {"$ref": "file:///etc/passwd"},
        {"type": "no such type"},
        {"required": "a"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "exclusiveMinimum": True},
    ],
)
def test_p12_schemas_that_cannot_be_used_or_would_be_fetched_are_refused_at_suspend(schema: JSON) -> None:
    with pytest.raises(InvalidInput, match=r"interrupts\[0\]\.response_schema"):
        check_suspension(InterruptState(), [Interrupt.question(None, schema)])


def test_references_inside_the_schema_are_fine_and_endless_ones_are_no_crash() -> None:
    inside = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}
    check_schema(inside)
    assert validate_answer(Interrupt.question(None, inside), Respond(payload="x")) is not None
    for broken in ({"$ref": "#"}, {"$ref": "#/nowhere"}, {"$ref": "https://example.com/x"}):
        invalid = validate_answer(Interrupt.question(None, broken), Respond(payload=1))
        assert invalid is not None
        assert invalid.field == "response_schema"


def test_without_the_extra_a_schema_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match=r"interrupt-broker\[schema\]"):
        check_suspension(InterruptState(), [QUESTION])
    with pytest.raises(MissingExtra, match="schema"):
        validate_answer(QUESTION, Respond(payload={"approved": True}))


def test_f22_a_default_answer_is_held_to_the_same_rules() -> None:
    fields: JSON = {"on_expiry": "default", "default_answer": Respond(payload={"approved": "maybe"})}
    with pytest.raises(InvalidInput, match=r"interrupts\[0\]\.default_answer\.payload\.approved"):
        check_suspension(InterruptState(), [Interrupt.question(None, SCHEMA, **fields)])


def test_pending_calls_follow_from_interrupts_and_interrupts_from_pending_calls() -> None:
    state, interrupts = check_suspension(InterruptState(system_prompt="p"), [APPROVAL, Interrupt()])
    assert state.pending_tool_calls == (call("c1"),)
    assert state.system_prompt == "p"
    assert interrupts == (APPROVAL, Interrupt())
    state, interrupts = check_suspension(InterruptState(pending_tool_calls=(call("c1"), call("c2"))), [])
    assert [interrupt.call_id for interrupt in interrupts] == ["c1", "c2"]
    assert interrupts[0] == APPROVAL


def test_both_may_be_given_where_they_agree() -> None:
    given = InterruptState(pending_tool_calls=(call("c1", arguments={"amount": 40.0}),))
    assert check_suspension(given, [APPROVAL]) == (given, (APPROVAL,))


@pytest.mark.parametrize(
    ("pending", "interrupts", "field"),
    [
        ([], [], "interrupts"),
        ([], [APPROVAL, APPROVAL], "interrupts[1].call_id"),
        ([call("c2")], [APPROVAL], "state.pending_tool_calls[0]"),
        ([call("c1", tool="pay")], [APPROVAL], "state.pending_tool_calls[0]"),
        ([call("c1", arguments={"amount": 400})], [APPROVAL], "state.pending_tool_calls[0]"),
        ([call("c1"), call("c1")], [APPROVAL], "state.pending_tool_calls"),
        ([call("c1")], [APPROVAL, Interrupt.approval(REFUND, "c2")], "state.pending_tool_calls"),
        ([call("c1")], [Interrupt()], "state.pending_tool_calls[0]"),
    ],
)
def test_p12_a_mismatch_is_refused(pending: JSON, interrupts: JSON, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_suspension(InterruptState(pending_tool_calls=tuple(pending)), interrupts)
    assert caught.value.field == field


def test_p12_too_many_interrupts_and_deadlines_in_the_past_are_refused() -> None:
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    with pytest.raises(InvalidInput, match="interrupts has 3 entries; allowed: at most 2"):
        check_suspension(InterruptState(), [Interrupt()] * 3, limits=Limits(interrupts_per_suspension=2))
    late = Interrupt(expires_at=noon)
    check_suspension(InterruptState(), [late], now=noon - timedelta(seconds=1))
    with pytest.raises(InvalidInput, match=r"interrupts\[0\]\.expires_at is in the past"):
        check_suspension(InterruptState(), [late], now=noon)


def test_f17_what_may_run_after_an_edit_is_the_edited_action() -> None:
    assert approved_digest(APPROVAL, Approve()) == REFUND.digest
    edited = Action(tool="refund", arguments={"amount": 4})
    assert approved_digest(APPROVAL, Edit(arguments={"amount": 4})) == edited.digest
    assert approved_digest(APPROVAL, Reject(reason="no")) is None
    assert approved_digest(Interrupt(), Approve()) is None


def test_f21_when_an_interrupt_ends() -> None:
    day = timedelta(hours=24)
    assert expiry(Interrupt(), day) == ("in", 86_400_000)
    assert expiry(Interrupt(), None) == ("never", 0)
    assert expiry(Interrupt(expires_in=None), day) == ("never", 0)
    assert expiry(Interrupt(expires_in=timedelta(seconds=1.5)), day) == ("in", 1500)
    assert expiry(Interrupt(expires_at=datetime(1970, 1, 2, tzinfo=UTC)), day) == ("at", 86_400_000)
