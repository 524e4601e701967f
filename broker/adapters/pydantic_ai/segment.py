"""What the adapter sees and does inside of one run of the framework; and the capability that waits there."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai import DeferredToolRequests, UserPromptNode
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.messages import ModelRequest
from pydantic_ai.result import FinalResult
from pydantic_graph import End

from ...errors import InvalidInput, UnknownId
from .._contract import Framework, Parked, answers_of, current_run
from .._staying import stay
from .results import questions, results

if TYPE_CHECKING:  # where the framework is not installed, checkers know nothing of it
    _Capability = object
else:
    _Capability = AbstractCapability

MOST_SECONDS: Final = 24 * 60 * 60

_UNDER_WAY: Final[ContextVar["Segment | None"]] = ContextVar("broker_pydantic_ai_segment", default=None)


class Unanswered(BaseException):
    """Ends the step of a run that waits for somebody: it comes out of the run as one that has deferred its calls."""


@dataclass
class Segment(_Capability):
    """One run of the framework, from its input or its answers to its result or its next pause.

    It comes behind the capabilities of the agent, and so sees what none of them has resolved.
    """

    framework: Framework
    question: dict[str, Any]
    schemas: dict[str, Any] = field(default_factory=dict)
    requests: Any = None
    timeout: timedelta | None = None
    _id: str | None = None

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Capabilities of this run find it in this block."""
        reset = _UNDER_WAY.set(self)
        try:
            yield
        finally:
            _UNDER_WAY.reset(reset)

    @classmethod
    def of(cls, ctx: Any) -> "Segment | None":
        """The one of this context; None for a run that nobody has made resumable, as that of an agent in a tool."""
        found = _UNDER_WAY.get()
        return found if found is not None and found._id == ctx.run_id else None  # noqa: SLF001 - its own

    def parked(self, conversation: Any) -> Parked:
        """What a run came to that has deferred calls."""
        more = self.question
        if self.timeout is not None:
            more = {"expires_in": self.timeout, **more}
        asked = questions(
            conversation.deferred_tool_requests, self.schemas, self.framework.described.agent, more
        )
        return Parked(ConversationTypeAdapter.dump_json(conversation), asked)

    # What the framework calls ----------------------------------------------------------------------------------

    async def prepare_tools(self, ctx: Any, tool_defs: list[Any]) -> list[Any]:  # noqa: ARG002 - its signature
        """Sees what arguments each tool takes, so that an edit is held to it."""
        self.schemas.update((one.name, one.parameters_json_schema) for one in tool_defs)
        return tool_defs

    async def handle_deferred_tool_calls(self, ctx: Any, *, requests: Any) -> None:  # noqa: ARG002
        """Sees what is going to be asked."""
        self.requests = requests

    async def wrap_node_run(self, ctx: Any, *, node: Any, handler: Any) -> Any:
        """Ends the run with its requests where a step ends as `Unanswered`: the results it has so far stay."""
        self._id, self.requests, self.timeout = ctx.run_id, None, None
        try:
            return await handler(node)
        except Unanswered:
            # What other tools of the step came to is there, marked as the rest of a step that was broken off.
            last = ctx.messages[-1]
            if isinstance(last, ModelRequest) and last.state == "interrupted":
                ctx.messages[-1:] = [replace(last, state="complete")] if last.parts else []
            return End(FinalResult(self.requests))


@dataclass
class InlineWait(_Capability):
    """Has a run of a resumable agent wait for its answers where it is, for at most so many `seconds`.

    The pause is stored and everybody is asked before it waits, and the run is nobody's meanwhile. Answers that come in
    time are gone on with in this very run of the agent, unless another worker is quicker; a worker that dies or waits
    for too long has changed nothing. For the tools, it makes no difference. Elsewhere than in a worker, or in
    `Broker.take`, it does nothing.
    """

    seconds: float = 20.0

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= MOST_SECONDS:
            raise InvalidInput("seconds", "is out of range", f"0 to {MOST_SECONDS}")

    def get_ordering(self) -> Any:
        """Around all others: only what nobody resolves is waited for."""
        return CapabilityOrdering(position="outermost")

    async def wrap_node_run(self, ctx: Any, *, node: Any, handler: Any) -> Any:
        """Goes on with the answers where a step has ended the run with deferred calls."""
        ended = await handler(node)
        segment = Segment.of(ctx)
        if segment is None or not isinstance(ended, End):
            return ended
        requests = ended.data.output
        if not isinstance(requests, DeferredToolRequests):
            return ended
        try:
            run = current_run()
        except UnknownId:
            return ended
        waiting = Conversation(
            messages=list(ctx.messages), usage=copy(ctx.usage), conversation_id=ctx.conversation_id,
            deferred_tool_requests=requests,
        )  # fmt: skip
        if not await stay(run, segment.framework, segment.parked(waiting), self.seconds):
            return ended
        return UserPromptNode(None, deferred_tool_results=results(requests, answers_of(run)))
