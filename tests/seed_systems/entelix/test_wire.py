"""entelix's shapes: what is written is read, what is refused names its field, the unknown survives."""

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from broker import Approve, Custom, Edit, InvalidInput, Phase, Reject, ScheduledPause, UnknownKind
from broker.core.kinds import ApprovalPending, InterruptionKind, parse_kind
from broker.core.shape import Model, slots
from broker.interop import entelix
from broker.interop.entelix.commands import Command
from broker.interop.entelix.graph import Position
from tests.unit.strategies import any_json, ids, words

JSON = Any

KINDS: list[JSON] = [
    {"type": "custom"},
    {"type": "approval_pending", "tool_use_id": "tu_81"},
    {"type": "scheduled_pause", "phase": "before", "node": "quote"},
    {"type": "scheduled_pause", "phase": "after", "node": "quote"},
]
DECISIONS: list[tuple[JSON, Any]] = [
    ("approve", Approve()),
    ({"reject": {"reason": "over budget"}}, Reject(reason="over budget")),
    ("await_external", entelix.AwaitExternal()),
]
COMMANDS: list[tuple[JSON, Command]] = [
    ({"command": "resume"}, entelix.Resume()),
    ({"command": "update", "state": {"ok": True}}, entelix.Update(state={"ok": True})),
    ({"command": "update", "state": None}, entelix.Update(state=None)),
    ({"command": "goto", "node": "refund"}, entelix.GoTo(node="refund")),
    (
        {"command": "approve_tool", "tool_use_id": "tu_81", "decision": "approve"},
        entelix.ApproveTool(tool_use_id="tu_81", decision=Approve()),
    ),
    (
        {"command": "approve_tool", "tool_use_id": "tu_81", "decision": "await_external"},
        entelix.ApproveTool(tool_use_id="tu_81", decision=entelix.AwaitExternal()),
    ),
]

reasons = st.builds(lambda reason: Reject(reason=reason), words)
decisions = st.sampled_from([Approve(), entelix.AwaitExternal()]) | reasons
commands = (
    st.builds(entelix.Resume, decisions=st.dictionaries(ids, decisions, max_size=3))
    | st.builds(entelix.ApproveTool, tool_use_id=ids, decision=decisions)
    | st.builds(entelix.Update, state=any_json)
    | st.builds(entelix.GoTo, node=ids)
)
kinds = st.sampled_from([parse_kind(one) for one in KINDS]) | st.dictionaries(
    words, st.sampled_from([None, 1, "x", [True]]), max_size=2
).map(lambda more: UnknownKind(raw={"type": "quota_wait"} | more | {"type": "quota_wait"}))


def checks(name: str, data: JSON) -> bool:
    """Whether the published schema takes it."""
    return Draft202012Validator(entelix.schemas()[name]).is_valid(data)


# E1 to E4: why it paused ------------------------------------------------------------------------------------------


@pytest.mark.row("E1")
@pytest.mark.parametrize("wire", KINDS)
def test_E1_the_kinds_go_both_ways(wire: JSON) -> None:
    kind = parse_kind(json.loads(json.dumps(wire)))
    assert kind.to_json() == wire
    assert kind == parse_kind(wire)
    assert kind == copy.deepcopy(kind)
    assert checks("InterruptionKind", wire)


@pytest.mark.row("E2")
@given(kind=kinds, payload=any_json)
def test_E2_kind_and_payload_travel_together(kind: InterruptionKind, payload: JSON) -> None:
    """Off: `to_json` without `payload` where it is null, `question` without it."""
    raised = entelix.Interrupted(kind, payload)
    wire = raised.to_json()
    assert wire.keys() == {"kind", "payload"}
    assert entelix.Interrupted.from_json(json.loads(json.dumps(wire))) == raised
    assert (raised.question().kind, raised.question().payload) == (kind, payload)
    assert pickle.loads(pickle.dumps(raised)) == raised  # noqa: S301 - our own bytes
    assert checks("Interrupted", wire)


