"""Waits for external events, as releases from 2.68 know them: what waits for a token pauses its run instead.

The framework's own wait lives as long as its process. In a run of the broker the token that `ask` delivers names the
pause, the questions are the broker's, and any process answers them, with the token or without.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import DeferredToolResults, ToolApproved, ToolDenied, ToolReturn
from pydantic_ai.exceptions import ToolFailed, UserError

from ..._async.client import AsyncBroker
from ...core.answers import Answer, Approve, Complete, Edit, Fail, Principal, Reject, Respond
from ...core.entries import plain
from ...core.outcomes import Outcome
from ...errors import InvalidInput
from .._contract import call_name
from .._staying import next_pause
from .segment import Segment, Unanswered

HAS_EVENTS: Final = find_spec("pydantic_ai.external_events") is not None
"""Whether this release has such waits."""

_RESULTS: Final = TypeAdapter(DeferredToolResults)


class Token(NamedTuple):
    """What a token of the framework stands for: a pause, who asks in it, and which calls are questions to people."""

    session: str
    run: str
    seq: int
    agent: str
    questions: list[str]

    def __str__(self) -> str:
        return urlsafe_b64encode(json.dumps(self).encode()).decode()

    @classmethod
    def parse(cls, text: str) -> "Token":
        """Raises `InvalidInput` for what is none."""
        try:
            found = cls(*json.loads(urlsafe_b64decode(text)))
        except (ValueError, TypeError):
            found = None
        kinds = (str, str, int, str, list)
        if found is None or not all(isinstance(one, kind) for one, kind in zip(found, kinds, strict=True)):
            raise InvalidInput("token", "is none of a pause", "what `ask` of a `RequestInput` was given")
        return found


def waits(segment: Segment) -> AbstractContextManager[Any]:
    """In this block, waits of this run of the framework pause it."""
    if not HAS_EVENTS:
        return nullcontext()
    from pydantic_ai.external_events import ExternalEventWaiter, external_event_scope  # noqa: PLC0415 - from 2.68

    class Waiter(ExternalEventWaiter):
        async def wait(
            self, name: str, *, ask: Callable[[str], Awaitable[Any]], timeout: timedelta | None  # noqa: ARG002
        ) -> Any:  # fmt: skip
            given = await ask(str(_token(segment)))
            if given is not None:
                return given
            segment.timeout = timeout
            raise Unanswered

    scope: AbstractContextManager[Any] = external_event_scope(Waiter())
    return scope


def _token(segment: Segment) -> Token:
    """The token of the pause that comes: the same for every attempt. Raises `UserError` where it would be no pause."""
    requests = segment.requests
    if requests is None:
        raise UserError(
            "Only the deferred calls of a resumable agent itself are waited for: it is not its run."
        )
    session, run, seq = next_pause()
    questions = [one.tool_call_id for one in requests.calls if requests.kind(one.tool_call_id) == "question"]
    return Token(session, run, seq, segment.framework.described.agent, questions)


async def resolve_external_event(
    broker: AsyncBroker, token: str, payload: Any, *, by: Principal | None = None
) -> dict[str, Outcome]:
    """What became of the decisions about the calls of a pause, by tool call id, addressed by a token of `RequestInput`.

    `payload` are `DeferredToolResults`, or their JSON form; calls that are not in it stay open. It may come before the
    run has paused: then it is kept (`Parked`). Each answer is safe to repeat. Raises `InvalidInput`, before anything
    is answered.
    """
    about = Token.parse(token)
    try:
        given = _RESULTS.validate_python(payload)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
    else:
        said = {name: _approval(name, one) for name, one in given.approvals.items()}
        said |= {name: _call(one, is_question=name in about.questions) for name, one in given.calls.items()}
        return {
            name: await broker.inbox.answer_call(
                about.session, call_name(about.seq, (about.agent,), name), answer, run_id=about.run,
                seq=about.seq, by=by,
            )
            for name, answer in said.items()
        }  # fmt: skip
    raise InvalidInput(f"payload.{place}", "are no deferred tool results", fault["msg"])


def _approval(name: str, one: Any) -> Answer:
    match one:
        case True | ToolApproved(override_args=None):
            return Approve()
        case ToolApproved(override_args=dict() as edited):
            return Edit(arguments=edited)
        case False:
            return Reject(reason=ToolDenied().message)
        case ToolDenied(message=reason):
            return Reject(reason=reason)
        case _:
            raise InvalidInput(
                f"payload.approvals.{name}", "is no approval", "true, false, or approved or denied"
            )


def _call(one: Any, *, is_question: bool) -> Answer:
    match one:
        case ToolFailed() | Exception():
            return Reject(reason=str(one)) if is_question else Fail(error=str(one))
        case ToolReturn(return_value=value):
            pass
        case value:
            pass
    return Respond(payload=plain(value)) if is_question else Complete(value=plain(value))
