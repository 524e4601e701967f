"""What a server of MCP asks, as questions of the broker, and their answers as it reads them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Literal

import mcp.types

from ...core.answers import AnswerKind, Approve, Reject, Respond
from ...core.digest import canonical_json, content_digest
from ...core.limits import JSON
from ...core.models import Action, Audience, Interrupt
from ...errors import InvalidInput
from .._contract import Answered

ELICITATION: Final = "elicitation"
"""The reason of a question that a person answers: a form, or a page to visit."""
LATER: Final = "later"
"""The reason of a question that nobody need answer: the server asks to be called again."""
_K = AnswerKind


Expires = timedelta | Literal["default"] | None


def questions(asked: Mapping[str, Any], action: Action, expires_in: Expires) -> tuple[Interrupt, ...]:
    """The questions of one round, each under its key. Raises `InvalidInput` for what a person cannot answer."""
    return tuple(_question(key, request, action, expires_in) for key, request in asked.items())


def _question(key: str, request: Any, action: Action, expires_in: Expires) -> Interrupt:
    if request.method != "elicitation/create":
        raise InvalidInput(f"input_requests.{key}", f"asks for {request.method}", "an elicitation")
    params = request.params
    offers: tuple[AnswerKind, ...] = (_K.RESPOND, _K.REJECT, _K.CANCEL)
    if params.mode == "url":
        return Interrupt(
            reason=ELICITATION, message=params.message, payload={"url": params.url}, action=action, call_id=key,
            offers=(_K.APPROVE, _K.REJECT, _K.CANCEL), expires_in=expires_in,
        )  # fmt: skip
    schema = dict(params.requested_schema)
    if not schema.get("required"):  # an empty form is an answer: a plain yes
        offers = (_K.APPROVE, *offers)
    return Interrupt(
        reason=ELICITATION, message=params.message, response_schema=schema, action=action, call_id=key, offers=offers,
        expires_in=expires_in,
    )  # fmt: skip


def later(action: Action, after: timedelta) -> Interrupt:
    """The pause of a call that the server asks to be made again. A value completes it; else it is made `after` that."""
    return Interrupt(
        reason=LATER, action=action, call_id=LATER, audience=Audience.COMPLETIONS, expires_in=after,
        offers=(_K.COMPLETE, _K.FAIL, _K.CANCEL),
    )  # fmt: skip


def responses(answers: Sequence[Answered]) -> dict[str, Any]:
    """The answers by their keys: yes with what was filled in, a no, and what nobody answered: three things."""
    return {one.id: _response(one) for one in answers}


def _response(one: Answered) -> Any:
    match one.answer:
        case Respond(payload=payload):
            return mcp.types.ElicitResult(action="accept", content=payload)
        case Approve():
            is_form = one.interrupt.response_schema is not None
            return mcp.types.ElicitResult(action="accept", content={} if is_form else None)
        case Reject():
            return mcp.types.ElicitResult(action="decline")
        case _:
            return mcp.types.ElicitResult(action="cancel")


def key_of(params: Any) -> str:
    """The key of a question that came without one: the same question, asked again in another connection, has it too."""
    said: JSON = params.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"meta", "elicitation_id"}
    )
    return content_digest(canonical_json(said))[:32]