@pytest.mark.row("E2")
def test_E2_an_approval_shows_its_call() -> None:
    shown = entelix.approval_payload("run_5", "tu_81", "wire_transfer", {"amount": 40})
    assert shown == {
        "run_id": "run_5",
        "tool_use_id": "tu_81",
        "tool": "wire_transfer",
        "input": {"amount": 40},
    }
    asked = entelix.Interrupted(ApprovalPending(tool_use_id="tu_81"), shown).question()
    assert asked.action is not None
    assert (asked.call_id, asked.action.tool, asked.action.arguments) == (
        "tu_81",
        "wire_transfer",
        {"amount": 40},
    )
    assert entelix.Interrupted(ApprovalPending(tool_use_id="tu_81"), {"tool": "x"}).question().action is None


def test_what_is_raised_is_equal_by_value_and_shows_no_payload() -> None:
    one, same = entelix.Interrupted(Custom(), {"secret": 1}), entelix.Interrupted(Custom(), {"secret": 1})
    assert one == same
    assert hash(one) == hash(same)
    assert one != entelix.Interrupted(Custom(), {"secret": True})
    assert one != entelix.Interrupted(ScheduledPause(phase=Phase.BEFORE, node="x"), {"secret": 1})
    assert "secret" not in f"{one!s} {one!r}"
    assert (
        str(entelix.Interrupted(ScheduledPause(phase=Phase.AFTER, node="x")))
        == "It pauses here: paused after x."
    )
    assert one.code == "interrupted"
    assert not isinstance(one, Exception)


