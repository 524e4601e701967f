"""ADK-Rust's wire: what it writes we read, what we write it reads, and what it refuses we refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.answers import Answer, Approve, Cancel, Complete, Fail, Reject
from broker.core.shape import Model, slots
from broker.errors import InvalidInput
from broker.interop import adk
from tests.unit.strategies import any_json, ids

from .conftest import CHECKPOINT
from .script import completion

dispositions = st.one_of(
    st.just(adk.PendingResult()),
    st.just(adk.AwaitingConfirmation()),
    any_json.map(lambda one: adk.AwaitingCompletion(pending_handle=one)),
    any_json.map(lambda one: adk.Resolved(record=adk.Value(value=one))),
    st.text(max_size=9).filter(str.isprintable).map(lambda one: adk.Resolved(record=adk.Raise(error=one))),
    any_json.map(lambda one: adk.UnknownDisposition(raw={"kind": "awaiting_review", "x": one})),
)
calls = st.builds(adk.PendingCall, call_id=st.integers(0, 2**64 - 1), tool=ids, args=any_json)
checkpoints = st.builds(
    adk.Checkpoint, iteration=st.integers(0, 2**32 - 1), transcript=st.lists(any_json, max_size=3),
    snapshot=st.binary(max_size=9), call=calls, disposition=dispositions,
    tool_roster=st.lists(ids, max_size=3).map(tuple),
)  # fmt: skip
VALUES: dict[type[Model], st.SearchStrategy[Any]] = {
    adk.Checkpoint: checkpoints,
    adk.PendingCall: calls,
    adk.ConfirmationRequest: st.builds(
        adk.ConfirmationRequest, tool_name=ids, function_call_id=st.none() | ids, args=any_json
    ),
    adk.FunctionResponse: st.builds(
        adk.FunctionResponse, name=ids, response=any_json, id=st.none() | ids
    ),
    adk.Decision: st.builds(
        adk.Decision, call_id=ids, decision=st.sampled_from(list(adk.Word)), fingerprint=st.none() | ids
    ),
    adk.ToolConfirmation: st.builds(
        adk.ToolConfirmation, tool_use_id=ids, result=st.sampled_from(list(adk.Permission)),
        deny_message=st.none() | ids,
    ),
    adk.CustomToolResult: st.builds(
        adk.CustomToolResult, custom_tool_use_id=ids, content=st.lists(any_json, max_size=2),
        is_error=st.booleans(),
    ),
}  # fmt: skip


def through_json(wire: Any) -> Any:
    return json.loads(json.dumps(wire))


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
@given(data=st.data(), extra=any_json)
def test_what_we_write_we_read_and_fields_of_another_version_survive(
    kind: type[Model], data: st.DataObject, extra: Any
) -> None:
    wrote = data.draw(VALUES[kind])
    wire = through_json(wrote.to_json())
    assert kind.from_json(wire) == wrote
    if kind is not adk.FunctionResponse:
        wire["another_version"] = extra
    assert through_json(kind.from_json(wire).to_json()) == wire


def inside(kind: type[Model], wire: dict[str, Any], name: str) -> dict[str, Any]:
    """Where a field of a value lies on the wire."""
    part: Any = wire.get(adk.FunctionResponse.PART) if kind is adk.FunctionResponse and name != "id" else wire
    assert isinstance(part, dict)
    return part


EXAMPLES: dict[type[Model], Model] = {
    adk.Checkpoint: adk.Checkpoint.from_json(CHECKPOINT),
    adk.PendingCall: adk.PendingCall(call_id=7, tool="t", args={}),
    adk.ConfirmationRequest: adk.ConfirmationRequest(tool_name="t", function_call_id="7", args={}),
    adk.FunctionResponse: adk.FunctionResponse(name="t", response=1, id="7"),
    adk.Decision: adk.Decision(call_id="7", decision=adk.Word.DENY),
    adk.ToolConfirmation: adk.ToolConfirmation(tool_use_id="tu_81", result=adk.Permission.DENY, deny_message="no"),
    adk.CustomToolResult: adk.CustomToolResult(custom_tool_use_id="ct_3", content=[], is_error=True),
}  # fmt: skip
FIELDS = [(kind, slot) for kind in EXAMPLES for slot in slots(kind)]


@pytest.mark.parametrize(("kind", "slot"), FIELDS, ids=lambda one: getattr(one, "__name__", None) or one.name)
def test_null_and_absent_mean_what_they_mean_to_serde(kind: type[Model], slot: Any) -> None:
    """A required field has to be there, and null is only a value of JSON ones; an optional null is an absent one."""
    wire = through_json(EXAMPLES[kind].to_json())
    place = inside(kind, wire, slot.wire)
    if slot.required:
        del place[slot.wire]
        with pytest.raises(InvalidInput, match=slot.wire):
            kind.from_json(wire)
    place[slot.wire] = None
    if slot.nullable:
        assert through_json(kind.from_json(wire).to_json()) == wire
    elif slot.required or kind is adk.Decision:
        with pytest.raises(InvalidInput, match=slot.wire):
            kind.from_json(wire)
    else:
        read = kind.from_json(wire)
        assert getattr(read, slot.name) == slot.default
        assert slot.wire not in inside(kind, through_json(read.to_json()), slot.wire)


@pytest.mark.row("A1")
@pytest.mark.parametrize(
    "wire",
    [
        {"kind": "pending_result"},
        {"kind": "resolved", "Value": {"rows": 3}},
        {"kind": "resolved", "Value": None},
        {"kind": "resolved", "Raise": "no such table"},
        {"kind": "awaiting_confirmation"},
        {"kind": "awaiting_completion"},
        {"kind": "awaiting_completion", "pending_handle": {"job": "j-9"}},
    ],
)
def test_a_checkpoint_of_each_disposition_comes_back_from_its_file(
    wire: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "codeact_pending.json"
    file.write_text(json.dumps(CHECKPOINT | {"disposition": wire}))
    read = adk.Checkpoint.load(file)
    read.dump(file)
    assert json.loads(file.read_text()) == CHECKPOINT | {"disposition": wire}
    assert adk.Checkpoint.load(file) == read
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.row("A5")
def test_a_snapshot_is_a_list_of_bytes(wire: dict[str, Any]) -> None:
    read = adk.Checkpoint.from_json(wire)
    assert (read.snapshot, read.call.entry, read.iteration) == (b"\x01\x02\xff", "7", 2)
    assert read.to_json() == wire
    assert "40" not in repr(read)


@pytest.mark.row("A4", "A5")
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("snapshot", [256]), ("snapshot", [-1]), ("snapshot", [True]), ("snapshot", "AQI="), ("snapshot", [1.0]),
        ("iteration", -1), ("iteration", 2**32), ("iteration", True), ("transcript", {}),
        ("call", {"call_id": "7", "tool": "t", "args": 1}), ("call", {"call_id": 2**64, "tool": "t", "args": 1}),
        ("call", {"call_id": 7, "tool": "t"}), ("tool_roster", ["t", None]), ("tool_roster", "t"),
        ("disposition", "pending_result"), ("disposition", {}), ("disposition", {"kind": None}),
        ("disposition", {"kind": "resolved", "value": 1}),
        ("disposition", {"kind": "resolved", "Value": 1, "note": "x"}),
        ("disposition", {"kind": "resolved", "Value": 1, "Raise": "x"}),
    ],
)  # fmt: skip
def test_what_does_not_parse_is_an_error_that_names_the_field_and_never_no_checkpoint(
    wire: dict[str, Any], field: str, wrong: Any, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as raised:
        adk.Checkpoint.from_json(wire | {field: wrong})
    assert raised.value.field.startswith(field)
    file = tmp_path / "codeact_pending.json"
    for text in (json.dumps(wire | {field: wrong}), "{", ""):
        file.write_text(text)
        with pytest.raises(InvalidInput):
            adk.Checkpoint.load(file)
        assert file.read_text() == text


@pytest.mark.row("A12")
def test_a_fingerprint_is_of_one_action_however_it_is_spelled() -> None:
    action = adk.PendingCall(call_id=7, tool="wire_transfer", args={"to": "acct_2", "amount": 40}).action
    assert adk.fingerprint(action.tool, action.arguments) == 'wire_transfer\x1f{"amount":40,"to":"acct_2"}'
    for same in ('{"to":"acct_2","amount":40}', '{"amount":40.0,"to":"acct_2"}'):
        assert adk.fits(f"wire_transfer\x1f{same}", action)
    for other in ('{"amount":400,"to":"acct_2"}', '{"amount":"40","to":"acct_2"}', "", "{"):
        assert not adk.fits(f"wire_transfer\x1f{other}", action)
    assert not adk.fits('lookup\x1f{"amount":40,"to":"acct_2"}', action)


@pytest.mark.row("A11")
@pytest.mark.parametrize("word", ["approved", "APPROVE", "", None, True, {"approve": True}])
def test_a_word_that_is_no_decision_is_refused(word: Any) -> None:
    with pytest.raises(InvalidInput, match=r"decisions\.7"):
        adk.Decision.all_of({"7": word})
    approved, denied = adk.Decision.all_of({"7": "approve", "8": "deny"})
    assert (approved.answer, denied.answer) == (Approve(), Reject(reason="denied"))
    nobodys: Any
    for nobodys in (None, [], "approve"):
        with pytest.raises(InvalidInput, match="decisions"):
            adk.Decision.all_of(nobodys)


@pytest.mark.row("A14")
def test_results_are_found_in_a_message() -> None:
    (found,) = adk.FunctionResponse.all_of(completion("render_video", {"asset": "v-9"}, "12"))
    assert found == adk.FunctionResponse(name="render_video", response={"asset": "v-9"}, id="12")
    for wrong in ({}, {"parts": None}, None, {"parts": [{"functionResponse": {"name": "x"}}]}):
        with pytest.raises(InvalidInput):
            adk.FunctionResponse.all_of(wrong)


@pytest.mark.row("A22")
def test_a_policy_says_which_tools_are_asked_about_and_one_that_is_not_known_asks_about_all() -> None:
    def asked(policy: Any) -> list[str]:
        return [tool for tool in ("delete_record", "lookup") if adk.Policy.parse(policy).asks(tool)]

    assert asked("never") == []
    assert asked("always") == ["delete_record", "lookup"]
    assert asked({"per_tool": ["delete_record", "wire_transfer"]}) == ["delete_record"]
    for unknown in ("deny", None, {"per_tool": "lookup"}, {"per_tool": [], "x": 1}, {"per_tool": [None]}, {}):
        assert asked(unknown) == ["delete_record", "lookup"]
    assert adk.Policy.parse("deny").raw == "deny"


@pytest.mark.row("A25")
@pytest.mark.parametrize(
    ("wire", "call_id", "answer"),
    [
        (
            {"type": "user.tool_confirmation", "tool_use_id": "tu_81", "result": "deny",
             "deny_message": "wrong account"},
            "tu_81", Reject(reason="wrong account"),
        ),
        ({"type": "user.tool_confirmation", "tool_use_id": "tu_81", "result": "allow"}, "tu_81", Approve()),
        (
            {"type": "user.custom_tool_result", "custom_tool_use_id": "ct_3",
             "content": [{"type": "text", "text": "done"}]},
            "ct_3", Complete(value=[{"type": "text", "text": "done"}]),
        ),
        (
            {"type": "user.custom_tool_result", "custom_tool_use_id": "ct_3", "content": ["no"], "is_error": True},
            "ct_3", Fail(error='["no"]'),
        ),
        ({"type": "user.interrupt", "x": 1}, "", None),
    ],
)  # fmt: skip
def test_an_event_of_the_managed_runtime_is_an_answer(
    wire: dict[str, Any], call_id: str, answer: Answer | None
) -> None:
    read = adk.ManagedAnswer.from_json(wire)
    assert (read.call_id, read.answer, read.to_json()) == (call_id, answer, wire)
    if answer is not None and "result" in wire:
        with pytest.raises(InvalidInput, match="result"):
            adk.ManagedAnswer.from_json(wire | {"result": "maybe"})


@pytest.mark.row("A26")
@pytest.mark.parametrize(
    ("outcome", "answer"),
    [
        ({"outcome": "selected", "optionId": "allow-once"}, Approve),
        ({"outcome": "selected", "optionId": "reject-once"}, Reject),
        ({"outcome": "selected", "optionId": "allow-always"}, Reject),
        ({"outcome": "selected"}, Reject),
        ({"outcome": "cancelled"}, Cancel),
        ({"outcome": "cancelled", "optionId": "allow-once"}, Cancel),
        ({"outcome": "later"}, Cancel),
        ({}, Cancel),
        (None, Cancel),
        ("allow-once", Cancel),
    ],
)
def test_only_allow_once_approves(outcome: Any, answer: type[Answer]) -> None:
    assert type(adk.prompt_answer(outcome)) is answer
