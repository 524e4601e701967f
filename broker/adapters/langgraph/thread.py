"""One thread of a graph in the hands of the broker: what it asks, and how it goes on. The contract for LangGraph.

Answers are given by id, in the strict mode of the graph, and only to questions that the thread asks now. A worker that
died may have gone on already: then the thread is ahead of the pause, and what it asks now is parked, unanswered.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, NoReturn

from langgraph.checkpoint.base import LATEST_VERSION
from langgraph.types import Command

from ..._async._runtime import in_thread
from ..._async.run import Run
from ...core.digest import canonical_json, content_digest
from ...core.entries import plain
from ...core.kinds import Custom, Phase
from ...core.limits import JSON, check_json
from ...errors import CallFailed, Corrupt, InvalidInput
from .._contract import FRAMEWORK_ID, Answered, Described, Finished, Outcome, Parked, digest_of, supersede
from .asking import SCHEDULED, Ask, Pending, pending, scheduled, value_for

RUN: Final = "broker_run"
"""Under this name the metadata of checkpoints hold the run that a worker made them in."""
STRICT: Final = "__pregel_strict_resume"
"""The graph's switch for refusing answers to what it does not ask."""
NOT_BACK: Final = "its checkpointer does not give the pause back"
PLACE: Final = frozenset({"checkpoint_id", "checkpoint_map", "checkpoint_ns"})
"""What a configuration names a point of the thread with: where a call begins, not where it comes to."""
FORKS: Final = 32
"""How many forks in a row are followed back to the pause."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A graph and how it is kept: see `resumable`."""

    graph: Any
    name: str
    ask: Ask | None
    unanswered: Callable[[Answered], JSON] | None
    result: Callable[[Any], JSON] | None
    call: Mapping[str, Any]

    @property
    def described(self) -> Described:
        """The versions of the framework and of its saved format, and a digest of the nodes, channels and tools."""
        nodes: Mapping[str, Any] = self.graph.nodes
        known = [getattr(node.bound, "tools_by_name", None) or () for node in nodes.values()]
        shape = {
            "nodes": sorted(nodes),
            "channels": sorted(self.graph.channels),
            "tools": sorted(name for names in known for name in names),
        }
        minor = ".".join(version("langgraph").split(".")[:2])
        return Described("langgraph", minor, str(LATEST_VERSION), self.name, digest_of(shape))


