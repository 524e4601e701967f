"""Tools whose calls wait for somebody, with what the SDK has no word for: edited arguments and results from outside.

A tool of the SDK can be approved or rejected. A `brokered` one looks, when it is invoked, how its question ended: it
runs with the edited arguments, or gives the result that came from elsewhere and does not run at all.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Literal, TypeAlias

from ...core.answers import AnswerKind, Complete, Edit, Respond
from ...core.limits import JSON
from ...core.models import Action, Interrupt
from ...errors import InvalidInput
from .._contract import Answered, current_run

ALWAYS: Final = "always_approve"
"""In the metadata of an approval: later calls of the same tool and agent in this run are not asked about."""

Asks: TypeAlias = Literal["approval", "completion", "question"]
Known: TypeAlias = tuple[str, str]
"""What tells two calls of one pause apart: the agent's name and the id that the model gave the call."""

_K = AnswerKind
_EDITABLE: Final = (_K.APPROVE, _K.EDIT, _K.REJECT, _K.CANCEL)
_RESPONSE: Final = (_K.RESPOND, _K.REJECT, _K.CANCEL)
_ANSWERS: Final[ContextVar[Mapping[Known, Answered] | None]] = ContextVar(
    "broker_openai_answers", default=None
)


@contextmanager
def answered(found: Mapping[Known, Answered]) -> Iterator[None]:
    """Tools that are invoked in this block know how their questions ended."""
    reset = _ANSWERS.set(found)
    try:
        yield
    finally:
        _ANSWERS.reset(reset)


def brokered(tool: Any, *, asks: Asks = "approval") -> Any:
    """The same `FunctionTool`, whose every call waits for an answer, with more answers than the SDK knows.

    `approval`: it runs as asked, with edited arguments, or not at all. `completion`: it never runs here, its result
    comes from a job elsewhere (`broker.complete`). `question`: it never runs, a person's response is its result.
    The model's history keeps the arguments that it asked for.
    """
    if not callable(getattr(tool, "on_invoke_tool", None)):
        raise InvalidInput("tool", "is no function tool", "what `function_tool` makes")
    return dataclasses.replace(tool, on_invoke_tool=Invoke(tool.on_invoke_tool, asks), needs_approval=True)


class Invoke:
    """What the SDK calls in the place of a brokered tool."""

    def __init__(self, inner: Any, asks: Asks) -> None:
        self._inner = inner
        self.asks = asks

    async def __call__(self, ctx: Any, arguments: str) -> Any:
        """The result that came from elsewhere, or that of the tool."""
        one = (_ANSWERS.get() or {}).get((_name(ctx), ctx.tool_call_id))
        match one.answer if one is not None else None:
            case Complete() | Respond() if one is not None:
                return one.text
            case Edit(arguments=edited):
                return await self._inner(ctx, json.dumps(edited))
            case _:
                return await self._inner(ctx, arguments)


def effect_key(ctx: Any) -> str:
    """The idempotency key of the call that a tool is in, by its `ToolContext`: the same at every attempt.

    It belongs to the approved question, so that two agents whose models give the same id have two keys. Raises
    `UnknownId` outside a worker's run.
    """
    known = _name(ctx), ctx.tool_call_id
    run, one = current_run(), (_ANSWERS.get() or {}).get(known)
    return one.key if one is not None else f"{run.id}:{'/'.join(known)}"


def _name(ctx: Any) -> str:
    return str(getattr(ctx.agent, "name", ""))


def known_as(item: Any) -> Known:
    """Which call a `ToolApprovalItem` is about."""
    return item.agent.name, item.call_id


def shown(item: Any) -> Action:
    """What would be done. Arguments that are no JSON are shown as the text they are."""
    text = item.arguments
    try:
        arguments: JSON = json.loads(text) if text else {}
    except ValueError:
        arguments = text
    return Action(tool=item.qualified_name or item.name, arguments=arguments)


def question(item: Any, more: Mapping[str, Any]) -> Interrupt:
    """What is asked about a call: as its tool says, or, for tools of the SDK, whether it may run."""
    (agent, call_id), action = known_as(item), shown(item)
    tool = next((one for one in item.agent.tools if getattr(one, "name", None) == item.name), None)
    invoke = getattr(tool, "on_invoke_tool", None)
    fields = {"agent_path": (agent,), **more}
    match invoke.asks if isinstance(invoke, Invoke) else None:
        case "completion":
            return Interrupt.completion(action, call_id, **fields)
        case "question":
            fields = {"offers": _RESPONSE, **fields}
            return Interrupt.question(action.arguments, call_id=call_id, **fields)
        case "approval":
            fields = {
                "offers": _EDITABLE,
                "arguments_schema": getattr(tool, "params_json_schema", None),
                **fields,
            }
            return Interrupt.approval(action, call_id, **fields)
        case _:
            return Interrupt.approval(action, call_id, **fields)


def decide(state: Any, item: Any, one: Answered) -> None:
    """Tells the frozen run how one question ended. Whatever gave no leave is told to the model in words."""
    match one.answer:
        case Complete() | Respond() | Edit():
            state.approve(item)
        case answer if answer is not None and answer.kind is _K.APPROVE:
            state.approve(item, always_approve=answer.metadata.get(ALWAYS) is True)
        case _:
            state.reject(item, rejection_message=one.text)
