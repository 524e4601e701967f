"""Streams of AG-UI events for the tests: the parts they are made of, and one that breaks each rule."""

from typing import Any

from broker.interop.agui.rules import Rule

Event = dict[str, Any]
Stream = list[Any]


def event(kind: str, /, **fields: Any) -> Event:
    """One event; the fields are named as on the wire."""
    return {"type": kind, **fields}


def begin(run: str = "run_1", thread: str = "th_1", **fields: Any) -> Event:
    return event("RUN_STARTED", threadId=thread, runId=run, **fields)


def end(outcome: Event | None = None, run: str = "run_1", thread: str = "th_1", **fields: Any) -> Event:
    told = {} if outcome is None else {"outcome": outcome}
    return event("RUN_FINISHED", threadId=thread, runId=run, **told, **fields)


def run(*events: Any, outcome: Event | None = None) -> Stream:
    """A run around some events."""
    return [begin(), *events, end(outcome)]


def message(name: str = "m_1", **tag: Any) -> Stream:
    return [
        event("TEXT_MESSAGE_START", messageId=name, role="assistant", **tag),
        event("TEXT_MESSAGE_CONTENT", messageId=name, delta="Hello."),
        event("TEXT_MESSAGE_END", messageId=name),
    ]


def call(name: str = "call_1", tool: str = "pay", **tag: Any) -> Stream:
    return [
        event("TOOL_CALL_START", toolCallId=name, toolCallName=tool, **tag),
        event("TOOL_CALL_ARGS", toolCallId=name, delta='{"amount": 40}'),
        event("TOOL_CALL_END", toolCallId=name),
    ]


def result(name: str = "call_1", **tag: Any) -> Event:
    return event("TOOL_CALL_RESULT", messageId=f"m_{name}", toolCallId=name, content="done", **tag)


def started(name: str, parent: str | None = None, title: str = "payer") -> Event:
    told = {} if parent is None else {"parentSubagentRunId": parent}
    return event("SUBAGENT_STARTED", subagentRunId=name, name=title, **told)


def finished(name: str, *ids: str, outcome: Event | None = None) -> Event:
    """Closes an invocation: suspended with these interrupts, with another outcome, or done."""
    ending = {"type": "suspended", "interruptIds": list(ids)} if ids else outcome
    return event("SUBAGENT_FINISHED", subagentRunId=name, **({} if ending is None else {"outcome": ending}))


def interrupts(**owners: str | None) -> Event:
    """The outcome of a run with these interrupts, each with the invocation that it says is its own."""
    return {
        "type": "interrupt",
        "interrupts": [
            {"id": name, "reason": "confirmation"} | ({} if owner is None else {"subagentRunId": owner})
            for name, owner in owners.items()
        ],
    }


SUSPENDED: Event = {"type": "suspended"}

