"""The validator of AG-UI streams: what conforms, which rule is broken where, both framings."""

import contextlib
import io
import json
from typing import Any, get_args

import pytest
from ag_ui import core as official
from ag_ui._generated.models import ReplaceOperation
from ag_ui.encoder import EventEncoder
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from broker.errors import InvalidInput
from broker.interop import agui
from broker.interop.agui import SubagentLedger, messages
from broker.interop.agui.events import EVENTS
from broker.interop.agui.rules import Level, Rule
from broker.interop.agui.validator import StreamValidator, check_stream
from tests.seed_systems.agui.streams import BROKEN, VALID, Stream, begin, call, end, event, message, run


def judged(stream: Stream) -> StreamValidator:
    validator = StreamValidator()
    for one in stream:
        validator.feed(one)
    validator.close()
    return validator


def broken(stream: Stream) -> list[tuple[Rule, int | None, str]]:
    return [(one.rule, one.event, one.field) for one in judged(stream).violations]


@pytest.mark.parametrize("name", VALID)
def test_a_stream_that_conforms_breaks_nothing(name: str) -> None:
    assert [str(one) for one in judged(VALID[name]).violations] == []


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.word)
def test_a_broken_rule_is_named_with_its_event_and_nothing_else_is(rule: Rule) -> None:
    number, stream = BROKEN[rule]
    validator = judged(stream)
    assert [(one.rule, one.event) for one in validator.violations] == [(rule, number)]
    assert validator.conforms is (rule.level is Level.WARNING)
    (told,) = validator.violations
    assert f"({rule.word})" in str(told)
    assert told.to_json()["event"] == number


def test_every_rule_has_a_stream_that_breaks_it() -> None:
    assert set(Rule) - set(BROKEN) == {Rule.FRAMING}
    assert len({rule.word for rule in Rule}) == len(Rule)


def test_closing_twice_says_nothing_new() -> None:
    validator = StreamValidator()
    assert [one.rule for one in validator.close()] == [Rule.FIRST_EVENT]
    assert validator.close() == []


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (event("CUSTOM", name=None, value=1), "name"),
        (event("CUSTOM", value=1), "name"),
        (event("CUSTOM", name="x"), "value"),
        (event("CUSTOM", name="x", value=1, timestamp=1.5), "timestamp"),
        (event("CUSTOM", name="x", value=1, timestamp=2**53), "timestamp"),
        (event("CUSTOM", name="x", value=1, timestamp=True), "timestamp"),
        (event("CUSTOM", name="x", value=1, rawEvent=None), "rawEvent"),
        (event("TOOL_CALL_START", toolCallId="c", toolCallName="t", parentMessageId=None), "parentMessageId"),
        (event("ACTIVITY_SNAPSHOT", messageId="a", activityType="t", content=[]), "content"),
        (event("STATE_DELTA", delta={}), "delta"),
        (event("STATE_DELTA", delta=[{"op": "add", "path": "/a"}]), "delta.0.value"),
        (event("STATE_DELTA", delta=[{"op": "move", "path": "/a"}]), "delta.0.from"),
        (event("STATE_DELTA", delta=[{"op": "remove", "path": "a"}]), "delta.0.path"),
        (event("STATE_DELTA", delta=[{"path": "/a"}]), "delta.0"),
        (event("MESSAGES_SNAPSHOT", messages=[{"role": "user", "id": "1"}]), "messages.0.content"),
        (event("MESSAGES_SNAPSHOT", messages=[{"role": "user", "id": "1", "content": 1}]), "messages.0.content"),
        (
            event("MESSAGES_SNAPSHOT", messages=[
                {"role": "assistant", "id": "1", "toolCalls": [{"id": "c", "type": "function", "function": {}}]}]),
            "messages.0.toolCalls.0.function.name",
        ),
        (event("TOOL_CALL_RESULT", messageId="m", toolCallId="c", content=[{"type": "text"}]), "content.0.text"),
        (event("REASONING_MESSAGE_START", messageId="m", role="assistant"), "role"),
        (event("RUN_FINISHED", threadId="t", runId="r", outcome=None), "outcome"),
        (event("RUN_FINISHED", threadId="t", runId="r", outcome={}), "outcome"),
        (event("RUN_FINISHED", threadId="t", runId="r", outcome={"type": ""}), "outcome"),
        (end({"type": "interrupt", "interrupts": []}), "outcome.interrupts"),
        (end({"type": "interrupt", "interrupts": [{"id": "i", "reason": "x", "message": None}]}),
         "outcome.interrupts.0.message"),
        (end({"type": "interrupt", "interrupts": [{"id": "i", "reason": "x", "responseSchema": True}]}),
         "outcome.interrupts.0.responseSchema"),
        (end(usage=[{"inputTokens": -1}]), "usage.0.inputTokens"),
        (event("SUBAGENT_FINISHED", subagentRunId="s", outcome=None), "outcome"),
        (event("SUBAGENT_FINISHED", subagentRunId="s", outcome={"type": "suspended", "interruptIds": None}),
         "outcome.interruptIds"),
        (event("SUBAGENT_FINISHED", subagentRunId="s", outcome={"type": "suspended", "interruptIds": [4]}),
         "outcome.interruptIds.0"),
        (event("SUBAGENT_ERROR", subagentRunId="s"), "message"),
        (begin(input={"threadId": "t", "runId": "r"}), "input.messages"),
        ({"messageId": "m"}, "type"),
        ({"type": None}, "type"),
    ],
)  # fmt: skip
def test_a_malformed_value_is_told_with_its_place(sent: dict[str, Any], field: str) -> None:
    found = StreamValidator().feed(sent)
    assert (Rule.MALFORMED, field) in [(one.rule, one.field) for one in found]