class Thread:
    """What `drive` and `park` are given. `run` is None where no worker is at it."""

    def __init__(self, of: Setup, thread_id: str, config: Any, run: Run[Any] | None = None) -> None:
        self._of = of
        self._graph = of.graph
        self._run = run
        self._blocks: bool | None = None
        self.id = thread_id
        given = dict(config or {})
        self._configurable: dict[str, Any] = {**given.pop("configurable", {}), "thread_id": thread_id}
        self._given = given

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the graph's calls."""
        return {**self._given, "configurable": dict(self._configurable)}

    @property
    def described(self) -> Described:
        """What its pauses are of."""
        return self._of.described

    # The contract ----------------------------------------------------------------------------------------------

    async def start(self, given: JSON) -> Outcome:
        """Runs the thread with new input. What it asked before is superseded, whoever had asked."""
        run = self._run
        assert run is not None  # noqa: S101 - only a worker starts
        await supersede(run._link, self.id, run.agent, but=run.id)  # noqa: SLF001 - the same house
        self._configurable[RUN] = run.id
        snapshot = await self._look()
        if snapshot.metadata and snapshot.metadata.get(RUN) == run.id:
            return await self._ahead(snapshot)  # its first worker died in it
        return await self._go(given)

    async def resume(self, state: bytes, answers: Sequence[Answered]) -> Outcome:
        """Gives the answers to what the thread asks now, and runs it."""
        parked = json.loads(state)
        self._configurable = {**parked["configurable"], "thread_id": self.id}
        run = self._run
        assert run is not None  # noqa: S101 - only a worker resumes
        self._configurable[RUN] = run.id
        snapshot = await self._look()
        if not snapshot.values and not snapshot.next and not snapshot.interrupts:
            raise Corrupt(f"thread {self.id}", "its checkpointer has no such thread")
        if answers and answers[0].id.startswith(SCHEDULED):
            return await self._pass(snapshot, parked, answers)
        live = await self._live(snapshot, parked, answers)
        if live:
            return await self._go(Command(resume=await self._values(live, answers)))
        return await self._ahead(snapshot, parked)

    async def read_back(self, parked: Parked) -> None:
        """Nothing where the checkpointer has the pause, else `Corrupt`: nobody could go on from it."""
        found = await self._parked(await self._look())
        known = [one.call_id for one in found.interrupts] if found is not None else []
        if known != [one.call_id for one in parked.interrupts]:
            raise Corrupt(f"thread {self.id}", NOT_BACK)

    async def parked(self, returned: Any = None) -> Parked | None:
        """The pause of the thread as it stands; None where it has ended. `returned` is what its graph returned."""
        return await self._parked(await self._look(returned))

    async def asks(self) -> bool:
        """Whether the thread has a question of `interrupt`."""
        return bool((await self._look()).interrupts)

    async def last_run(self) -> str | None:
        """The run of the worker that made the thread's last checkpoint; None where a caller made it."""
        return ((await self._look()).metadata or {}).get(RUN)

    def at(self, parked: Parked) -> str:
        """A name for the pause: the same for the same point of the thread."""
        return f"pause-{content_digest(parked.state)[:32]}"

    # ------------------------------------------------------------------------------------------------------------

    async def _go(self, given: Any) -> Outcome:
        config = self.config
        config["configurable"][STRICT] = True
        config["metadata"] = {
            **config.get("metadata", {}),
            RUN: self._configurable.get(RUN),
        }
        returned = await self._call("invoke", given, config, durability="sync", **self._of.call)
        return await self._outcome(await self._look(returned))

    async def _outcome(self, snapshot: Any) -> Outcome:
        parked = await self._parked(snapshot)
        return parked if parked is not None else Finished(self._result(snapshot.values))

    async def _parked(self, snapshot: Any) -> Parked | None:
        asked = [one.named() for one in pending(snapshot, self._of.ask)]
        checkpoint = _checkpoint(snapshot)
        if not asked and any(self._breaks):
            asked = [scheduled(node, self._phase(node), checkpoint) for node in snapshot.next]
        if not asked and snapshot.next:
            raise Corrupt(f"thread {self.id}", NOT_BACK)
        if not asked:
            return None
        left = PLACE | {RUN}
        kept = {name: one for name, one in self._configurable.items() if name not in left and _is_plain(one)}
        state = {"thread_id": self.id, "checkpoint_id": checkpoint, "configurable": kept}
        return Parked(canonical_json(state), tuple(asked))

    @property
    def _breaks(self) -> tuple[Any, Any]:
        """The pause points of the graph: before and after which nodes."""
        call = self._of.call
        return (
            call.get("interrupt_before") or self._graph.interrupt_before_nodes,
            call.get("interrupt_after") or self._graph.interrupt_after_nodes,
        )

    def _phase(self, node: str) -> Phase:
        before, _ = self._breaks
        return Phase.BEFORE if before == "*" or node in before else Phase.AFTER

    async def _pass(self, snapshot: Any, parked: Mapping[str, Any], answers: Sequence[Answered]) -> Outcome:
        """Goes on from a pause point, where somebody said so and the thread still stands there."""
        for one in answers:
            if one.answer is None or one.answer.kind != "approve":
                await self._give_up(CallFailed(one.path[-1], str(one.resolution.state), one.text))
        if _checkpoint(snapshot) == parked["checkpoint_id"]:
            return await self._go(None)
        return await self._ahead(snapshot)

    async def _ahead(self, snapshot: Any, parked: Mapping[str, Any] | None = None) -> Outcome:
        """Goes on with a thread that is ahead of the pause, unless it asks, has ended, or may be at a pause point."""
        before, after = self._breaks
        stands = bool(after) or before == "*" or any(node in before for node in snapshot.next)
        if snapshot.tasks and not snapshot.interrupts and not stands:
            return await self._go(None)
        if not snapshot.tasks and parked is not None and _checkpoint(snapshot) == parked["checkpoint_id"]:
            raise Corrupt(f"thread {self.id}", "its checkpointer has lost what it waited with")
        return await self._outcome(snapshot)

    async def _live(
        self, snapshot: Any, parked: Mapping[str, Any], answers: Sequence[Answered]
    ) -> dict[str, str]:
        """By the ids of the graph's questions, those that were answered: the same, or what they are after a fork."""
        known = {one.id.rpartition(".")[0] for one in answers}
        now = pending(snapshot, self._of.ask)
        same = {one.id: one.id for one in now if one.id in known}
        if same or not await self._is_fork(snapshot, parked["checkpoint_id"]):
            return same
        asked = {_content(one): one.id.rpartition(".")[0] for one in answers}
        return {one.id: asked[one.content] for one in now if one.content in asked}

    async def _is_fork(self, snapshot: Any, of: str) -> bool:
        """Whether the thread's head is the pause asked anew, and not what came after it."""
        for _ in range(FORKS):
            parent = snapshot.parent_config
            if not snapshot.metadata or snapshot.metadata.get("source") != "fork" or parent is None:
                return False
            if parent["configurable"].get("checkpoint_id") == of:
                return True
            snapshot = await self._call("get_state", parent)
        return False

    async def _values(self, live: Mapping[str, str], answers: Sequence[Answered]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for now, then in live.items():
            try:
                found[now] = value_for(then, answers, self._of.unanswered)
            except CallFailed as fault:
                await self._give_up(fault)
        return found

    async def _give_up(self, fault: CallFailed) -> NoReturn:
        """Ends the run for good: nobody answered, and there is no value that the graph could safely go on with."""
        if self._run is not None:
            await self._run.fail(fault.kind, str(fault), final=True)
        raise fault

    def _result(self, values: Any) -> JSON:
        if self._of.result is not None:
            return check_json("result", self._of.result(values))
        if not isinstance(values, Mapping):
            return plain(values)
        return {str(name): plain(value) for name, value in values.items() if _is_plain(value, made=True)}

    # The graph's two colours -----------------------------------------------------------------------------------

    async def _look(self, returned: Any = None) -> Any:
        """The thread as its checkpointer has it. Raises `Corrupt` where that lacks a question that was `returned`."""
        config = self.config
        for name in PLACE:
            config["configurable"].pop(name, None)
        found = await self._call("get_state", config)
        asked = (
            returned.get("__interrupt__", ())
            if isinstance(returned, Mapping)
            else getattr(returned, "interrupts", ())
        )
        if {one.id for one in asked} - {one.id for one in found.interrupts}:
            raise Corrupt(f"thread {self.id}", NOT_BACK)
        return found

    async def _call(self, name: str, *args: Any, **options: Any) -> Any:
        """What a method of the graph returns: its async form, or, where the checkpointer has none, in a thread."""
        if self._blocks is None:
            try:
                await self._graph.aget_state(self.config)
                self._blocks = False
            except NotImplementedError:
                self._blocks = True
        method: Callable[..., Any] = getattr(self._graph, name if self._blocks else f"a{name}")
        if self._blocks:
            return await in_thread(method, *args, **options)
        return await method(*args, **options)


def _checkpoint(snapshot: Any) -> str:
    return str(snapshot.config["configurable"].get("checkpoint_id", ""))


def _content(one: Answered) -> str:
    """As `Pending.content`, of a question that was asked."""
    graph_id, _, place = one.id.rpartition(".")
    metadata = {name: value for name, value in one.interrupt.metadata.items() if name != FRAMEWORK_ID}
    kind = one.interrupt.kind if one.interrupt.action is None else Custom()
    asked = one.interrupt.model_copy(update={"call_id": None, "metadata": metadata, "kind": kind})
    return Pending(graph_id, int(place), asked).content


def _is_plain(value: Any, *, made: bool = False) -> bool:
    try:
        plain(value) if made else check_json("value", value)
    except InvalidInput:
        return False
    return True
