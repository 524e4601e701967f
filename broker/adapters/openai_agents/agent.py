"""An agent of the SDK in the hands of the broker: the contract for `Runner.run` and its `RunState`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agents import Runner, RunState
from agents.run_state import CURRENT_SCHEMA_VERSION

from ...core.entries import plain
from ...core.limits import JSON
from ...errors import Corrupt
from .._contract import Answered, Described, Finished, Outcome, Parked, digest_of
from .._resumable import OnEvent, Resumable
from .tools import Known, answered, decide, known_as, question, shown


class ResumableAgent(Resumable):
    """An agent whose runs park: see `resumable`."""

    def __init__(
        self, agent: Any, about: Described, *, accepts: Sequence[str], question: Mapping[str, Any],
        context: Callable[[JSON], Any] | None, context_serializer: Callable[[Any], Any] | None,
        context_deserializer: Callable[[Any], Any] | None, on_event: OnEvent | None,
        options: Mapping[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(about, accepts, question, on_event, options)
        self.agent: Any = agent
        self._context = context
        self._serializer = context_serializer
        self._deserializer = context_deserializer

    async def start(self, given: JSON) -> Outcome:
        """The first segment. Text and lists of input items are the agent's input; anything else is given as JSON."""
        said = given if isinstance(given, str | list) else json.dumps(given)
        context = self._context(given) if self._context is not None else None
        with answered({}):
            return self._outcome(await self._run(said, context=context, **self._options))

    async def resume(self, state: bytes, answers: Sequence[Answered]) -> Outcome:
        """The next segment. Raises `Corrupt` for a state whose calls are not those that were asked about."""
        found = await self._load(state)
        told: dict[Known, Answered] = {(one.path[0], one.id): one for one in answers}
        for item in found.get_interruptions():
            one = told.get(known_as(item))
            if one is None or (one.interrupt.action or shown(item)).digest != shown(item).digest:
                raise Corrupt("paused run", f"call {item.call_id} is not what was asked about")
            decide(found, item, one)
        with answered(told):
            return self._outcome(await self._run(found, **self._options))

    async def read_back(self, parked: Parked) -> None:
        """Loads the state as another worker would. Raises what the SDK raises, and `Corrupt`."""
        found = [known_as(item) for item in (await self._load(parked.state)).get_interruptions()]
        if found != [(one.agent_path[0], one.call_id) for one in parked.interrupts]:
            raise Corrupt("paused run", "its state read back asks something else")

    async def _run(self, given: Any, **options: Any) -> Any:
        """What a run came to; one that is listened to is streamed, to its end."""
        if not self.is_heard:
            return await Runner.run(self.agent, given, **options)
        streamed = Runner.run_streamed(self.agent, given, **options)
        try:
            async for event in streamed.stream_events():
                await self.tell(event)
        except BaseException:
            streamed.cancel()  # its task would go on without anybody
            raise
        return streamed

    async def _load(self, state: bytes) -> Any:
        return await RunState.from_string(
            self.agent, state.decode(), context_deserializer=self._deserializer, strict_context=True
        )

    def _outcome(self, result: Any) -> Outcome:
        if not result.interruptions:
            return Finished(plain(result.final_output))
        state = result.to_state().to_json(context_serializer=self._serializer, strict_context=True)
        asked = tuple(question(item, self._question) for item in result.interruptions)
        return Parked(json.dumps(state, separators=(",", ":")).encode(), asked)


def resumable(
    agent: Any,
    *,
    name: str | None = None,
    accepts: Sequence[str] = (),
    question: Mapping[str, Any] | None = None,
    context: Callable[[JSON], Any] | None = None,
    context_serializer: Callable[[Any], Any] | None = None,
    context_deserializer: Callable[[Any], Any] | None = None,
    on_event: OnEvent | None = None,
    **options: Any,
) -> ResumableAgent:
    """An agent of the SDK whose runs park; it is what `worker.add` takes.

    `name` is the broker's for it (default the agent's own). `question` are fields of every interrupt: `reviewers`,
    `expires_in`, `message` and so on. `context` makes the run's context from its input; it is stored with every
    pause, so one that is no mapping needs `context_serializer` and `context_deserializer`, as the SDK takes them.
    `accepts` are builds of earlier versions whose pauses this agent can go on from. `on_event` is called with each
    event of its runs as it comes (`StreamEvent`): they are streamed then. `options` go to every `Runner.run`
    (`max_turns`, `hooks`, `run_config` ...).
    """
    name = name or agent.name
    release = CURRENT_SCHEMA_VERSION
    about = Described("openai-agents", "0", release, name, digest_of(list(_configuration(agent, set()))))
    return ResumableAgent(
        agent, about, accepts=accepts, question=question or {}, context=context,
        context_serializer=context_serializer, context_deserializer=context_deserializer, on_event=on_event,
        options=options,
    )  # fmt: skip


def _configuration(agent: Any, seen: set[int]) -> Iterator[JSON]:
    """What a paused run needs to find again: agents by name, with their tools, handoffs and type of output."""
    if id(agent) in seen:
        return
    seen.add(id(agent))
    tools = [[one.name, getattr(one, "params_json_schema", None)] for one in agent.tools]
    handoffs = [getattr(one, "agent_name", None) or one.name for one in agent.handoffs]
    output = agent.output_type
    yield [agent.name, tools, handoffs, output.name() if hasattr(output, "is_plain_text") else repr(output)]
    inner = [getattr(one, "_agent_instance", None) for one in agent.tools]
    for one in (*inner, *(one for one in agent.handoffs if hasattr(one, "tools"))):
        if one is not None:
            yield from _configuration(one, seen)