@pytest.mark.parametrize("sent", [None, True, 1, "x", [], [{"type": "RUN_STARTED"}]])
def test_what_is_no_object_is_malformed(sent: Any) -> None:
    assert [one.rule for one in StreamValidator().feed(sent)] == [Rule.MALFORMED]


@pytest.mark.parametrize(
    ("sent", "rule", "field"),
    [
        (event("TEXT_MESSAGE_START", messageId="m", role="robot"), Rule.UNKNOWN_MEMBER, "role"),
        (event("STATE_DELTA", delta=[{"op": "upsert", "path": "/a"}]), Rule.UNKNOWN_MEMBER, "delta.0"),
        (event("TOOL_CALL_RESULT", messageId="m", toolCallId="c", content=[{"type": "hologram"}]),
         Rule.UNKNOWN_MEMBER, "content.0"),
        (event("MESSAGES_SNAPSHOT", messages=[{"role": "judge", "id": "1"}]), Rule.UNKNOWN_MEMBER, "messages.0"),
        (event("REASONING_ENCRYPTED_VALUE", subtype="token", entityId="e", encryptedValue="v"),
         Rule.UNKNOWN_MEMBER, "subtype"),
        (begin(input={"threadId": "t", "runId": "r", "messages": [], "tone": 1}), Rule.UNKNOWN_FIELD, "input.tone"),
        (event("TEXT_MESSAGE_START", message_id="m", messageId="m"), Rule.UNKNOWN_FIELD, "message_id"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_a_warning(sent: dict[str, Any], rule: Rule, field: str) -> None:
    found = [one for one in StreamValidator().feed(sent) if one.rule is not Rule.FIRST_EVENT]
    assert [(one.rule, one.field) for one in found] == [(rule, field)]


def test_a_bad_value_is_judged_once_and_not_held_against_what_follows() -> None:
    bad = {**message()[2], "metadata": None}
    assert broken(run(*message()[:2], bad)) == [(Rule.MALFORMED, 4, "metadata")]
    unreadable = {"type": "interrupt", "interrupts": [{"id": 4, "reason": "x"}]}
    stream = run(
        event("SUBAGENT_STARTED", subagentRunId="s", name="n"),
        event(
            "SUBAGENT_FINISHED", subagentRunId="s", outcome={"type": "suspended", "interruptIds": ["int_4"]}
        ),
        outcome=unreadable,
    )
    assert broken(stream) == [(Rule.MALFORMED, 4, "outcome.interrupts.0.id")]


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        (run(*message()[:1], *message(subagentRunId="a")), [(Rule.ALREADY_OPEN, 3)]),
        (run(*message(), *message(subagentRunId="a")), [(Rule.OWNER, 5)]),
        (run(event("MESSAGES_SNAPSHOT", messages=[
            {"role": "assistant", "id": "m_1", "content": "x", "subagentRunId": "a"}]), *message()), [(Rule.OWNER, 3)]),
        (run(*message(subagentRunId="a"), *call(parentMessageId="m_1")), []),
        (run(*message(subagentRunId="a"), *call(parentMessageId="m_1", subagentRunId="b")), [(Rule.OWNER, 5)]),
        (run(event("STEP_STARTED", stepName="s", subagentRunId="a"), event("STEP_FINISHED", stepName="s")),
         [(Rule.OWNER, 3), (Rule.LEFT_OPEN, 4)]),
        (run(event("STEP_STARTED", stepName="s"), event("STEP_STARTED", stepName="s"),
             event("STEP_FINISHED", stepName="s")), [(Rule.ALREADY_OPEN, 3)]),
        (run(event("TEXT_MESSAGE_CHUNK", messageId="m_1"), *message()[1:]), [(Rule.NOT_OPEN, 3), (Rule.NOT_OPEN, 4)]),
        (run(*message()[:1], event("TEXT_MESSAGE_CHUNK", messageId="m_1"), message()[2]), [(Rule.ALREADY_OPEN, 3)]),
        (run(event("TEXT_MESSAGE_CHUNK", messageId="m_1"), event("CUSTOM", name="x", value=1),
             event("TEXT_MESSAGE_CHUNK", delta="x")), [(Rule.FIRST_CHUNK, 4)]),
        (run(event("TEXT_MESSAGE_CHUNK", messageId="m_1"), event("RAW", event=1),
             event("TEXT_MESSAGE_CHUNK", delta="x")), []),
        (run(event("TEXT_MESSAGE_CHUNK", messageId="m_1", subagentRunId="a"),
             event("TEXT_MESSAGE_CHUNK", messageId="m_1", subagentRunId="b")), [(Rule.OWNER, 3)]),
        (run(event("TEXT_MESSAGE_CHUNK", messageId="m_1", subagentRunId="a"),
             event("TEXT_MESSAGE_CHUNK", messageId="m_2"), event("TEXT_MESSAGE_CHUNK", delta="the main agent's")), []),
        (run(event("SUBAGENT_STARTED", subagentRunId="a", name="n"),
             event("TEXT_MESSAGE_CHUNK", messageId="m_1", subagentRunId="a"),
             event("SUBAGENT_FINISHED", subagentRunId="a"),
             event("TEXT_MESSAGE_CHUNK", delta="x", subagentRunId="a")), [(Rule.FIRST_CHUNK, 5)]),
        (run(event("ACTIVITY_SNAPSHOT", messageId="a_1", activityType="t", content={}, subagentRunId="a"),
             event("ACTIVITY_DELTA", messageId="a_1", activityType="t", patch=[], subagentRunId="b")),
         [(Rule.OWNER, 3)]),
        ([begin(), event("RUN_ERROR", message="x"), event("RUN_ERROR", message="x")], [(Rule.AFTER_CLOSE, 3)]),
        ([*run(), event("RUN_ERROR", message="x"), end()], [(Rule.AFTER_CLOSE, 4)]),
        ([], [(Rule.FIRST_EVENT, None)]),
        ([event("A_NEW_EVENT"), *run()], [(Rule.UNKNOWN_EVENT, 1)]),
    ],
)  # fmt: skip
def test_order_and_owners(stream: Stream, found: list[tuple[Rule, int | None]]) -> None:
    assert [(rule, number) for rule, number, _ in broken(stream)] == found


@pytest.mark.row("G37")
def test_G37_arrival_is_the_order_whatever_the_times_say() -> None:
    early, late = ({**one, "timestamp": at} for one, at in zip(message()[::2], (900, 100), strict=True))
    assert broken(run(early, late)) == []
    assert broken(run(late, early)) == [(Rule.NOT_OPEN, 2, ""), (Rule.LEFT_OPEN, 4, "")]


def as_sse(stream: Stream) -> str:
    return "".join(f"data: {json.dumps(one)}\n\n" for one in stream)


def test_both_framings_give_the_same_verdict() -> None:
    for _, stream in BROKEN.values():
        lines = [json.dumps(one) for one in stream]
        assert check_stream(lines).violations == judged(stream).violations
        assert check_stream(as_sse(stream).splitlines()).violations == judged(stream).violations


def test_server_sent_events_with_all_that_may_stand_among_them() -> None:
    text = (
        ": keep-alive\n\nevent: message\nid: 7\nretry: 10\n"
        'data: {"type": "RUN_STARTED",\ndata:  "threadId": "t", "runId": "r"}\n\n'
        'data:{"type":"RUN_FINISHED","threadId":"t","runId":"r"}\n\n'
    )
    assert check_stream(io.StringIO(text)).violations == []
    assert check_stream(io.StringIO(text.replace("\n", "\r\n"))).violations == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('{"type":"RUN_ERROR","message":"x"}\n{"type":\n', 2),
        ('{"type":"RUN_ERROR","message":NaN}\n', 1),
        ("[" * 100_000 + "\n", 1),
        (f"{as_sse([event('RUN_ERROR', message='x')])}{json.dumps(begin())}\n\n", 2),
        (f"{as_sse([event('RUN_ERROR', message='x')])}data: {json.dumps(begin())}\n", 2),
        (f"data: {json.dumps(begin())}\ndata: {json.dumps(end())}\n\n", 1),
    ],
)
def test_a_frame_that_is_no_event(text: str, number: int) -> None:
    found = check_stream(io.StringIO(text)).violations
    assert (found[0].rule, found[0].event) == (Rule.FRAMING, number)


