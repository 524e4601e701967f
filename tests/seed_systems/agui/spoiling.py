"""Streams of AG-UI that Hypothesis makes: conforming ones, and ones with a single fault whose rule is known."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

from hypothesis import strategies as st

from broker.interop.agui import Rule, subagent_outcomes
from tests.seed_systems.agui.streams import (
    Event,
    Stream,
    begin,
    call,
    end,
    event,
    interrupts,
    message,
    result,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]


def mingled(draw: Draw, scripts: list[Stream]) -> Stream:
    """The events of several scripts, each in its order, side by side."""
    left = [list(script) for script in scripts if script]
    out: Stream = []
    while left:
        script = left[draw(st.integers(0, len(left) - 1))]
        out.append(script.pop(0))
        left = [one for one in left if one]
    return out


def script(draw: Draw, name: str, owner: str | None) -> Stream:
    """One thing that somebody does: a message, a call with or without result, reasoning, a step, state, chunks."""
    tag: dict[str, Any] = {} if owner is None else {"subagentRunId": owner}
    told = dict(tag) if draw(st.booleans()) else {}
    span = f"s_{name}"
    kind = draw(
        st.sampled_from(["message", "call", "answered", "reasoning", "step", "state", "chunks", "activity"])
    )
    if kind == "message":
        opened, content, closed = message(f"m_{name}", **tag)
        return [opened, {**content, **told}, {**closed, **told}]
    if kind in {"call", "answered"}:
        return [*call(f"c_{name}", **tag), *([result(f"c_{name}", **told)] if kind == "answered" else [])]
    if kind == "reasoning":
        return [
            event("REASONING_START", messageId=span, **tag),
            event("REASONING_MESSAGE_START", messageId=f"r_{name}", role="reasoning", **tag),
            event("REASONING_MESSAGE_CONTENT", messageId=f"r_{name}", delta="so"),
            event("REASONING_MESSAGE_END", messageId=f"r_{name}"),
            event("REASONING_END", messageId=span),
        ]
    if kind == "step":
        return [event(word, stepName=f"step_{name}", **tag) for word in ("STEP_STARTED", "STEP_FINISHED")]
    if kind == "state":
        return [event("STATE_SNAPSHOT", snapshot={"n": None}, **tag),
                event("STATE_DELTA", delta=[{"op": "add", "path": "/n", "value": 1}], **tag)]  # fmt: skip
    if kind == "activity":
        return [event("ACTIVITY_SNAPSHOT", messageId=f"a_{name}", activityType="search", content={}, **tag),
                event("ACTIVITY_DELTA", messageId=f"a_{name}", activityType="search", patch=[], **told)]  # fmt: skip
    # Whatever comes between ends a chunk's item, so each names its own.
    return [event("TEXT_MESSAGE_CHUNK", messageId=f"m_{name}", delta="x", **tag) for _ in range(2)]


@st.composite
def valid(draw: Draw, *, least_subagents: int = 0) -> Stream:
    """A run that conforms: subagents side by side and below each other, some suspended, all events of a kind mixed."""
    count = draw(st.integers(least_subagents, 3))
    names = [f"sub_{number}" for number in range(count)]
    parents = {name: draw(st.sampled_from([None, *names[:at]])) for at, name in enumerate(names)}
    owners = {
        f"int_{number}": draw(st.sampled_from([None, *names])) for number in range(draw(st.integers(0, 3)))
    }
    work = [script(draw, f"{number}", None) for number in range(draw(st.integers(0, 3)))]
    work += [
        mingled(draw, [script(draw, f"{name}_{n}", name) for n in range(draw(st.integers(0, 2)))])
        for name in names
    ]
    outcomes = subagent_outcomes(parents, owners)
    opening = [
        event("SUBAGENT_STARTED", subagentRunId=name, name="payer")
        | ({"parentSubagentRunId": parent} if parent else {})
        for name, parent in parents.items()
    ]
    closing = [
        event("SUBAGENT_FINISHED", subagentRunId=name)
        | (
            {"outcome": outcomes[name].to_wire()}
            if outcomes[name].is_suspended or draw(st.booleans())
            else {}
        )
        for name in draw(st.permutations(names))
    ]
    stream = [begin(), *opening, *mingled(draw, work), *closing]
    return [*stream, end(draw(st.sampled_from(_endings(stream, owners))))]


def _endings(stream: Stream, owners: dict[str, str | None]) -> list[Event | None]:
    if owners:
        return [interrupts(**owners)]
    answered = {one["toolCallId"] for one in stream if one["type"] == "TOOL_CALL_RESULT"}
    calls = [one["toolCallId"] for one in stream if one["type"] == "TOOL_CALL_START"]
    pending = [name for name in calls if name not in answered]
    return [
        None,
        {"type": "success"},
        {"type": "cancelled"},
        {"type": "success", "pendingToolCallIds": pending},
    ]


class Spoilt(NamedTuple):
    """A stream with one fault, and the rule that it breaks."""

    rule: Rule
    stream: Stream


@st.composite
def spoilt(draw: Draw) -> Spoilt:
    """A conforming stream with one fault; what kinds of fault are possible depends on the stream."""
    stream = deepcopy(draw(valid(least_subagents=1)))
    made: Spoilt = draw(st.sampled_from([one for spoil in SPOILS for one in spoil(stream)]))
    return made


def _at(stream: Stream, *kinds: str) -> list[int]:
    return [number for number, one in enumerate(stream) if one["type"] in kinds]


def _without(stream: Stream, number: int) -> Stream:
    return stream[:number] + stream[number + 1 :]


def _with(stream: Stream, number: int, *events: Event) -> Stream:
    return [*stream[:number], *events, *stream[number:]]


def _changed(stream: Stream, number: int, **fields: Any) -> Stream:
    return _with(_without(stream, number), number, {**stream[number], **fields})


_FIRST = (
    "TEXT_MESSAGE_START",
    "TOOL_CALL_START",
    "REASONING_START",
    "REASONING_MESSAGE_START",
    "STEP_STARTED",
)
_LAST = ("TEXT_MESSAGE_END", "TOOL_CALL_END", "REASONING_END", "REASONING_MESSAGE_END", "STEP_FINISHED")


def spoil_the_run(stream: Stream) -> list[Spoilt]:
    return [
        Spoilt(Rule.FIRST_EVENT, stream[1:]),
        Spoilt(Rule.TRUNCATED, stream[:-1]),
        Spoilt(Rule.RUN_ACTIVE, _with(stream, 1, begin("run_2"))),
        Spoilt(Rule.AFTER_CLOSE, [*stream, event("CUSTOM", name="x.y", value=1)]),
        Spoilt(Rule.RUN_REUSED, [*stream, begin(), end()]),
    ]


def spoil_the_items(stream: Stream) -> list[Spoilt]:
    found = [Spoilt(Rule.NOT_OPEN, _without(stream, at)) for at in _at(stream, *_FIRST)]
    found += [Spoilt(Rule.LEFT_OPEN, _without(stream, at)) for at in _at(stream, *_LAST)]
    found += [Spoilt(Rule.ALREADY_OPEN, _with(stream, at, stream[at])) for at in _at(stream, *_FIRST)]
    others = _at(stream, "TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT", *_LAST[:2])
    return found + [Spoilt(Rule.OWNER, _changed(stream, at, subagentRunId="sub_9")) for at in others]


def spoil_the_subagents(stream: Stream) -> list[Spoilt]:
    starts, ends = _at(stream, "SUBAGENT_STARTED"), _at(stream, "SUBAGENT_FINISHED")
    found = [Spoilt(Rule.SUBAGENT_LEFT_OPEN, _without(stream, at)) for at in ends]
    found += [Spoilt(Rule.SUBAGENT_NOT_ACTIVE, _with(stream, at, stream[at])) for at in ends]
    found += [Spoilt(Rule.SUBAGENT_ACTIVE, _with(stream, at, stream[at])) for at in starts]
    found += [
        Spoilt(Rule.SUBAGENT_PARENT, _changed(stream, at, parentSubagentRunId="sub_9")) for at in starts
    ]
    last = stream[ends[-1]]["subagentRunId"]
    again = [event("SUBAGENT_STARTED", subagentRunId=last, name="payer"), stream[ends[-1]]]
    found.append(Spoilt(Rule.SUBAGENT_REUSED, _with(stream, ends[-1] + 1, *again)))
    for at in ends:
        ids = stream[at].get("outcome", {}).get("interruptIds")
        if ids:
            less = {"type": "suspended", "interruptIds": ids[1:]}
            more = {"type": "suspended", "interruptIds": [*ids, "int_9"]}
            found += [Spoilt(Rule.INTERRUPT_OWNER, _changed(stream, at, outcome=one)) for one in (less, more)]
            done = {"type": "success"}
            found.append(Spoilt(Rule.INTERRUPT_OWNER, _changed(stream, at, outcome=done)))
            found.append(
                Spoilt(Rule.CONTRADICTION, _changed(stream, at, outcome=done | {"interruptIds": ids}))
            )
            found.append(Spoilt(Rule.OWNER_UNNAMED, _changed(stream, at, outcome={"type": "suspended"})))
    return found


def spoil_the_interrupts(stream: Stream) -> list[Spoilt]:
    outcome = stream[-1].get("outcome", {})
    if outcome.get("type") != "interrupt":
        return []
    first, *rest = outcome["interrupts"]
    elsewhere = {**first, "subagentRunId": "sub_9"}
    found = [
        Spoilt(Rule.MALFORMED, _changed(stream, -1 % len(stream), outcome={**outcome, "interrupts": []}))
    ]
    if "subagentRunId" in first:
        moved = {**outcome, "interrupts": [elsewhere, *rest]}
        found.append(Spoilt(Rule.INTERRUPT_OWNER, _changed(stream, len(stream) - 1, outcome=moved)))
    twice = {**outcome, "interrupts": [first, *outcome["interrupts"]]}
    return [*found, Spoilt(Rule.INTERRUPT_REUSED, _changed(stream, len(stream) - 1, outcome=twice))]


def spoil_a_field(stream: Stream) -> list[Spoilt]:
    found = []
    for at in range(len(stream)):
        found += [Spoilt(Rule.MALFORMED, _changed(stream, at, metadata=bad)) for bad in (None, "x", 4)]
        found.append(Spoilt(Rule.MALFORMED, _changed(stream, at, rawEvent=None)))
        found.append(Spoilt(Rule.UNKNOWN_FIELD, _changed(stream, at, priority=None)))
        found.append(Spoilt(Rule.UNKNOWN_EVENT, _with(stream, at, event("A_NEWER_EVENT", messageId=4))))
    return found


SPOILS = (spoil_the_run, spoil_the_items, spoil_the_subagents, spoil_the_interrupts, spoil_a_field)
