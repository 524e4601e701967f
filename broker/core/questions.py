"""What the journal asks about a call: may it run, how did it end, did it run before its worker died."""

from typing import Any

from .answers import AnswerKind
from .arguments import arguments_schema
from .limits import JSON
from .models import Action, Interrupt
from .tools import Tool


def approval(tool: Tool, action: Action, call: str) -> Interrupt:
    """May this very call run?"""
    rest: dict[str, Any] = {"expires_in": tool.expires_in}
    if AnswerKind.EDIT in (tool.offers or ()):
        rest["arguments_schema"] = arguments_schema(tool.function)
    return Interrupt.approval(
        action, call, message=_message(tool, action.arguments), offers=tool.offers, on_expiry=tool.on_expiry,
        reviewers=tool.reviewers, labels=tool.labels, **rest,
    )  # fmt: skip


def completion(tool: Tool, action: Action, call: str, handle: JSON) -> Interrupt:
    """How did the job end that this call started?"""
    return Interrupt.completion(
        action, call, handle, expires_in=tool.completes_in, labels=tool.labels, heartbeat=tool.heartbeat,
        on_missed=tool.on_missed,
    )  # fmt: skip


def doubt(tool: Tool, action: Action, call: str, attempt: int) -> Interrupt:
    """Did this call run before its worker died?"""
    return Interrupt.doubt(
        action, call, attempt, expires_in=tool.expires_in, reviewers=tool.reviewers, labels=tool.labels
    )


def _message(tool: Tool, arguments: dict[str, JSON]) -> str | None:
    if not callable(tool.message):
        return tool.message
    try:
        return str(tool.message(**arguments))
    except Exception:  # noqa: BLE001 - a question without its sentence still shows the call itself
        return None