def test_what_the_official_package_writes_conforms() -> None:
    encoder = EventEncoder()
    ids: dict[str, Any] = {"thread_id": "t", "run_id": "r"}
    interrupt = official.Interrupt(
        id="int_1",
        reason="tool_call",
        tool_call_id="c",
        response_schema={"type": "object"},
        subagent_run_id="s",
    )
    events = [
        official.RunStartedEvent(
            **ids, protocol_version="1.0", input=official.RunAgentInput(**ids, messages=[])
        ),
        official.SubagentStartedEvent(subagent_run_id="s", name="payer"),
        official.StepStartedEvent(step_name="plan"),
        official.TextMessageStartEvent(message_id="m", role="assistant", subagent_run_id="s"),
        official.TextMessageContentEvent(message_id="m", delta="Hello."),
        official.TextMessageEndEvent(message_id="m"),
        official.ToolCallStartEvent(tool_call_id="c", tool_call_name="pay", parent_message_id="m"),
        official.ToolCallArgsEvent(tool_call_id="c", delta="{}"),
        official.ToolCallEndEvent(tool_call_id="c"),
        official.StateSnapshotEvent(snapshot={"a": None}),
        official.StateDeltaEvent(delta=[ReplaceOperation(path="/a", value=None)]),
        official.MessagesSnapshotEvent(messages=[official.UserMessage(id="u", content="go")]),
        official.CustomEvent(name="x", value=None),
        official.StepFinishedEvent(step_name="plan"),
        official.SubagentFinishedEvent(
            subagent_run_id="s", outcome=official.SubagentFinishedSuspendedOutcome(interrupt_ids=["int_1"])
        ),
        official.RunFinishedEvent(
            **ids, outcome=official.RunFinishedInterruptOutcome(interrupts=[interrupt])
        ),
    ]
    text = "".join(encoder.encode(one) for one in events)
    assert [str(one) for one in check_stream(io.StringIO(text)).violations] == []