VALID: dict[str, Stream] = {
    "an empty run": run(),
    "a run that fails before it begins": [event("RUN_ERROR", message="no agent")],
    "a run that fails with everything open": [
        begin(), started("sub_1"), message(subagentRunId="sub_1")[0], call()[0], event("RUN_ERROR", message="down"),
    ],
    "a late failure": [*run(), event("RUN_ERROR", message="the flush failed")],
    "a run after a failed one": [begin(), event("RUN_ERROR", message="down"), begin("run_2"), end(run="run_2")],
    "a message, a call and its result": run(*message(), *call(), result()),
    "a message that is opened again": run(*message(), *message()),
    "a call that is opened again": run(*call(), *call()),
    "a call whose result comes in a later run": [
        *run(*call(), outcome=interrupts(int_1=None)), begin("run_2"), result(), end(run="run_2"),
    ],
    "arguments that are no JSON": run(
        call()[0], event("TOOL_CALL_ARGS", toolCallId="call_1", delta='{"amount": '), call()[2]
    ),
    "calls for the frontend": run(*call(), outcome={"type": "success", "pendingToolCallIds": ["call_1"]}),
    "a run that was called off": run(*message(), outcome={"type": "cancelled"}),
    "reasoning": run(
        event("REASONING_START", messageId="s_1"),
        event("REASONING_MESSAGE_START", messageId="s_1", role="reasoning"),
        event("REASONING_MESSAGE_CONTENT", messageId="s_1", delta=""),
        event("REASONING_MESSAGE_END", messageId="s_1"),
        event("REASONING_ENCRYPTED_VALUE", subtype="message", entityId="s_1", encryptedValue="x",
              encryptedValueType="p.q"),
        event("REASONING_END", messageId="s_1"),
    ),
    "chunks": run(
        event("TEXT_MESSAGE_CHUNK", messageId="m_1", delta="Hel"), event("TEXT_MESSAGE_CHUNK", delta="lo"),
        event("TOOL_CALL_CHUNK", toolCallId="call_1", toolCallName="pay"), event("TOOL_CALL_CHUNK", delta="{}"),
        event("REASONING_MESSAGE_CHUNK", messageId="r_1", delta="so"), event("REASONING_MESSAGE_CHUNK", delta="!"),
    ),
    "chunks of two subagents, side by side": run(
        event("TEXT_MESSAGE_CHUNK", messageId="m_1", subagentRunId="a"),
        event("TEXT_MESSAGE_CHUNK", messageId="m_2", subagentRunId="b"),
        event("TEXT_MESSAGE_CHUNK", delta="x", subagentRunId="a"),
        event("TEXT_MESSAGE_CHUNK", delta="y", messageId="m_2"),
    ),
    "state and steps, steps per owner": run(
        event("STATE_SNAPSHOT", snapshot=None), event("STEP_STARTED", stepName="plan"), started("sub_1"),
        event("STEP_STARTED", stepName="plan", subagentRunId="sub_1"),
        event("STATE_DELTA", delta=[{"op": "add", "path": "", "value": None, "was": 1}], subagentRunId="sub_1"),
        event("STEP_FINISHED", stepName="plan"), event("STEP_FINISHED", stepName="plan", subagentRunId="sub_1"),
        finished("sub_1"),
    ),
    "a patch that will not apply": run(
        event("STATE_SNAPSHOT", snapshot={}), event("STATE_DELTA", delta=[{"op": "remove", "path": "/gone"}])
    ),
    "activities of a thread": [
        *run(event("ACTIVITY_SNAPSHOT", messageId="a_1", activityType="search", content={"found": None})),
        begin("run_2"), event("ACTIVITY_DELTA", messageId="a_1", activityType="search", patch=[]), end(run="run_2"),
    ],
    "attribution without lifecycle": run(
        *message(subagentRunId="never_announced"), outcome=interrupts(int_7="never_announced")
    ),
    "a failed subagent": run(
        started("sub_1"), event("SUBAGENT_ERROR", subagentRunId="sub_1", message="down", code="E_UP"), *message()
    ),
    "a parent that finishes before its child": run(
        started("sub_1"), started("sub_2", "sub_1"), finished("sub_1"), finished("sub_2")
    ),
    "a suspended owner and its ancestor": run(
        started("sub_1"), started("sub_2", "sub_1"), finished("sub_2", "int_4"), finished("sub_1", outcome=SUSPENDED),
        outcome=interrupts(int_4="sub_2", int_5=None),
    ),
    "a suspended subagent that goes on": [
        *run(started("sub_2"), finished("sub_2", "int_4"), outcome=interrupts(int_4="sub_2")),
        begin("run_2", input={"threadId": "th_1", "runId": "run_2", "messages": [], "resume": [
            {"interruptId": "int_4", "status": "resolved", "payload": False}]}),
        started("sub_2"), finished("sub_2"), end(run="run_2"),
    ],
    "null where it is data": run(
        event("CUSTOM", name="x", value=None, metadata={"priority": None}), event("RAW", event=None),
        event("STATE_SNAPSHOT", snapshot={"a": None}),
    ),
}  # fmt: skip
"""Streams that conform, by what they show."""