@pytest.mark.row("E3")
@pytest.mark.parametrize(
    ("wire", "field"),
    [
        ({"payload": 1}, "kind"),
        ({"kind": {"type": "approval_pending", "tool_use_id": None}}, "kind.tool_use_id"),
        ({"kind": {"type": "approval_pending"}}, "kind.tool_use_id"),
        ({"kind": {"type": "scheduled_pause", "phase": "during", "node": "quote"}}, "kind.phase"),
        ({"kind": {}}, "kind.type"),
        ("custom", "kind"),
    ],
)
def test_E3_what_is_malformed_is_refused(wire: JSON, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        entelix.Interrupted.from_json(wire)
    assert refused.value.field == field
    assert not checks("Interrupted", wire)


@pytest.mark.row("E3")
@pytest.mark.parametrize("wire", KINDS)
def test_E3_extra_keys_are_no_fault_on_any_kind_and_survive(wire: JSON) -> None:
    kind = parse_kind(wire | {"x": {"y": None}})
    assert type(kind) is type(parse_kind(wire))
    assert kind.to_json() == wire | {"x": {"y": None}}


@pytest.mark.row("E4")
@given(more=st.dictionaries(words, any_json, max_size=3))
def test_E4_an_unknown_type_is_kept_whole(more: dict[str, JSON]) -> None:
    wire = more | {"type": "quota_wait"}
    kind = parse_kind(wire)
    assert isinstance(kind, UnknownKind)
    assert kind.to_json() == wire


# E5, E7, E9: what is said ----------------------------------------------------------------------------------------


@pytest.mark.row("E5")
@pytest.mark.parametrize(("wire", "decision"), DECISIONS)
def test_E5_the_decisions_go_both_ways(wire: JSON, decision: Any) -> None:
    assert entelix.parse_decision(wire) == decision
    assert entelix.decision_json(decision) == wire
    assert checks("Decision", wire)


@pytest.mark.row("E5")
@pytest.mark.parametrize(
    ("wire", "decision"),
    [
        ({"approve": None}, Approve()),
        ({"await_external": None}, entelix.AwaitExternal()),
        ({"reject": {"reason": ""}}, Reject(reason="")),
    ],
)
def test_E5_forms_that_are_read_as_well(wire: JSON, decision: Any) -> None:
    assert entelix.parse_decision(wire) == decision
    assert checks("Decision", wire)


@pytest.mark.row("E5")
@pytest.mark.parametrize(
    "wire",
    [
        {"reject": {}}, {"reject": {"reason": None}}, {"reject": {"reason": 3}}, {"reject": None}, "reject", "maybe",
        {"approve": {}}, {"approve": None, "reject": {"reason": "no"}}, {}, None, True, ["approve"],
    ],
)  # fmt: skip
def test_E5_other_forms_are_refused(wire: JSON) -> None:
    with pytest.raises(InvalidInput):
        entelix.parse_decision(wire)
    assert not checks("Decision", wire)


def test_what_entelix_has_no_word_for_is_not_written() -> None:
    with pytest.raises(InvalidInput, match="decision is edit"):
        entelix.decision_json(Edit(arguments={}))


@pytest.mark.row("E7")
@pytest.mark.parametrize(("wire", "command"), COMMANDS)
def test_E7_the_commands_have_a_json_form(wire: JSON, command: Command) -> None:
    assert entelix.parse_command(json.loads(json.dumps(wire))) == command
    assert command.to_json() == wire
    assert checks("Command", wire)


@pytest.mark.row("E9")
def test_E9_several_decisions_travel_in_one_command() -> None:
    wire = {"decisions": {"tu_81": "approve", "tu_82": {"reject": {"reason": "duplicate"}}}}
    command = entelix.parse_command(wire)
    assert command == entelix.Resume(decisions={"tu_81": Approve(), "tu_82": Reject(reason="duplicate")})
    assert command.to_json() == wire | {"command": "resume"}
    assert checks("Command", wire)


@given(command=commands)
def test_what_is_written_is_read(command: Command) -> None:
    wire = json.loads(json.dumps(command.to_json()))
    assert entelix.parse_command(wire) == command
    assert checks("Command", wire)


@given(command=commands, more=st.dictionaries(words.map("x_{}".format), any_json, max_size=3))
def test_fields_of_another_version_survive(command: Command, more: dict[str, JSON]) -> None:
    wire = command.to_json() | more
    assert entelix.parse_command(wire).to_json() == wire


@given(more=st.dictionaries(words, any_json, max_size=3))
def test_a_command_of_another_version_is_kept_whole(more: dict[str, JSON]) -> None:
    wire = more | {"command": "fork"}
    command = entelix.parse_command(wire)
    assert isinstance(command, entelix.UnknownCommand)
    assert command.to_json() == wire


@pytest.mark.parametrize(
    ("wire", "field"),
    [
        ({}, "command"),
        (None, "Command"),
        ({"command": 3}, "command"),
        ({"command": "goto", "node": ""}, "node"),
        ({"command": "goto", "node": 3}, "node"),
        (
            {"command": "approve_tool", "tool_use_id": "tu_81", "decision": {"reject": {}}},
            "decision.reject.reason",
        ),
        ({"command": "approve_tool", "tool_use_id": "tu_81", "decision": "maybe"}, "decision"),
        ({"decisions": ["tu_81"]}, "decisions"),
        ({"decisions": {"tu_81": "maybe"}}, "decisions.tu_81"),
        ({"decisions": {"": "approve"}}, "decisions"),
    ],
)
def test_what_is_refused_names_its_field(wire: JSON, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        entelix.parse_command(wire)
    assert refused.value.field == field


PARTS: st.SearchStrategy[Any] = st.sampled_from([
    None, "", "x", "approve", "await_external", "reject", 1, True, [], {}, {"reject": {"reason": "no"}}, {"reject": {}},
    {"approve": None}, {"tu_81": "approve"}, {"tu_81": "maybe"}, {"type": "custom"}, {"type": "approval_pending"},
    {"type": "scheduled_pause", "phase": "before", "node": "x"}, "resume", "update", "goto", "approve_tool", "fork",
])  # fmt: skip
NAMES = (
    "command",
    "decision",
    "decisions",
    "tool_use_id",
    "state",
    "node",
    "kind",
    "payload",
    "schema_version",
    "body",
)
READERS: dict[str, Any] = {
    "Interrupted": entelix.Interrupted.from_json,
    "Decision": entelix.parse_decision,
    "Command": entelix.parse_command,
    "Envelope": entelix.open_envelope,
}


@pytest.mark.parametrize("name", READERS)
@given(data=PARTS | st.dictionaries(st.sampled_from(NAMES), PARTS))
def test_what_is_read_fits_the_published_schema(name: str, data: JSON) -> None:
    """And what is not read does not fit, but for the characters of ids."""
    try:
        READERS[name](data)
    except InvalidInput as refused:
        assert not checks(name, data), str(refused)  # noqa: PT017 - both ways round
    else:
        assert checks(name, data)


MODELS: list[tuple[type[Model], dict[str, JSON]]] = [
    (kind, json.loads(json.dumps(wire)))
    for kind, wire in (
        (entelix.Resume, {"command": "resume", "decisions": {"tu_81": "approve"}}),
        (entelix.ApproveTool, COMMANDS[4][0]),
        (entelix.Update, COMMANDS[1][0]),
        (entelix.GoTo, COMMANDS[3][0]),
        (Position, {"node": "quote", "state": 1, "seq": 2, "resumed": True}),
        (entelix.AuditEvent, {
            "event": "denied", "at_ms": 1767225600000, "tenant": "acme", "thread": "th_2", "run_id": "run_5",
            "interrupt_id": "int_4", "about": "approval_pending", "tool_use_id": "tu_81", "by": {"id": "kim"},
            "reason": "over budget",
        }),
        (entelix.Request, {
            "run_id": "run_5", "tool_use_id": "tu_81", "tool": "wire_transfer", "input": {}, "effect": "mutating",
        }),
    )
]  # fmt: skip


@pytest.mark.parametrize(("model", "wire"), MODELS, ids=lambda one: getattr(one, "__name__", ""))
def test_absent_and_null_of_every_field(model: type[Model], wire: dict[str, JSON]) -> None:
    """From the models: an optional field may be absent and is then not written; null only where it is a value."""
    assert model.from_json(wire).to_json() == wire
    assert {slot.wire for slot in slots(model)} == wire.keys() - {"command"}
    for slot in slots(model):
        without = {name: value for name, value in wire.items() if name != slot.wire}
        if slot.required:
            with pytest.raises(InvalidInput) as missing:
                model.from_json(without)
            assert missing.value.field == slot.wire
        else:
            written = model.from_json(without).to_json()
            assert slot.always or slot.wire not in written
        if slot.nullable:
            assert model.from_json(wire | {slot.wire: None}).to_json()[slot.wire] is None
        else:
            with pytest.raises(InvalidInput) as null:
                model.from_json(wire | {slot.wire: None})
            assert null.value.field.startswith(slot.wire)


# E19: the envelope ------------------------------------------------------------------------------------------------


@given(body=any_json)
def test_an_envelope_holds_any_body(body: JSON) -> None:
    wire = json.loads(json.dumps(entelix.envelope(body)))
    assert wire["schema_version"] == 1
    assert checks("Envelope", wire)
    assert entelix.open_envelope(wire) == json.loads(json.dumps(body))


@pytest.mark.row("E19")
@pytest.mark.parametrize(
    ("wire", "field"),
    [
        ({"schema_version": 99, "body": {}}, "schema_version"),
        ({"schema_version": 0, "body": {}}, "schema_version"),
        ({"schema_version": "1", "body": {}}, "schema_version"),
        ({"schema_version": True, "body": {}}, "schema_version"),
        ({"body": {}}, "schema_version"),
        ({"schema_version": 1}, "body"),
        ([], "envelope"),
    ],
)
def test_E19_an_envelope_of_another_version_is_refused(wire: JSON, field: str) -> None:
    """Off: `open_envelope` without the comparison of versions."""
    with pytest.raises(InvalidInput) as refused:
        entelix.open_envelope(wire)
    assert refused.value.field == field
    assert not checks("Envelope", wire)