def test_the_events_are_those_of_the_official_package_field_by_field() -> None:
    theirs = {kind.model_fields["type"].default.value: kind for kind in get_args(get_args(official.Event)[0])}
    assert EVENTS.keys() == theirs.keys()
    for name, kind in theirs.items():
        assert wire_names(EVENTS[name]) - _NEWER == wire_names(kind), name
        needed = {field for field, info in kind.model_fields.items() if info.is_required()}
        ours = {field for field, info in EVENTS[name].model_fields.items() if info.is_required()}
        assert ours - {"type", "role"} == needed, name


_NEWER = {"encryptedValueType"}
"""A field of 1.1 that is known already."""


def wire_names(shape: type[BaseModel]) -> set[str]:
    return {info.alias or name for name, info in shape.model_fields.items()}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (messages.Interrupt, official.Interrupt),
        (messages.Resume, official.ResumeEntry),
        (messages.RunInput, official.RunAgentInput),
        (messages.Usage, official.TokenUsage),
        (messages.ToolCall, official.ToolCall),
        (messages.ToolMessage, official.ToolMessage),
        (messages.AssistantMessage, official.AssistantMessage),
    ],
)
def test_what_events_carry_is_that_of_the_official_package(
    ours: type[BaseModel], theirs: type[BaseModel]
) -> None:
    assert wire_names(ours) - _NEWER == wire_names(theirs)


