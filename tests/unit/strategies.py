"""What a value of every class may look like."""

from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from hypothesis import strategies as st

from broker.core import outcomes
from broker.core.answers import (
    Answer,
    AnswerKind,
    Approve,
    Cancel,
    Complete,
    Edit,
    Fail,
    Principal,
    PrincipalKind,
    Reject,
    Respond,
    UnknownAnswer,
    Verdict,
)
from broker.core.dispositions import (
    AwaitingCompletion,
    AwaitingConfirmation,
    CallRecord,
    Disposition,
    PendingResult,
    Raise,
    Resolved,
    SubagentOutcome,
    UnknownDisposition,
    Value,
)
from broker.core.durability import Durability
from broker.core.kinds import ApprovalPending, Custom, InterruptionKind, Phase, ScheduledPause, UnknownKind
from broker.core.limits import INT_MAX, INT_MIN
from broker.core.models import (
    Action,
    Audience,
    InputRecord,
    Interrupt,
    InterruptState,
    OnExpiry,
    PendingToolCall,
    ResultRecord,
)
from broker.core.records import HistoryEntry, InterruptRecord, Resolution, RunRecord
from broker.core.shape import Model
from broker.core.states import Mode, RunState, Settlement

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ids = st.sampled_from(["a", "tu_81", "th/2:x", "run_0a0b", "\u00e9 1", "x" * 256])
names = st.sampled_from(["a", "agents", "A-1_x.y", "0" * 64])
integers = st.integers(INT_MIN, INT_MAX)
floats = st.floats(allow_nan=False, allow_infinity=False)
any_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | integers | floats | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)

# Inside records a handful of awkward values does: drawing everything everywhere would take minutes.
texts = st.sampled_from(["", "a", "two words", "\u00fcber", "\U0001f600", "a\nb\x00", "x" * 300])
json_values: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        False,
        0,
        "",
        [],
        {},
        1.5,
        -0.0,
        INT_MIN,
        INT_MAX,
        "\U0001f600",
        [[None]],
        {"a": {"": [1, "b", None]}},
    ]
)
json_objects: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"a": None}, {"": 0, "b": [True]}, {"kind": "approve", "type": "custom"}]
)
instants = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - made aware
spans = st.timedeltas(timedelta(milliseconds=1), timedelta(days=3000))
few: st.SearchStrategy[tuple[str, ...]] = st.sampled_from([(), ("a",), ("a", "a"), ("", "two", "\U0001f600")])
small = st.integers(0, 2**40)


T = TypeVar("T")


def maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.none() | strategy


kinds: st.SearchStrategy[InterruptionKind] = st.one_of(
    st.builds(Custom),
    st.builds(ApprovalPending, tool_use_id=ids),
    st.builds(ScheduledPause, phase=st.sampled_from(Phase), node=ids),
    st.builds(lambda rest: UnknownKind(raw={**rest, "type": "quota_wait"}), json_objects),
)
carried = {"metadata": json_objects, "protocol_id": maybe(ids)}
answers: st.SearchStrategy[Answer] = st.one_of(
    st.builds(Approve, note=maybe(texts), **carried),
    st.builds(Edit, arguments=json_values, note=maybe(texts), **carried),
    st.builds(Reject, reason=texts, **carried),
    st.builds(Respond, payload=json_values, note=maybe(texts), **carried),
    st.builds(Complete, value=json_values, **carried),
    st.builds(Fail, error=texts, **carried),
    st.builds(Cancel, reason=maybe(texts), payload=json_values, **carried),
    st.builds(lambda rest: UnknownAnswer(raw={**rest, "kind": "delegate"}), json_objects),
)
dispositions: st.SearchStrategy[Disposition] = st.one_of(
    st.builds(PendingResult),
    st.builds(Resolved, record=st.builds(Value, value=json_values) | st.builds(Raise, error=texts)),
    st.builds(AwaitingConfirmation),
    st.builds(AwaitingCompletion, pending_handle=json_values),
    st.builds(lambda rest: UnknownDisposition(raw={**rest, "kind": "awaiting_review"}), json_objects),
)
durabilities = st.sampled_from([Durability.memory(), Durability.replicated(2), Durability.fsynced()])
principals = st.builds(
    Principal,
    id=ids,
    kind=st.sampled_from(PrincipalKind),
    groups=few,
    claims=json_objects,
    verified=st.booleans(),
)
actions = st.builds(Action, tool=ids, arguments=json_values)
pending_calls = st.builds(PendingToolCall, tool_call_id=ids, tool_name=ids, arguments=json_values)
states = st.builds(
    InterruptState,
    interrupted_at=maybe(small),
    pending_tool_calls=st.lists(pending_calls, max_size=2).map(tuple),
    context_snapshot=st.lists(json_values, max_size=3),
    system_prompt=texts,
    model=json_values,
    framework=maybe(texts),
    opaque=maybe(st.binary(max_size=20)),
)


