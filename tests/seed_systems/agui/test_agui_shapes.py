"""AG-UI's shapes: what is read is written, what is refused names the field, and what the Python package lets pass."""

from typing import Any

import pytest
from ag_ui import core as official
from pydantic import ValidationError

from broker.errors import InvalidInput
from broker.interop import agui

FULL = {
    "id": "int_4",
    "reason": "tool_call",
    "message": "Pay 40?",
    "toolCallId": "call_9",
    "responseSchema": {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}},
        "required": ["approved"],
    },
    "expiresAt": "2030-01-01T00:00:00Z",
    "metadata": {"team": "ops", "priority": None},
    "subagentRunId": "sub_2",
}
ASKED = {"id": "int_4", "reason": "confirmation"}


def finished(**more: Any) -> dict[str, Any]:
    return {"type": "RUN_FINISHED", "threadId": "th_2", "runId": "run_5", **more}


def subagent(**more: Any) -> dict[str, Any]:
    return {"type": "SUBAGENT_FINISHED", "subagentRunId": "sub_2", **more}


def field_of(fault: pytest.ExceptionInfo[InvalidInput]) -> str:
    return fault.value.field


@pytest.mark.row("G1")
@pytest.mark.parametrize(
    "wire", [FULL, ASKED, {**ASKED, "newer": {"a": [None]}}], ids=["full", "bare", "newer"]
)
def test_G1_an_interrupt_round_trips_in_camel_case_with_unset_fields_left_out(wire: dict[str, Any]) -> None:
    assert agui.Interrupt.from_json(wire).to_json() == wire


@pytest.mark.row("G1")
@pytest.mark.parametrize("name", ["id", "reason"])
def test_G1_only_id_and_reason_are_required(name: str) -> None:
    with pytest.raises(InvalidInput) as fault:
        agui.Interrupt.from_json({key: value for key, value in ASKED.items() if key != name})
    assert field_of(fault) == name


@pytest.mark.row("G1")
def test_G1_it_is_the_wire_of_the_official_package() -> None:
    theirs = official.Interrupt.model_validate(FULL).model_dump(by_alias=True, exclude_none=True)
    assert agui.Interrupt.from_json(theirs).id == "int_4"
    assert (
        official.Interrupt.model_validate(agui.Interrupt.from_json(FULL).to_json()).tool_call_id == "call_9"
    )


@pytest.mark.row("G2")
@pytest.mark.parametrize("name", [key for key in FULL if key not in {"id", "reason", "toolCallId"}])
def test_G2_a_null_is_refused_strictly_and_taken_for_absent_with_a_warning(name: str) -> None:
    wire = {**FULL, name: None}
    with pytest.raises(InvalidInput) as fault:
        agui.Interrupt.from_json(wire)
    assert field_of(fault) == name
    value, warnings = agui.read_compat(agui.Interrupt, wire)
    assert value.to_json() == {key: kept for key, kept in FULL.items() if key != name}
    assert warnings == (f"{name} is null; read as absent",)


@pytest.mark.row("G2")
def test_G2_the_compatible_reader_goes_inside_and_forgives_nothing_else() -> None:
    outcome = {"type": "interrupt", "interrupts": [{**ASKED, "message": None}]}
    value, warnings = agui.read_compat(agui.RunFinished, finished(outcome=outcome, usage=None))
    assert value.to_json() == finished(outcome={"type": "interrupt", "interrupts": [ASKED]})
    assert [warning.split()[0] for warning in warnings] == ["outcome.interrupts[0].message", "usage"]
    with pytest.raises(InvalidInput, match="reason"):
        agui.read_compat(agui.Interrupt, {"id": "int_4", "reason": None})


@pytest.mark.row("G3")
def test_G3_null_inside_metadata_and_payload_survives() -> None:
    wire = {**ASKED, "metadata": {"priority": None}}
    assert agui.Interrupt.from_json(wire).to_json() == wire
    assert agui.read_compat(agui.Interrupt, wire) == (agui.Interrupt.from_json(wire), ())
    answered = {"interruptId": "int_4", "status": "resolved", "payload": {"a": None}, "metadata": {"b": None}}
    assert agui.ResumeEntry.from_json(answered).to_json() == answered