def test_an_interrupt_is_the_one_the_broker_writes() -> None:
    assert messages.Interrupt.model_fields.keys() == agui.Interrupt.model_fields.keys() - {"unknown"}


def test_every_optional_field_of_every_event_refuses_null_and_may_be_left_out() -> None:
    for name, shape in EVENTS.items():
        for field, info in shape.model_fields.items():
            wire = info.alias or field
            if not info.is_required():
                found = StreamValidator().feed({"type": name, wire: None})
                assert (Rule.MALFORMED, wire) in [(one.rule, one.field) for one in found], (name, wire)
                found = StreamValidator().feed({"type": name})
                assert wire not in [one.field for one in found], (name, wire)


WIRE_NAMES = sorted(
    {info.alias or name for shape in EVENTS.values() for name, info in shape.model_fields.items()}
)
PARTS = st.sampled_from([
    {"type": "interrupt", "interrupts": [{"id": "i", "reason": "x", "subagentRunId": "a"}]},
    {"type": "suspended", "interruptIds": ["i"]}, {"type": "suspended"}, {"type": "success"}, {"type": "cancelled"},
    {"type": "text", "text": 1}, [{"op": "move", "path": 3}], [{"role": "assistant", "id": "a", "toolCalls": [None]}],
])  # fmt: skip
VALUES = st.sampled_from(["a", "b", "", None, 0, True, 1.5, [], {}]) | PARTS
WILD = st.builds(
    lambda kind, fields: {"type": kind, **fields},
    st.sampled_from(sorted(EVENTS)),
    st.dictionaries(st.sampled_from(WIRE_NAMES), VALUES | st.lists(VALUES, max_size=2), max_size=9),
)


@settings(max_examples=500)
@given(st.lists(WILD | VALUES, max_size=12))
def test_nothing_that_is_fed_raises_and_what_is_refused_names_the_field(stream: Stream) -> None:
    validator = judged(stream)
    assert all(one.event is None or 1 <= one.event <= len(stream) for one in validator.violations)
    for one in validator.violations:
        if one.rule is Rule.MALFORMED and isinstance(stream[(one.event or 1) - 1], dict):
            assert one.field
    ledger = SubagentLedger()
    for sent in stream:
        if isinstance(sent, dict):
            with contextlib.suppress(InvalidInput):
                ledger.observe(sent)