@st.composite
def interrupts(draw: st.DrawFn) -> Interrupt:
    """Every field may be there; what must agree does."""
    fields: dict[str, Any] = {
        "kind": draw(kinds),
        "payload": draw(json_values),
        "reason": draw(ids),
        "message": draw(maybe(texts)),
        "action": draw(maybe(actions)),
        "response_schema": draw(maybe(json_objects)),
        "offers": draw(maybe(st.lists(st.sampled_from(AnswerKind), min_size=1, max_size=3).map(tuple))),
        "on_expiry": draw(maybe(st.sampled_from([OnExpiry.DENY, OnExpiry.CANCEL, OnExpiry.WAIT]))),
        "audience": draw(maybe(st.sampled_from(Audience))),
        "labels": draw(few),
        "reviewers": draw(few),
        "metadata": draw(json_objects),
        "agent_path": draw(few),
        "pending_handle": draw(json_values),
        "requested_by": draw(maybe(principals)),
        "protocol_ids": draw(few),
        "priority": draw(maybe(integers)),
        "epoch": draw(maybe(small)),
    }
    for name in ("subagent_run_id", "key_id"):
        fields[name] = draw(maybe(ids))
    for name in ("policy", "policy_version", "traceparent"):
        fields[name] = draw(maybe(texts))
    for name in ("agent", "build"):
        fields[name] = draw(maybe(names))
    if not isinstance(fields["kind"], ApprovalPending):
        fields["call_id"] = draw(maybe(ids))
    end = draw(st.sampled_from(["expires_in", "expires_at", "default"]))
    if end != "default":
        fields[end] = draw(maybe(spans) if end == "expires_in" else instants)
    if draw(st.booleans()):
        answer = draw(answers.filter(lambda answer: answer.kind.is_known))
        fields |= {"default_answer": answer, "offers": (answer.kind,), "on_expiry": OnExpiry.DEFAULT}
    return Interrupt(**fields)


verdicts = st.builds(
    Verdict,
    interrupt_id=ids,
    answer=answers,
    by=principals,
    op=ids,
    seen=maybe(texts),
    action_digest=maybe(texts),
    changed=few,
)
calls = st.builds(
    CallRecord,
    call_id=ids,
    tool=ids,
    digest=texts,
    disposition=dispositions,
    attempt=small,
    interrupt_id=maybe(ids),
)
subagents = st.builds(SubagentOutcome.success) | st.builds(SubagentOutcome.suspended, maybe(few))
resolutions = st.builds(
    Resolution,
    interrupt_id=ids,
    state=st.sampled_from(Settlement),
    answer=maybe(answers),
    by=maybe(principals),
    at=instants,
    op=maybe(ids),
    reason=maybe(texts),
)
interrupt_records = st.builds(
    InterruptRecord,
    id=ids,
    run_id=ids,
    session_id=ids,
    seq=small,
    queue=names,
    agent=names,
    build=maybe(names),
    state=st.sampled_from(Settlement),
    opened_at=instants,
    deadline=maybe(instants),
    interrupt=interrupts(),
    digest=texts,
    resolution=maybe(resolutions),
    problem=maybe(texts),
)
runs = st.builds(
    RunRecord,
    id=ids,
    session_id=ids,
    agent=names,
    build=maybe(names),
    queue=names,
    priority=integers,
    state=st.sampled_from(RunState),
    seq=small,
    fence=small,
    tries=small,
    holder=maybe(texts),
    lease_until=maybe(instants),
    mode=st.sampled_from(Mode),
    interrupt_ids=few,
    created_at=instants,
    updated_at=instants,
    errors=few,
    metadata=json_objects,
    input=json_values,
    result=json_values,
    protocol_ids=few,
)
entries = st.builds(
    HistoryEntry,
    at=instants,
    event=texts,
    run_id=ids,
    seq=small,
    interrupt_id=maybe(ids),
    state=maybe(texts),
    by=maybe(principals),
    op=maybe(ids),
    digest=maybe(texts),
    detail=maybe(texts),
)
winners = st.builds(
    outcomes.Winner,
    by=maybe(principals),
    at=maybe(instants),
    answer=maybe(st.sampled_from(AnswerKind)),
    op=maybe(ids),
)
told: st.SearchStrategy[outcomes.Told] = st.one_of(
    st.builds(
        outcomes.Accepted,
        run_id=ids,
        session_id=ids,
        interrupt_ids=few,
        resolution=maybe(resolutions),
        durability=durabilities,
    ),
    st.builds(outcomes.AlreadyDecided, winner=winners),
    st.builds(outcomes.Expired, at=maybe(instants)),
    st.builds(outcomes.Withdrawn, by=maybe(principals), at=maybe(instants)),
    st.builds(outcomes.Invalid, field=texts, problem=texts, allowed=texts),
    st.builds(outcomes.NotDurable, wanted=durabilities, reached=durabilities),
    st.builds(outcomes.Parked, until=maybe(instants)),
    st.builds(outcomes.Conflict, reason=texts),
)

RECORDS: dict[type[Model], st.SearchStrategy[Any]] = {
    Principal: principals,
    Action: actions,
    PendingToolCall: pending_calls,
    InterruptState: states,
    Interrupt: interrupts(),
    InputRecord: st.builds(InputRecord, input=json_values, metadata=json_objects, protocol_ids=few),
    ResultRecord: st.builds(ResultRecord, result=json_values),
    Verdict: verdicts,
    CallRecord: calls,
    Resolution: resolutions,
    InterruptRecord: interrupt_records,
    RunRecord: runs,
    HistoryEntry: entries,
    outcomes.Winner: winners,
}
"""Every class that is stored or sent as an object of its own, with the values it may have."""
