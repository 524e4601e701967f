"""An agent of Pydantic AI in the hands of the broker: the contract for `Agent.run` and its `Conversation`."""

import json
from collections.abc import AsyncIterable, Mapping, Sequence
from typing import Any

from pydantic_ai import DeferredToolRequests
from pydantic_ai.capabilities import ProcessEventStream
from pydantic_ai.conversation import ConversationTypeAdapter

from ...core.entries import plain
from ...core.limits import JSON
from ...errors import Corrupt, InvalidInput
from .._contract import Answered, Described, Finished, Outcome, Parked, digest_of
from .._resumable import OnEvent, Resumable
from .events import waits
from .results import results
from .segment import Segment


class ResumableAgent(Resumable):
    """An agent whose runs park: see `resumable`."""

    def __init__(
        self, agent: Any, about: Described, *, accepts: Sequence[str], question: Mapping[str, Any],
        on_event: OnEvent | None, options: Mapping[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(about, accepts, question, on_event, options)
        self.agent: Any = agent

    async def start(self, given: JSON) -> Outcome:
        """The first segment. Text is the user's prompt; anything else is given as JSON."""
        return await self._segment(given if isinstance(given, str) else json.dumps(given))

    async def resume(self, state: bytes, answers: Sequence[Answered]) -> Outcome:
        """The next segment. Raises `Corrupt` for a state whose calls are not those that were asked about."""
        found = ConversationTypeAdapter.validate_json(state)
        told = results(found.deferred_tool_requests, answers)
        return await self._segment(conversation=found, deferred_tool_results=told)

    async def read_back(self, parked: Parked) -> None:
        """Loads the conversation as another worker would. Raises what pydantic raises, and `Corrupt`."""
        found = ConversationTypeAdapter.validate_json(parked.state).deferred_tool_requests
        waiting = [] if found is None else [one.tool_call_id for one in (*found.approvals, *found.calls)]
        if waiting != [one.call_id for one in parked.interrupts]:
            raise Corrupt("paused run", "its state read back asks something else")

    async def _segment(self, *given: Any, **state: Any) -> Outcome:
        segment = Segment(self, self._question)
        options = dict(self._options)
        more = [ProcessEventStream(self._tell)] if self.is_heard else []
        options["capabilities"] = [*options.get("capabilities", ()), *more, segment]
        if not _defers(self.agent.output_type):
            kinds = self.agent.output_type
            options["output_type"] = [
                *(kinds if isinstance(kinds, list | tuple) else (kinds,)),
                DeferredToolRequests,
            ]
        with segment.under_way(), waits(segment):
            done = await self.agent.run(*given, **state, **options)
        if not isinstance(done.output, DeferredToolRequests):
            return Finished(plain(done.output))
        return segment.parked(done.conversation)

    async def _tell(self, _: Any, events: AsyncIterable[Any]) -> None:
        async for event in events:
            await self.tell(event)


def _defers(output_type: Any) -> bool:
    kinds = output_type if isinstance(output_type, list | tuple) else (output_type,)
    return DeferredToolRequests in kinds


def resumable(
    agent: Any,
    *,
    name: str | None = None,
    accepts: Sequence[str] = (),
    question: Mapping[str, Any] | None = None,
    on_event: OnEvent | None = None,
    **options: Any,
) -> ResumableAgent:
    """An agent of Pydantic AI whose runs park; it is what `worker.add` takes.

    `name` is the broker's for it (default the agent's own). `question` are fields of every interrupt: `reviewers`,
    `expires_in`, `message` and so on. `accepts` are builds of earlier versions whose pauses this agent can go on
    from. `on_event` is called with each event of its runs as it comes (`AgentStreamEvent`): they are streamed then.
    `options` go to every `agent.run` (`deps`, `usage_limits`, `toolsets` ...): each worker has its own, nothing of
    them is stored. Raises `InvalidInput` for an agent without a name.
    """
    name = name or agent.name
    if not name:
        raise InvalidInput("name", "is missing", "a name for the agent")
    toolsets = (*agent.toolsets, *options.get("toolsets", ()))
    tools = sorted(json.dumps(_configuration(one), sort_keys=True) for one in toolsets)
    about = Described("pydantic-ai", "2", "conversation", name, digest_of([tools, repr(agent.output_type)]))
    return ResumableAgent(
        agent, about, accepts=accepts, question=question or {}, on_event=on_event, options=options
    )


def _configuration(toolset: Any) -> JSON:
    """What a paused run needs to find again of a set of tools, as far as it is known before a run."""
    tools = getattr(toolset, "tools", None) or {}
    schemas = {one.name: one.function_schema.json_schema for one in tools.values()}
    external = {one.name: one.parameters_json_schema for one in getattr(toolset, "tool_defs", ())}
    return [type(toolset).__name__, toolset.id, schemas, external]
