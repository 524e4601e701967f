"""swink's interrupt file, approval request and answers: what we write we read, and what is refused names the key."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import (
    Approve,
    Cancel,
    Complete,
    Edit,
    InterruptState,
    InvalidInput,
    PendingToolCall,
    Reject,
    Resolution,
    Settlement,
)
from broker.core.shape import slots
from broker.interop.swink import (
    ApprovalRequest,
    check_session_id,
    decision_of,
    read_decision,
    read_interrupt,
    write_decision,
    write_interrupt,
)
from tests.unit import strategies as make

from .files import FILE, MODEL, snapshot

REQUIRED = ["interrupted_at", "pending_tool_calls", "context_snapshot", "system_prompt", "model"]

levels = st.sampled_from(["off", "minimal", "low", "medium", "high", "extra_high"])
models = st.fixed_dictionaries(
    {"provider": make.texts, "model_id": make.texts, "thinking_level": levels},
    optional={"thinking_budgets": make.json_values, "capabilities": make.json_objects},
)
messages = st.builds(
    lambda role, rest: {**rest, "role": role},
    st.sampled_from(["user", "tool_result", "new"]),
    make.json_objects,
)
states = st.builds(
    InterruptState,
    interrupted_at=make.small,
    pending_tool_calls=st.lists(make.pending_calls, max_size=3).map(tuple),
    context_snapshot=st.lists(messages, max_size=2),
    system_prompt=make.texts,
    model=models.map(lambda one: {"thinking_budgets": None} | one),
    framework=st.sampled_from([None, "adk"]),
    opaque=st.none() | st.binary(max_size=8),
)


def write(found: Any) -> bytes:
    return json.dumps(found, indent=2, ensure_ascii=False).encode()


@pytest.mark.row("S1")
def test_S1_a_file_comes_back_byte_for_byte() -> None:
    state = read_interrupt(FILE)
    assert (state.opaque, state.framework) == (None, None), "the layout is swink's: nothing is kept twice"
    assert state.interrupted_at == 1767225600
    assert state.pending_tool_calls[0] == PendingToolCall(
        tool_call_id="tc_7", tool_name="shell", arguments={"cmd": "make deploy"}
    )
    assert state.model == MODEL
    assert write_interrupt(state) == FILE
    assert write_interrupt(InterruptState.from_bytes(state.to_bytes())) == FILE


@pytest.mark.row("S1")
@pytest.mark.parametrize(
    "data",
    [
        json.dumps(json.loads(FILE)).encode(),
        FILE + b"\n",
        FILE.replace(b'"m-2"', rb'"m\u002d2"'),
        FILE.replace(b"null\n    }\n  ],", b"[1e16, 1.50, 2E-7]\n    }\n  ],"),
        FILE.replace(b',\n    "thinking_budgets": null', b""),
        write(snapshot("tc_7", hunks=[1], system_prompt="last")),
        write({"hunks": [1]} | snapshot("tc_7")),
    ],
    ids=["compact", "newline", "escapes", "numbers", "no budgets", "a key behind", "a key before"],
)
def test_S1_so_does_a_file_of_another_layout(data: bytes) -> None:
    assert data != FILE
    state = InterruptState.from_bytes(read_interrupt(data).to_bytes())
    assert write_interrupt(state) == data


@pytest.mark.row("S1")
def test_S1_budgets_that_are_not_set_are_written_as_null() -> None:
    bare = {name: value for name, value in MODEL.items() if value is not None}
    data = write_interrupt(InterruptState(interrupted_at=1, model=bare))
    assert json.loads(data)["model"] == MODEL
    assert read_interrupt(write(snapshot(model=bare))).model == MODEL


def test_a_state_that_was_changed_is_written_anew() -> None:
    state = read_interrupt(FILE + b"\n").model_copy(update={"system_prompt": "Be bold."})
    assert write_interrupt(state) == FILE.replace(b"Be careful.", b"Be bold.")


@given(state=states)
def test_what_we_write_we_read(state: InterruptState) -> None:
    data = write_interrupt(state)
    again = read_interrupt(data)
    assert again == state
    assert write_interrupt(again) == data
    told = json.loads(data)
    assert list(told)[:5] == REQUIRED
    assert "thinking_budgets" in told["model"]


@given(state=states, added=make.any_json)
def test_p10_keys_of_another_version_survive(state: InterruptState, added: Any) -> None:
    newer = json.loads(write_interrupt(state)) | {"zz_new": added}
    read = read_interrupt(write(newer))
    assert read.unknown == {"zz_new": added}
    assert json.loads(write_interrupt(read)) == newer


@pytest.mark.row("S2")
@pytest.mark.parametrize("key", REQUIRED)
def test_S2_each_of_the_five_keys_is_required_and_no_other(key: str) -> None:
    found = snapshot("tc_7")
    assert list(found) == REQUIRED
    for bad, problem in (({}, "is missing"), ({key: None}, "is n")):
        with pytest.raises(InvalidInput, match=rf"^{key} {problem}"):
            read_interrupt(write({name: value for name, value in found.items() if name != key} | bad))
    assert read_interrupt(write(found | {"reason": None})).unknown == {"reason": None}


@pytest.mark.row("S2")
def test_S2_what_is_written_has_the_five_keys() -> None:
    with pytest.raises(InvalidInput, match=r"^interrupted_at is missing"):
        write_interrupt(InterruptState(model=MODEL))
    with pytest.raises(InvalidInput, match=r"^model is missing"):
        write_interrupt(InterruptState(interrupted_at=1))


@pytest.mark.parametrize("key", ["provider", "model_id", "thinking_level"])
def test_a_model_says_what_it_is(key: str) -> None:
    for bad, problem in (({}, "is missing"), ({key: None}, "is no text"), ({key: "bad\ud800"}, "")):
        model = {name: value for name, value in MODEL.items() if name != key} | bad
        with pytest.raises(InvalidInput, match=rf"^model\.{key} {problem}"):
            read_interrupt(json.dumps(snapshot(model=model)).encode())
        with pytest.raises(InvalidInput, match=rf"^model\.{key} {problem}"):
            write_interrupt(InterruptState(interrupted_at=1).model_copy(update={"model": model}))
    with pytest.raises(InvalidInput, match=r"^model\.thinking_level is not one of the words"):
        read_interrupt(write(snapshot(model=MODEL | {"thinking_level": "ultra"})))


@pytest.mark.row("S3")
def test_S3_arguments_must_be_there_and_may_be_null() -> None:
    call = {"tool_call_id": "tc_8", "tool_name": "now", "arguments": None}
    (read,) = read_interrupt(write(snapshot(pending_tool_calls=[call]))).pending_tool_calls
    assert read.arguments is None
    assert b'"arguments": null' in write_interrupt(read_interrupt(write(snapshot(pending_tool_calls=[call]))))
    for key in call:
        bad = {name: value for name, value in call.items() if name != key}
        with pytest.raises(InvalidInput, match=rf"^pending_tool_calls\.{key} is missing"):
            read_interrupt(write(snapshot(pending_tool_calls=[bad])))


@pytest.mark.row("S8")
@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"", "interrupt is no JSON"),
        (b'{"interrupted_at":', "interrupt is no JSON"),
        (FILE[:-10], "interrupt is no JSON"),
        (b"\xff\xfe", "interrupt is no UTF-8"),
        (b"[" * 200_000, "interrupt is nested too deep"),
        (b"9" * 5000, "interrupt holds a number"),
        (b"[]", "interrupt is no object"),
        (write(snapshot(interrupted_at=True)), "interrupted_at is no time"),
        (write(snapshot(interrupted_at=-1)), "interrupted_at is no time"),
        (write(snapshot(interrupted_at=2**64)), "interrupted_at is no time"),
        (write(snapshot(interrupted_at=1.5)), "interrupted_at is no time"),
        (write(snapshot(context_snapshot={})), "context_snapshot is no list"),
        (write(snapshot(context_snapshot=[{}])), r"context_snapshot\[0\] is no message"),
        (write(snapshot(pending_tool_calls={})), "pending_tool_calls is no list"),
        (write(snapshot(pending_tool_calls=[1])), "pending_tool_calls"),
        (write(snapshot(system_prompt=1)), "system_prompt"),
        (write(snapshot(model="m-2")), "model is no object"),
        (FILE.replace(b"null\n    }\n  ],", b"NaN\n    }\n  ],"), "pending_tool_calls.arguments is NaN"),
        (FILE.replace(b"null\n    }\n  ],", b"1e999\n    }\n  ],"), "pending_tool_calls.arguments is NaN"),
    ],
)
def test_S8_what_does_not_parse_is_an_error_that_names_its_place(data: bytes, field: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^{field}"):
        read_interrupt(data)


@pytest.mark.row("S12")
@pytest.mark.parametrize(
    "session",
    ["", "a:b", "a/b", "a\\b", "..", "a..b", "a\x00", "a\n", "\x7f", "a\ud800", "{a}", " a", "x" * 257],
)
def test_S12_ids_that_cannot_be_file_names_are_refused(session: str) -> None:
    with pytest.raises(InvalidInput, match=r"^session "):
        check_session_id(session)


def test_S12_other_ids_are_taken() -> None:
    assert [check_session_id(one) for one in ("s_1", "a.b", "20260101_120000", "\u00e9 1")]


@pytest.mark.row("S13")
def test_S13_the_order_of_calls_is_kept_and_none_is_legal() -> None:
    data = write(snapshot("tc_9", "tc_1", "tc_5"))
    assert [one.tool_call_id for one in read_interrupt(data).pending_tool_calls] == ["tc_9", "tc_1", "tc_5"]
    assert write_interrupt(read_interrupt(data)) == data
    assert write_interrupt(read_interrupt(write(snapshot()))) == write(snapshot())


@pytest.mark.row("S16")
def test_S16_the_three_answers_round_trip() -> None:
    wires: list[dict[str, Any]] = [
        {"decision": "approved"},
        {"decision": "rejected"},
        {"decision": "approved_with", "value": {"cmd": "make deploy-staging"}},
        {"decision": "approved_with", "value": None},
    ]
    answers = [read_decision(one) for one in wires]
    assert [type(one) for one in answers] == [Approve, Reject, Edit, Edit]
    assert [write_decision(one) for one in answers] == wires
    assert read_decision({"decision": "rejected", "hunk": 3}) == answers[1]


@pytest.mark.row("S16")
def test_S16_how_a_question_ended_in_the_words_of_swink() -> None:
    def ended(state: Settlement, answer: Any = None) -> Any:
        return decision_of(
            Resolution.from_json({"interrupt_id": "i", "state": state, "at_ms": 1}).model_copy(
                update={"answer": answer}
            )
        )

    assert ended(Settlement.RESOLVED, Edit(arguments=[])) == {"decision": "approved_with", "value": []}
    assert ended(Settlement.RESOLVED, Reject(reason="too big")) == {"decision": "rejected"}
    assert ended(Settlement.EXPIRED) == {"decision": "rejected"}
    for other in (Settlement.CANCELLED, Settlement.WITHDRAWN, Settlement.SUPERSEDED):
        assert ended(other, Cancel() if other == "cancelled" else None) is None
    for answer in (Complete(value=1), Cancel()):
        with pytest.raises(InvalidInput, match=r"^answer has no form in swink"):
            write_decision(answer)


MALFORMED: list[Any] = [
    {"decision": "maybe"},
    {"decision": "Approved"},
    {"decision": None},
    {"decision": True},
    {"decision": ["approved"]},
    {"decision": "approved", "value": {"cmd": "rm -rf ."}},
    {"decision": "approved_with"},
    {"approved": True},
    {},
    [],
    None,
    True,
    "approved",
]


@pytest.mark.row("S18")
@pytest.mark.parametrize("bad", MALFORMED, ids=repr)
def test_S18_what_is_not_understood_never_approves(bad: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^(decision|value) "):
        read_decision(bad)


@given(said=make.any_json)
def test_S18_nor_does_anything_else(said: Any) -> None:
    with pytest.raises(InvalidInput):
        read_decision(said)


requests = st.builds(
    ApprovalRequest,
    id=make.ids,
    name=make.ids,
    arguments=make.json_values,
    requires_approval=st.booleans(),
    context=make.json_values,
)


@pytest.mark.row("S20")
@given(asked=requests)
def test_S20_the_request_round_trips_and_survives_as_a_question(asked: ApprovalRequest) -> None:
    wire = asked.to_json()
    assert ApprovalRequest.from_json(wire) == asked
    assert list(wire)[:4] == ["id", "name", "arguments", "requires_approval"]
    assert ("context" in wire) == (asked.context is not None)
    question = asked.interrupt()
    assert ApprovalRequest.of(type(question).from_bytes(question.to_bytes())) == asked


def test_null_and_absence_in_requests() -> None:
    wire = {"id": "tc_7", "name": "shell", "arguments": None, "requires_approval": True}
    assert ApprovalRequest.from_json(wire | {"context": None}) == ApprovalRequest.from_json(wire)
    for slot in slots(ApprovalRequest):
        less = {name: value for name, value in wire.items() if name != slot.wire}
        if slot.required:
            with pytest.raises(InvalidInput, match=rf"^{slot.wire} is missing"):
                ApprovalRequest.from_json(less)
        if slot.required and not slot.nullable:
            with pytest.raises(InvalidInput, match=rf"^{slot.wire} is null"):
                ApprovalRequest.from_json(less | {slot.wire: None})