OUTCOMES: list[tuple[dict[str, Any], type[agui.RunOutcome], bool]] = [
    ({"type": "success"}, agui.Success, True),
    ({"type": "success", "pendingToolCallIds": []}, agui.Success, True),
    ({"type": "success", "pendingToolCallIds": ["call_9"]}, agui.Success, False),
    ({"type": "interrupt", "interrupts": [ASKED]}, agui.Interrupted, False),
    ({"type": "cancelled"}, agui.Cancelled, True),
]


@pytest.mark.row("G4")
@pytest.mark.parametrize(("outcome", "kind", "closes"), OUTCOMES)
def test_G4_the_outcomes_round_trip(
    outcome: dict[str, Any], kind: type[agui.RunOutcome], *, closes: bool
) -> None:
    event = agui.RunFinished.from_json(finished(outcome=outcome))
    assert (type(event.ended), event.closes) == (kind, closes)
    assert event.to_json() == finished(outcome=outcome)
    official.RunFinishedEvent.model_validate(event.to_json())


@pytest.mark.row("G4")
def test_G4_no_outcome_is_success_and_stays_no_outcome() -> None:
    event = agui.RunFinished.from_json(finished())
    assert (event.ended, event.closes, event.to_json()) == (agui.Success(), True, finished())


REFUSED_OUTCOMES: list[tuple[Any, str]] = [
    (None, "outcome"),
    ({"type": "interrupt", "interrupts": []}, "outcome.interrupts"),
    ({"type": "interrupt", "interrupts": None}, "outcome.interrupts"),
    ({"type": "interrupt"}, "outcome.interrupts"),
    ({"type": "success", "interrupts": []}, "outcome.interrupts"),
    ({"type": "cancelled", "interrupts": [ASKED]}, "outcome.interrupts"),
    ({"type": "success", "interruptIds": []}, "outcome.interruptIds"),
    ({"type": "success", "pendingToolCallIds": None}, "outcome.pendingToolCallIds"),
    ({"type": "cancelled", "pendingToolCallIds": []}, "outcome.pendingToolCallIds"),
    ({"type": ""}, "outcome.type"),
    ({}, "outcome.type"),
    ("success", "outcome.RunOutcome"),
]


