"""The deferred calls of a run as questions, and their answers as the results that the framework goes on with."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_ai import ToolApproved, ToolDenied, ToolReturn
from pydantic_ai.exceptions import ToolFailed

from ...core.answers import AnswerKind, Approve, Complete, Edit, Respond
from ...core.entries import plain
from ...core.models import Action, Interrupt
from ...errors import Corrupt
from .._contract import Answered, current_run

_K = AnswerKind
_EDITABLE: Final = (_K.APPROVE, _K.EDIT, _K.REJECT, _K.CANCEL)
_RESPONSE: Final = (_K.RESPOND, _K.REJECT, _K.CANCEL)
KEY: Final = "key"
"""Under this name a tool finds its idempotency key in `ctx.tool_call_metadata`; `by` says who has approved it."""


def questions(
    requests: Any, schemas: Mapping[str, Any], agent: str, more: Mapping[str, Any]
) -> tuple[Interrupt, ...]:
    """What is asked about each deferred call: a leave, a person's response, or the result of a job elsewhere.

    The metadata that a tool deferred its call with are the payload of the question.
    """
    kind_of = getattr(requests, "kind", lambda _: "external")  # releases before 2.68 have two kinds only
    found = []
    for call in (*requests.approvals, *requests.calls):
        given = (
            plain(requests.metadata[call.tool_call_id]) if call.tool_call_id in requests.metadata else None
        )
        fields = {"agent_path": (agent,), "payload": given, **more}
        action = Action(tool=call.tool_name, arguments=plain(call.args_as_dict()))
        if call in requests.approvals:
            fields = {"offers": _EDITABLE, "arguments_schema": schemas.get(call.tool_name), **fields}
            one = Interrupt.approval(action, call.tool_call_id, **fields)
        elif kind_of(call.tool_call_id) == "question":
            fields = {"offers": _RESPONSE, **fields, "payload": action.arguments if given is None else given}
            one = Interrupt.question(call_id=call.tool_call_id, action=action, **fields)
        else:
            one = Interrupt.completion(action, call.tool_call_id, **fields)
        found.append(one)
    return tuple(found)


def results(requests: Any, answers: Sequence[Answered]) -> Any:
    """The results that the framework goes on with. Raises `Corrupt` where they are not for what it waits for."""
    told = {one.id: one for one in answers}
    waiting = {call.tool_call_id: call for call in (*requests.approvals, *requests.calls)}
    if set(told) != set(waiting):
        raise Corrupt("paused run", "its calls are not those that were asked about")
    for name, call in waiting.items():
        action = told[name].interrupt.action
        shown = Action(tool=call.tool_name, arguments=plain(call.args_as_dict()))
        if action is None or action.digest != shown.digest:
            raise Corrupt("paused run", f"call {name} is not what was asked about")
    return requests.build_results(
        approvals={call.tool_call_id: _approval(told[call.tool_call_id]) for call in requests.approvals},
        calls={call.tool_call_id: _result(told[call.tool_call_id]) for call in requests.calls},
        metadata={name: _metadata(one) for name, one in told.items()},
    )


def _approval(one: Answered) -> Any:
    match one.answer:
        case Approve():
            return ToolApproved()
        case Edit(arguments=dict() as edited):
            return ToolApproved(override_args=edited)
        case _:
            return ToolDenied(one.text)


def _result(one: Answered) -> Any:
    match one.answer:
        case Complete() | Respond():
            return ToolReturn(one.told.value)
        case _:
            return ToolFailed(one.text)


def _metadata(one: Answered) -> dict[str, Any]:
    by = one.resolution.by
    return {KEY: one.key, "by": by.id if by is not None else None}


def effect_key(ctx: Any) -> str:
    """The idempotency key of the call that a tool is in, by its `RunContext`: the same at every attempt.

    Agents that run each other in tools, and whose models give the same id, have keys of their own. Raises `UnknownId`
    outside a worker's run.
    """
    given = ctx.tool_call_metadata
    known = given.get(KEY) if isinstance(given, Mapping) else None
    if isinstance(known, str):
        return known
    agent = getattr(ctx.agent, "name", None) or ""
    return f"{current_run().id}:{agent}/{ctx.tool_call_id}"
