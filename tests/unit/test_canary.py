"""P13, S23: a secret in any payload shows in no repr and in no error."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from broker.core import outcomes, wire
from broker.core.answers import (
    Approve,
    Cancel,
    Complete,
    Edit,
    Fail,
    Principal,
    Reject,
    Respond,
    UnknownAnswer,
    Verdict,
    parse_answer,
)
from broker.core.dispositions import (
    AwaitingCompletion,
    CallRecord,
    Raise,
    Resolved,
    UnknownDisposition,
    Value,
    parse_disposition,
)
from broker.core.kinds import UnknownKind, parse_kind
from broker.core.models import (
    Action,
    InputRecord,
    Interrupt,
    InterruptState,
    OnExpiry,
    PendingToolCall,
    ResultRecord,
)
from broker.core.policy import check_suspension, validate_answer
from broker.core.records import HistoryEntry, InterruptRecord, Resolution, RunRecord
from broker.core.settings import Settings
from broker.core.shape import Model
from broker.core.states import RunState, Settlement
from broker.errors import BrokerError, Corrupt, Refused

SECRET = "hunter2-canary"
DEEP = {"a": [{"token": SECRET}]}
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def values() -> Iterator[Model]:
    kim = Principal(id="kim", groups=("ops",), claims=DEEP)
    action = Action(tool="pay", arguments=DEEP)
    answers = [
        Approve(note=SECRET),
        Edit(arguments=DEEP, note=SECRET),
        Reject(reason=SECRET),
        Respond(payload=DEEP),
        Complete(value=SECRET),
        Fail(error=SECRET),
        Cancel(reason=SECRET, payload=DEEP),
        UnknownAnswer(raw={"kind": "maybe", "x": SECRET}),
    ]
    interrupt = Interrupt(
        kind=UnknownKind(raw={"type": "quota", "x": SECRET}),
        payload=DEEP,
        message=SECRET,
        action=action,
        response_schema={"const": SECRET},
        on_expiry=OnExpiry.DEFAULT,
        default_answer=Cancel(reason=SECRET),
        metadata=DEEP,
        pending_handle=SECRET,
        requested_by=kim,
        unknown=DEEP,
    )
    state = InterruptState(
        pending_tool_calls=(PendingToolCall(tool_call_id="c", tool_name="t", arguments=DEEP),),
        context_snapshot=[DEEP],
        system_prompt=SECRET,
        model=DEEP,
        opaque=SECRET.encode(),
        unknown=DEEP,
    )
    verdict = Verdict(interrupt_id="i", answer=answers[1], by=kim, op="o")
    resolution = Resolution(
        interrupt_id="i", state=Settlement.RESOLVED, answer=answers[0], by=kim, at=NOW, reason=SECRET
    )
    resolved = [Resolved(record=Value(value=DEEP)), Resolved(record=Raise(error=SECRET))]
    waiting = AwaitingCompletion(pending_handle=SECRET)
    odd = UnknownDisposition(raw={"kind": "new", "x": SECRET})
    dispositions = [*resolved, waiting, odd]
    yield from (kim, action, *answers, interrupt, state, *state.pending_tool_calls, verdict, resolution)
    yield from dispositions
    yield from (CallRecord(call_id="c", tool="t", digest="d", disposition=one) for one in dispositions)
    yield from (InputRecord(input=DEEP, metadata=DEEP), ResultRecord(result=DEEP))
    yield InterruptRecord(
        id="i",
        run_id="r",
        session_id="s",
        seq=1,
        queue="q",
        agent="a",
        state=Settlement.OPEN,
        opened_at=NOW,
        interrupt=interrupt,
        digest="d",
        resolution=resolution,
    )
    yield RunRecord(
        id="r",
        session_id="s",
        agent="a",
        queue="q",
        state=RunState.READY,
        created_at=NOW,
        updated_at=NOW,
        errors=(SECRET,),
        metadata=DEEP,
        input=DEEP,
        result=SECRET,
    )
    yield HistoryEntry(at=NOW, event="answer", run_id="r", by=kim, detail=SECRET)
    yield outcomes.Accepted(resolution=resolution)
    yield outcomes.AlreadyDecided(winner=outcomes.Winner(by=kim, at=NOW))
    yield outcomes.Withdrawn(by=kim)


def test_p13_s23_no_repr_shows_a_payload() -> None:
    for value in values():
        assert SECRET in repr(value.to_wire()), "an example that proves nothing"
        shown = [repr(value), str(value), f"{value}", repr([value])]
        shown += [repr(getattr(value, name)) for name in value.SHOWN]
        assert not [text for text in shown if SECRET in text]


BAD: list[Callable[[], Any]] = [
    lambda: Interrupt(payload={"a": {"b": [SECRET, object()]}}),
    lambda: Interrupt(message=[SECRET]),  # type: ignore[arg-type]
    lambda: Interrupt(kind=SECRET),  # type: ignore[arg-type]
    lambda: Interrupt(action={"tool": "t", "arguments": {SECRET}}),  # type: ignore[arg-type]
    lambda: Interrupt(action={"tool": ["x", SECRET], "arguments": 1}),  # type: ignore[arg-type]
    lambda: Interrupt(action=SECRET),  # type: ignore[arg-type]
    lambda: Interrupt(expires_at=SECRET),  # type: ignore[arg-type]
    lambda: Interrupt(expires_in=SECRET),  # type: ignore[arg-type]
    lambda: Interrupt(offers=(SECRET,)),  # type: ignore[arg-type]
    lambda: Interrupt(labels=SECRET),  # type: ignore[arg-type]
    lambda: Interrupt(metadata=[SECRET]),  # type: ignore[arg-type]
    lambda: Interrupt(message=SECRET + "\ud800"),
    lambda: Interrupt(call_id=SECRET + "\n"),
    lambda: Interrupt(agent=SECRET + " "),
    lambda: Interrupt(payload=[SECRET, float("nan")]),
    lambda: Interrupt(payload=SECRET * 1000).to_bytes(most=100),
    lambda: InterruptState(system_prompt={SECRET: SECRET}),  # type: ignore[arg-type]
    lambda: InterruptState(opaque=SECRET),  # type: ignore[arg-type]
    lambda: InterruptState.from_json({"opaque": SECRET}),
    lambda: InterruptState.from_json({"context_snapshot": SECRET}),
    lambda: InterruptState.from_bytes(wire.encode({"system_prompt": [SECRET]}), key="k"),
    lambda: InterruptState.from_bytes(SECRET.encode(), key="k"),
    lambda: Principal(id="kim", claims=SECRET),  # type: ignore[arg-type]
    lambda: Principal(id="kim", verified=SECRET),  # type: ignore[arg-type]
    lambda: Principal(id="kim", kind=SECRET),  # type: ignore[arg-type]
    lambda: Verdict(interrupt_id="i", answer=SECRET, by=Principal.local("kim"), op="o"),  # type: ignore[arg-type]
    lambda: parse_answer({"kind": "reject", "reason": [SECRET]}),
    lambda: parse_answer({"kind": "respond", "payload": {"x": [SECRET, float("nan")]}}),
    lambda: parse_answer({"kind": "maybe", "payload": {"x": [SECRET, float("nan")]}}),
    lambda: parse_answer({"kind": [SECRET]}),
    lambda: parse_answer(SECRET),
    lambda: parse_kind({"type": "scheduled_pause", "phase": SECRET, "node": "n"}),
    lambda: parse_kind({"type": "approval_pending", "tool_use_id": [SECRET]}),
    lambda: parse_disposition({"kind": "resolved", "Raise": [SECRET]}),
    lambda: parse_disposition({"kind": "resolved", "Value": SECRET, "more": 1}),
    lambda: Resolution.from_json({"interrupt_id": "i", "state": SECRET, "at_ms": 1}),
    lambda: Resolution.from_json({"interrupt_id": "i", "state": "open", "at_ms": SECRET}),
    lambda: Settings(lease=SECRET),  # type: ignore[arg-type]
    lambda: Settings.from_env({"BROKER_LEASE": SECRET}),
    lambda: Settings.from_env({"BROKER_DURABILITY": SECRET}),
    lambda: wire.encode({"a": SECRET, "b": object()}),
    lambda: check_suspension(
        InterruptState(
            pending_tool_calls=(PendingToolCall(tool_call_id="c", tool_name="t", arguments=SECRET),)
        ),
        [Interrupt.approval(Action(tool="t", arguments=DEEP), "c")],
    ),
    lambda: check_suspension(InterruptState(), [Interrupt.question(None, {"$ref": SECRET})]),
]


def refused(number: int) -> BrokerError:
    with pytest.raises(BrokerError) as caught:
        BAD[number]()
    return caught.value


def test_p13_no_error_repeats_the_value_it_refuses() -> None:
    for number in range(len(BAD)):
        error = refused(number)
        told = [str(error), repr(error), repr(error.args), repr(vars(error))]
        assert not [text for text in told if SECRET in text], number
        # Nor does an error that was being handled: its text or its details would be logged with ours.
        assert error.__context__ is None, number
        assert error.__cause__ is None, number


def test_p13_an_invalid_payload_is_not_repeated_to_the_one_who_sent_it() -> None:
    question = Interrupt.question(None, {"type": "object", "properties": {"pin": {"type": "integer"}}})
    invalid = validate_answer(question, Respond(payload={"pin": SECRET}))
    assert invalid is not None
    assert invalid.field == "payload.pin"
    assert SECRET not in repr(invalid.to_json())
    assert SECRET not in str(Refused(invalid))


def test_p13_pydantic_itself_hides_inputs_when_used_directly() -> None:
    with pytest.raises(ValueError, match="message") as caught:
        Interrupt.model_validate({"message": [SECRET]})
    assert SECRET not in str(caught.value)


def test_a_corrupt_record_says_where_not_what() -> None:
    with pytest.raises(Corrupt) as caught:
        InterruptState.from_bytes(wire.encode({"system_prompt": 7, "x": SECRET}), key="{ns:0.0}:state:r")
    assert str(caught.value).startswith("The record '{ns:0.0}:state:r' cannot be read: system_prompt")