@pytest.mark.row("G5")
@pytest.mark.parametrize(("outcome", "field"), REFUSED_OUTCOMES)
def test_G5_an_outcome_that_contradicts_itself_is_refused(outcome: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as fault:
        agui.RunFinished.from_json(finished(outcome=outcome))
    assert field_of(fault) == field


@pytest.mark.row("G6")
def test_G6_an_unknown_outcome_is_passed_on_without_it_and_closes_nothing() -> None:
    event = agui.RunFinished.from_json(finished(outcome={"type": "paused_by_budget", "until": None}))
    assert not event.closes
    assert event.to_json() == finished(outcome={"type": "paused_by_budget", "until": None})
    stripped, warnings = event.passed_on()
    assert (stripped.to_json(), len(warnings)) == (finished(), 1)
    assert agui.suspension_of(event, "payer") is None


SUSPENDED: list[tuple[Any, Any]] = [
    (["int_4"], ("int_4",)),
    ([], ()),
    (None, ()),
]


@pytest.mark.row("G7")
@pytest.mark.parametrize(("ids", "owned"), SUSPENDED, ids=["list", "empty", "absent"])
def test_G7_a_suspended_subagent_has_a_list_an_empty_list_or_none(ids: Any, owned: tuple[str, ...]) -> None:
    wire: dict[str, Any] = {"type": "suspended"} | ({} if ids is None else {"interruptIds": ids})
    read = agui.SubagentOutcome.of_event(subagent(outcome=wire))
    assert (read.is_suspended, read.interrupt_ids, read.to_json()) == (True, owned, wire)
    assert read == agui.SubagentOutcome.suspended(ids)
    official.SubagentFinishedEvent.model_validate(subagent(outcome=wire))


@pytest.mark.row("G7")
def test_G7_no_subagent_outcome_is_success_and_absent_is_not_empty() -> None:
    assert agui.SubagentOutcome.of_event(subagent()) == agui.SubagentOutcome.success()
    assert not agui.SubagentOutcome.success().is_suspended
    assert agui.SubagentOutcome.suspended() != agui.SubagentOutcome.suspended([])


@pytest.mark.row("G8")
@pytest.mark.parametrize(
    "outcome",
    [
        None,
        {"type": "suspended", "interruptIds": None},
        {"type": "suspended", "interruptIds": [4]},
        {"type": "suspended", "interruptIds": "int_4"},
        {"type": "success", "interruptIds": ["int_4"]},
        {"type": "success", "interruptIds": []},
        {"interruptIds": []},
        {"type": None},
        {"type": ""},
        {"type": 0},
        {"type": False},
        "suspended",
    ],
)
def test_G8_a_subagent_outcome_that_contradicts_itself_is_refused(outcome: Any) -> None:
    with pytest.raises(InvalidInput):
        agui.SubagentOutcome.of_event(subagent(outcome=outcome))


@pytest.mark.row("G9")
def test_G9_an_entry_is_resolved_or_cancelled_and_nothing_else() -> None:
    for status in agui.Status:
        wire = {"interruptId": "int_4", "status": status.value, "payload": {"approved": True}}
        assert agui.ResumeEntry.from_json(wire).to_json() == wire
        official.ResumeEntry.model_validate(wire)
    for other in ("expired", "", None, "RESOLVED"):
        with pytest.raises(InvalidInput) as fault:
            agui.ResumeEntry.from_json({"interruptId": "int_4", "status": other})
        assert field_of(fault) == "status"


@pytest.mark.row("G16")
@pytest.mark.parametrize("payload", [False, 0, "", [], {}, 0.0])
def test_G16_falsy_payloads_are_payloads(payload: Any) -> None:
    wire = {"interruptId": "int_4", "status": "resolved", "payload": payload}
    assert agui.ResumeEntry.from_json(wire).to_json() == wire


@pytest.mark.row("G16")
def test_G16_no_payload_and_a_null_one_are_the_same() -> None:
    bare = {"interruptId": "int_4", "status": "resolved"}
    read = agui.ResumeEntry.from_json({**bare, "payload": None})
    assert read == agui.ResumeEntry.from_json(bare)
    assert read.to_json() == bare


@pytest.mark.row("G33")
def test_G33_reasons() -> None:
    assert agui.Interrupt(id="int_8", reason="acme:budget_hold").reason == "acme:budget_hold"
    assert agui.Interrupt.from_json({"id": "int_8", "reason": "whatever"}).reason == "whatever"
    with pytest.raises(InvalidInput, match="toolCallId"):
        agui.Interrupt.from_json({"id": "int_8", "reason": "tool_call"})
    with pytest.raises(InvalidInput, match="reason"):
        agui.Interrupt(id="int_8", reason="core:mine")
    # The protocol itself may make some later, and a reader of today lives through it.
    assert agui.Interrupt.from_json({"id": "int_8", "reason": "core:later"}).reason == "core:later"


@pytest.mark.row("G35")
def test_G35_the_version_is_declared_and_a_newer_minor_one_is_served_with_a_warning() -> None:
    request = agui.RunAgentInput(thread_id="th_2", run_id="run_6", messages=[])
    event = agui.run_started(request).to_json()
    assert event == {"type": "RUN_STARTED", "threadId": "th_2", "runId": "run_6", "protocolVersion": "1.0"}
    official.RunStartedEvent.model_validate(event)
    assert [agui.version_warnings(version) for version in (None, "1.0")] == [(), ()]
    for newer in ("1.1", "1.9", "1.10", "1.100"):
        assert agui.version_warnings(newer) == (f"protocolVersion {newer} is newer than 1.0",)
    assert agui.is_newer("1.10", "1.9")
    assert not agui.is_newer("1.9", "1.10")
    for other in ("2.0", "0.9", "latest", ""):
        with pytest.raises(InvalidInput, match="protocolVersion"):
            agui.version_warnings(other)


@pytest.mark.row("G36")
def test_G36_capabilities_have_the_standard_shape_and_unset_is_undeclared() -> None:
    wire = agui.CAPABILITIES.to_json()
    people = {"supported": True, "approvals": True, "interrupts": True, "approveWithEdits": True}
    assert wire == {"humanInTheLoop": people}
    theirs = official.AgentCapabilities.model_validate(wire).human_in_the_loop
    assert theirs is not None
    assert (theirs.approve_with_edits, theirs.feedback) == (True, None)
    assert agui.Capabilities.from_json({**wire, "tools": {"supported": True}}).to_json() == {
        **wire,
        "tools": {"supported": True},
    }


LENIENT: list[tuple[type[Any], Any, Any]] = [
    (official.RunFinishedEvent, agui.RunFinished.from_json, finished(outcome=None)),
    (
        official.RunFinishedEvent,
        agui.RunFinished.from_json,
        finished(outcome={"type": "success", "interruptIds": []}),
    ),
    (
        official.RunFinishedEvent,
        agui.RunFinished.from_json,
        finished(outcome={"type": "cancelled", "interrupts": [ASKED]}),
    ),
    (official.SubagentFinishedEvent, agui.SubagentOutcome.of_event, subagent(outcome=None)),
    (
        official.SubagentFinishedEvent,
        agui.SubagentOutcome.of_event,
        subagent(outcome={"type": "suspended", "interruptIds": None}),
    ),
    (
        official.SubagentFinishedEvent,
        agui.SubagentOutcome.of_event,
        subagent(outcome={"type": "success", "interruptIds": ["int_4"]}),
    ),
    (official.Interrupt, agui.Interrupt.from_json, {**ASKED, "message": None}),
    (official.Interrupt, agui.Interrupt.from_json, {"id": "", "reason": "confirmation"}),
    (official.Interrupt, agui.Interrupt.from_json, {"id": "int_4", "reason": ""}),
    (official.Interrupt, agui.Interrupt.from_json, {"id": "int_4", "reason": "tool_call"}),
    (
        official.RunFinishedEvent,
        agui.RunFinished.from_json,
        finished(outcome={"type": "interrupt", "interrupts": [ASKED, ASKED]}),
    ),
]


@pytest.mark.row("G38")
@pytest.mark.parametrize(("theirs", "ours", "wire"), LENIENT)
def test_G38_what_the_python_package_lets_pass_is_refused(theirs: type[Any], ours: Any, wire: Any) -> None:
    theirs.model_validate(wire)
    with pytest.raises(InvalidInput):
        ours(wire)


@pytest.mark.row("G38")
def test_G38_where_the_python_package_is_stricter_or_loses_something() -> None:
    unknown = finished(outcome={"type": "paused_by_budget"})
    with pytest.raises(ValidationError):
        official.RunFinishedEvent.model_validate(unknown)
    assert agui.RunFinished.from_json(unknown).to_json() == unknown
    read = official.Interrupt.model_validate({"id": "i", "reason": "r", "tool_call_id": "call_9"})
    assert (
        read.tool_call_id == "call_9"
    )  # it takes Python's spelling too; on our wire that is an unknown field
    assert agui.Interrupt.from_json({"id": "i", "reason": "r", "tool_call_id": "call_9"}).tool_call_id is None


@pytest.mark.row("G38")
@pytest.mark.parametrize(
    ("theirs", "ours", "wire"),
    [
        (
            official.RunFinishedEvent,
            agui.RunFinished,
            finished(outcome={"type": "interrupt", "interrupts": []}),
        ),
        (official.Interrupt, agui.Interrupt, {**ASKED, "responseSchema": True}),
        (official.Interrupt, agui.Interrupt, {**ASKED, "expiresAt": 5}),
        (official.ResumeEntry, agui.ResumeEntry, {"interruptId": "int_4", "status": "expired"}),
    ],
)
def test_G38_what_both_refuse(theirs: type[Any], ours: Any, wire: Any) -> None:
    with pytest.raises(ValidationError):
        theirs.model_validate(wire)
    with pytest.raises(InvalidInput):
        ours.from_json(wire)