BROKEN: dict[Rule, tuple[int | None, Stream]] = {
    Rule.MALFORMED: (2, run(event("CUSTOM", name="x", value=1, metadata=None))),
    Rule.CONTRADICTION: (2, run(outcome={"type": "success", "interrupts": []})),
    Rule.UNKNOWN_EVENT: (2, run(event("THINKING_START"))),
    Rule.UNKNOWN_FIELD: (2, run(event("CUSTOM", name="x", value=1, priority=3))),
    Rule.UNKNOWN_MEMBER: (2, run(outcome={"type": "paused_by_budget"})),
    Rule.FIRST_EVENT: (1, [*message(), *run()]),
    Rule.RUN_ACTIVE: (2, [begin(), begin("run_2"), end(run="run_2")]),
    Rule.AFTER_CLOSE: (3, [*run(), event("CUSTOM", name="x", value=1)]),
    Rule.TRUNCATED: (None, [begin(), *message()]),
    Rule.RUN_REUSED: (3, [*run(), *run()]),
    Rule.RUN_MISMATCH: (2, [begin(), end(run="run_2")]),
    Rule.PENDING_CALLS: (6, run(*call(), result(), outcome={"type": "success", "pendingToolCallIds": ["call_1"]})),
    Rule.INTERRUPT_REUSED: (2, run(outcome={"type": "interrupt", "interrupts": [
        {"id": "int_1", "reason": "confirmation"}, {"id": "int_1", "reason": "input_required"}]})),
    Rule.ALREADY_OPEN: (3, run(message()[0], *message())),
    Rule.NOT_OPEN: (2, run(event("TEXT_MESSAGE_CONTENT", messageId="m_1", delta="x"))),
    Rule.LEFT_OPEN: (4, run(*message()[:2])),
    Rule.REOPENED_OTHERWISE: (5, run(*call(), *call(tool="refund"))),
    Rule.FIRST_CHUNK: (2, run(event("TOOL_CALL_CHUNK", toolCallId="call_1"))),
    Rule.CHUNK_CONFLICT: (3, run(
        event("TEXT_MESSAGE_CHUNK", messageId="m_1"), event("TEXT_MESSAGE_CHUNK", messageId="m_1", role="user"))),
    Rule.CHUNK_AMBIGUOUS: (4, run(
        event("TEXT_MESSAGE_CHUNK", messageId="m_1", subagentRunId="a"),
        event("TEXT_MESSAGE_CHUNK", messageId="m_2", subagentRunId="b"), event("TEXT_MESSAGE_CHUNK", delta="x"))),
    Rule.OWNER: (3, run(
        message(subagentRunId="a")[0], event("TEXT_MESSAGE_CONTENT", messageId="m_1", delta="x", subagentRunId="b"),
        message()[2])),
    Rule.NO_BASELINE: (2, run(event("ACTIVITY_DELTA", messageId="a_1", activityType="search", patch=[]))),
    Rule.SUBAGENT_ACTIVE: (3, run(started("sub_1"), started("sub_1"), finished("sub_1"))),
    Rule.SUBAGENT_REUSED: (4, run(
        started("sub_1"), finished("sub_1", "int_1"), started("sub_1"), finished("sub_1", "int_1"),
        outcome=interrupts(int_1="sub_1"))),
    Rule.SUBAGENT_LATE: (5, run(*message(subagentRunId="sub_1"), started("sub_1"), finished("sub_1"))),
    Rule.SUBAGENT_PARENT: (2, run(started("sub_1", "sub_9"), finished("sub_1"))),
    Rule.SUBAGENT_NOT_ACTIVE: (2, run(finished("sub_1"))),
    Rule.SUBAGENT_LEFT_OPEN: (3, run(started("sub_2"))),
    Rule.INTERRUPT_OWNER: (4, run(started("sub_2"), finished("sub_2", "int_4"), outcome=interrupts(int_4="sub_3"))),
    Rule.OWNER_UNNAMED: (4, run(
        started("sub_2"), finished("sub_2", outcome=SUSPENDED), outcome=interrupts(int_4="sub_2"))),
    Rule.WAITS_FOR_NOTHING: (4, run(started("sub_2"), finished("sub_2", outcome=SUSPENDED))),
}  # fmt: skip
"""A stream that breaks a rule, and no other that is an error, with the number of the event; FRAMING is about text."""
