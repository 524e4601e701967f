"""From the broker's questions to AG-UI's interrupts, and back: what a run that stopped says to its client.

Pure functions over records. A question of ours is shown with its own id, its deadline, the call it is about and a
schema for the answer. One that came from another AG-UI agent is kept whole and goes out as it came in.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ...core.answers import AnswerKind
from ...core.batches import Suspension
from ...core.fields import MILLISECOND
from ...core.kinds import ApprovalPending, Custom
from ...core.limits import JSON
from ...core.models import Action, Audience
from ...core.models import Interrupt as Question
from ...core.records import InterruptRecord, RunRecord
from ...core.states import RunState, Settlement
from ...errors import InvalidInput
from .shapes import (
    CONFIRMATION,
    INPUT_REQUIRED,
    RESERVED,
    TOOL_CALL,
    Cancelled,
    Interrupt,
    Interrupted,
    RunError,
    RunFinished,
    RunOutcome,
    Success,
)

FRONTEND_TOOL: Final = "frontend_tool"
"""The reason of a call that the client itself makes; it is answered by a tool message, not by a resume entry."""

_KEPT: Final = "agui"
"""Where the interrupt of another agent lies in the payload of ours."""
_K = AnswerKind


def frontend_call(action: Action, call_id: str, **rest: Any) -> Question:
    """The question for a call that the client makes: the run ends as a success that names the call as pending.

    `rest` as for `broker.Interrupt`. The tool message with this call id completes it, its `error` fails it.
    """
    return Question(
        reason=FRONTEND_TOOL, action=action, call_id=call_id, audience=Audience.COMPLETIONS, **rest
    )


def is_frontend(question: Question) -> bool:
    """Whether the client itself makes this call."""
    return question.reason == FRONTEND_TOOL and question.addressed_to is Audience.COMPLETIONS


def interrupt_of(record: InterruptRecord) -> Interrupt:
    """What a client is shown of a question: its id stays the same however often it is shown.

    The tool and its arguments are in `metadata.toolCall`, so that a client that never saw the call can show it; what a
    question without a call is about is in `metadata.payload`. The broker's own reasons go out as `broker:name`.
    """
    question = record.interrupt
    foreign = foreign_of(question)
    if foreign is not None:
        return foreign
    call = question.call_id if question.action is not None else None
    metadata = dict(question.metadata)
    if question.action is not None:
        shown = {"toolCallId": call, "tool": question.action.tool, "args": question.action.arguments}
        metadata.setdefault("toolCall", shown)
    if question.payload is not None:
        metadata.setdefault("payload", question.payload)
    return Interrupt(
        id=record.id,
        reason=_reason(question.reason, call),
        message=question.message,
        tool_call_id=call,
        response_schema=response_schema(question),
        expires_at=_iso(record.deadline) if record.deadline is not None else None,
        metadata=metadata or None,
        subagent_run_id=question.subagent_run_id,
    )


def _reason(reason: str, call: str | None) -> str:
    known = reason in (INPUT_REQUIRED, CONFIRMATION) or (reason == TOOL_CALL and call is not None)
    named = ":" in reason and not reason.startswith(RESERVED)
    return reason if known or named else f"broker:{reason}"


def _iso(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def wire_id(record: InterruptRecord) -> str:
    """The id under which a client knows a question."""
    foreign = foreign_of(record.interrupt)
    return record.id if foreign is None else foreign.id


def takes_decision(question: Question) -> bool:
    """Whether `{"approved": ...}` decides it, rather than being an answer like any other."""
    return question.response_schema is None and not {_K.APPROVE, _K.REJECT}.isdisjoint(question.offered)


def response_schema(question: Question) -> dict[str, JSON] | None:
    """What a payload must fit: the question's own schema, or for a decision `approved`, `reason`, `editedArgs`.

    None where any payload is an answer. `editedArgs` is in it where editing is offered.
    """
    if question.response_schema is not None:
        return question.response_schema
    if not takes_decision(question) or _K.RESPOND in question.offered:
        return None
    properties: dict[str, JSON] = {"approved": {"type": "boolean"}, "reason": {"type": "string"}}
    if _K.EDIT in question.offered:
        properties["editedArgs"] = {"type": "object"}
    return {"type": "object", "properties": properties, "required": ["approved"]}


# Of other agents ------------------------------------------------------------------------------------------------


def foreign_of(question: Question) -> Interrupt | None:
    """The interrupt of another AG-UI agent that a question was made of; None for a question of ours."""
    kept = question.payload.get(_KEPT) if isinstance(question.payload, dict) else None
    if not isinstance(kept, dict) or len(question.payload) > 1:
        return None
    try:
        return Interrupt.from_json(kept)
    except InvalidInput:
        return None


def question_of(
    interrupt: Interrupt, action: Action | None = None, *, now: datetime | None = None
) -> Question:
    """The broker's question for an interrupt of another agent; `action` is its tool call, where it is known.

    The interrupt is kept whole. A deadline that cannot be read is none, one that is over (at `now`, else by this
    machine's clock) expires the question at once. Editing is offered where the schema has `editedArgs` and the action
    is known.
    """
    schema = interrupt.response_schema or {}
    offers = [_K.APPROVE, _K.REJECT, _K.CANCEL]
    if action is not None and "editedArgs" in (schema.get("properties") or {}):
        offers.append(_K.EDIT)
    call = interrupt.tool_call_id if interrupt.reason == TOOL_CALL else None
    if call is None or schema:
        offers.append(_K.RESPOND)
    when: dict[str, Any] = {"expires_in": None}
    if (deadline := deadline_of(interrupt)) is not None:
        is_over = deadline <= (now or datetime.now(UTC))
        when = {"expires_in": MILLISECOND} if is_over else {"expires_at": deadline}
    return Question(
        kind=ApprovalPending(tool_use_id=call) if call is not None else Custom(),
        payload={_KEPT: interrupt.to_json()},
        reason=interrupt.reason,
        message=interrupt.message,
        action=action,
        call_id=interrupt.tool_call_id,
        offers=tuple(offers),
        subagent_run_id=interrupt.subagent_run_id,
        **when,
    )


def deadline_of(interrupt: Interrupt) -> datetime | None:
    """When an interrupt expires: ISO 8601, taken as UTC where it names no zone; None for never or what is no date."""
    try:
        found = datetime.fromisoformat(interrupt.expires_at or "")
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def suspension_of(
    event: RunFinished, agent: str, actions: dict[str, Action] | None = None
) -> Suspension | None:
    """The pause behind another agent's RUN_FINISHED, for `broker.batch.suspend`; None where nothing is left open.

    `actions` are the calls seen in its stream, by tool call id. Interrupt ids are kept per run: another run of the
    thread may use them again. Nothing follows from an outcome that nobody here knows.
    """
    if not isinstance(event.outcome, Interrupted):
        return None
    known = actions or {}
    return Suspension(
        agent=agent,
        session=event.thread_id,
        key=event.run_id,
        protocol_id=event.run_id,
        interrupts=[question_of(one, known.get(one.tool_call_id or "")) for one in event.outcome.interrupts],
    )


# The end of a run -----------------------------------------------------------------------------------------------


def ended(run: RunRecord, asked: Sequence[InterruptRecord], run_id: str) -> RunFinished | RunError:
    """The event with which the AG-UI run `run_id` of a broker's run ends, by how that stands.

    Waiting: interrupted, with every open question (the same ids each time), or a success with pending calls where only
    the client's own calls are open. Finished: success. Withdrawn: cancelled. Dead: an error. Raises `InvalidInput` for
    a run that is at work.
    """
    outcome: RunOutcome
    match run.state:
        case RunState.WAITING:
            outcome = _waiting(asked)
        case RunState.FINISHED:
            outcome = Success()
        case RunState.WITHDRAWN:
            outcome = Cancelled()
        case RunState.DEAD:
            # What its errors say names workers and places: that is for operators, not for clients.
            return RunError(message="The run failed and is set aside.", code="dead")
        case _:
            raise InvalidInput("run", f"is {run.state}", "a run that waits or is over")
    return RunFinished(thread_id=run.session_id, run_id=run_id, result=run.result, outcome=outcome)


def _waiting(asked: Iterable[InterruptRecord]) -> Interrupted | Success:
    still = [one for one in asked if one.state is Settlement.OPEN]
    shown = tuple(interrupt_of(one) for one in still if not is_frontend(one.interrupt))
    if shown:
        return Interrupted(interrupts=shown)
    if not still:
        raise InvalidInput("run", "waits and has nothing open", "a run with its questions, read together")
    return Success(pending_tool_call_ids=tuple(one.interrupt.call_id or one.id for one in still))
