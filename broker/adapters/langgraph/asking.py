"""What a thread asks, as interrupts of the broker, and the answers to that as the graph reads them.

The middleware of LangChain for people in the loop asks in two forms: one interrupt for each call (`per_call`), or one
for all calls of a turn (`batched`), which becomes one question for each call and is answered when all of them are.
Whatever else a graph asks with `interrupt(value)` is a question whose payload is the value.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...core.answers import AnswerKind, Approve, Complete, Edit, Reject, Respond
from ...core.entries import plain
from ...core.kinds import ApprovalPending, Phase, ScheduledPause
from ...core.limits import JSON
from ...core.models import Action, Interrupt
from ...errors import CallFailed
from .._contract import Answered

Ask = Callable[[Interrupt], Interrupt]
"""What is asked instead of the usual question: with reviewers, a deadline or a message, say."""

_K = AnswerKind
_OFFERS: Final[dict[str, AnswerKind]] = {
    "approve": _K.APPROVE,
    "edit": _K.EDIT,
    "reject": _K.REJECT,
    "respond": _K.RESPOND,
}
_ALL: Final = tuple(_OFFERS)
FORM: Final = "langgraph_form"
"""Under this name the metadata of a question hold how the middleware asked: about a call, or all calls of a turn."""
SCHEDULED: Final = "scheduled"
"""What the id of a pause point of the graph begins with."""


@dataclass(frozen=True, slots=True)
class Pending:
    """One question that a thread asks now: the graph's `id`, and its place among those asked under it."""

    id: str
    place: int
    asked: Interrupt

    @property
    def content(self) -> str:
        """What tells it from other questions when the graph asks it again under another id."""
        return f"{self.place} {'/'.join(self.asked.agent_path)} {self.asked.content_digest}"

    def named(self) -> Interrupt:
        """The question under the id it has within the pause."""
        key = f"{self.id}.{self.place}"
        kind = self.asked.kind if self.asked.action is None else ApprovalPending(tool_use_id=key)
        return self.asked.model_copy(update={"call_id": key, "kind": kind})


def pending(snapshot: Any, ask: Ask | None) -> tuple[Pending, ...]:
    """The questions of a thread, from its state, each once. Raises `InvalidInput` for one that has no JSON form."""
    paths = {one.id: (task.name,) for task in snapshot.tasks for one in task.interrupts}
    found: dict[str, Any] = {one.id: one for one in snapshot.interrupts}
    return tuple(
        Pending(graph_id, place, asked.model_copy(update={"agent_path": paths.get(graph_id, ())}))
        for graph_id, one in found.items()
        for place, asked in enumerate(map(ask, _questions(one)) if ask is not None else _questions(one))
    )


def _questions(one: Any) -> Iterator[Interrupt]:
    value = one.value
    if isinstance(value, Mapping) and value.get("type") == "tool_approval":
        yield _approval(value, value.get("tool_call_id"), _allowed(one.response_schema), one.response_schema)
    elif isinstance(value, Mapping) and "action_requests" in value:
        allowed = {row["action_name"]: row["allowed_decisions"] for row in value["review_configs"]}
        for request in value["action_requests"]:
            yield _approval(request, None, allowed.get(request["name"], _ALL), None)
    else:
        schema = one.response_schema if isinstance(one.response_schema, dict) else None
        yield Interrupt.question(plain(value), schema, offers=(_K.RESPOND, _K.CANCEL))


def _approval(
    request: Mapping[str, Any], tool_call_id: Any, allowed: Sequence[str], schema: Any
) -> Interrupt:
    """The question about one call. The id that the model gave it is kept: the question's own is the graph's."""
    offers = tuple(_OFFERS[word] for word in allowed if word in _OFFERS)
    action = Action(tool=request["name"], arguments=plain(request["args"]))
    return Interrupt(
        reason="tool_call", action=action, message=request.get("description") or None,
        offers=(*offers, _K.CANCEL), arguments_schema=_arguments_schema(schema),
        metadata={FORM: "call", "tool_call_id": str(tool_call_id)} if tool_call_id else {FORM: "turn"},
    )  # fmt: skip


def _allowed(schema: Any) -> Sequence[str]:
    """The decisions that a schema of the middleware has; all where there is none."""
    if not isinstance(schema, Mapping):
        return _ALL
    mapping = schema.get("discriminator", {}).get("mapping")
    only = schema.get("properties", {}).get("type", {}).get("const")
    return tuple(mapping) if mapping else (only,) if only else _ALL


def _arguments_schema(schema: Any) -> dict[str, JSON] | None:
    """What the arguments of an edit must be, from the middleware's schema of decisions; None where it does not say."""
    if not isinstance(schema, Mapping):
        return None
    parts = schema.get("$defs", {})
    wanted = parts.get("EditedAction", {}).get("properties", {}).get("args")
    return {"$defs": dict(parts), **wanted} if wanted else None


def scheduled(node: str, phase: Phase, checkpoint: str) -> Interrupt:
    """The question whether a graph may go on from its pause point (`interrupt_before`, `interrupt_after`)."""
    return Interrupt(
        kind=ScheduledPause(phase=phase, node=node), reason="scheduled_pause", message=f"Paused {phase} {node}.",
        call_id=f"{SCHEDULED}.{checkpoint}.{node}", offers=(_K.APPROVE, _K.CANCEL), agent_path=(node,),
    )  # fmt: skip


# Answers ---------------------------------------------------------------------------------------------------------


def value_for(
    graph_id: str, answers: Sequence[Answered], unanswered: Callable[[Answered], JSON] | None
) -> Any:
    """What the graph's `interrupt` returns: the payload, a decision of the middleware, or its list of decisions."""
    prefix = f"{graph_id}."
    mine = sorted(
        (one for one in answers if one.id.startswith(prefix)),
        key=lambda one: int(one.id.removeprefix(prefix)),
    )
    match mine[0].interrupt.metadata.get(FORM):
        case "call":
            return _decision(mine[0])
        case "turn":
            return {"decisions": [_decision(one) for one in mine]}
        case _:
            return _value(mine[0], unanswered)


def _value(one: Answered, unanswered: Callable[[Answered], JSON] | None) -> JSON:
    match one.answer:
        case Respond(payload=value) | Complete(value=value):
            return value
        case Approve():
            return {"type": "approve"}
        case Edit(arguments=arguments):
            return {"type": "edit", "args": arguments}
        case Reject(reason=reason):
            return {"type": "reject", "message": reason}
        case _ if unanswered is not None:
            return unanswered(one)
        case _:
            raise CallFailed(one.interrupt.reason, str(one.resolution.state), one.text)


def _decision(one: Answered) -> dict[str, JSON]:
    """The middleware's decision about one call. Its tool and id come from what was asked, never from the answer."""
    action = one.interrupt.action
    match one.answer:
        case Approve():
            return {"type": "approve"}
        case Edit(arguments=arguments) if action is not None:
            return {"type": "edit", "edited_action": {"name": action.tool, "args": arguments}}
        case Reject(reason=reason):
            return {"type": "reject", "message": reason}
        case Respond(payload=value) | Complete(value=value):
            return {"type": "respond", "message": value if isinstance(value, str) else _text(value)}
        case _:  # nobody decided: the model is told so, in words of their own, and not that somebody refused
            word = "respond" if _K.RESPOND in one.interrupt.offered else "reject"
            return {"type": word, "message": one.text}


def _text(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)
