"""Nodes and the way between them as an agent of the broker, with entelix's checkpoints and scheduled pauses.

    graph = Graph({"quote": quote, "pay": pay}, {"quote": "pay"}, start="quote", pause_before=("pay",))
    worker.add("support", graph.resume)

Before a node runs, its name and the state are a checkpoint of the run's journal. After a pause inside it the node is
entered again from the top; calls of tools that were recorded come back and do not run twice.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, TypeAlias

from pydantic import StrictBool, StrictInt

from ..._async._runtime import invoke
from ..._async.run import Run
from ...core.answers import Cancel, Respond
from ...core.entries import plain
from ...core.fields import Id, Json
from ...core.kinds import Custom, Phase, ScheduledPause
from ...core.limits import JSON, check_id
from ...core.records import InterruptRecord
from ...core.shape import Model
from ...core.states import Settlement
from ...errors import CallFailed, Corrupt, InvalidInput, Paused
from .commands import Command, GoTo, Update, envelope, open_envelope, parse_command
from .guarding import AsyncGuard
from .raising import Interrupted

Node: TypeAlias = Callable[[Any, Run[Any]], Any]
"""A function of state and run, async or plain, that returns the next state."""
Edge: TypeAlias = str | Callable[[Any], str | None] | None
"""The next node, or a function of the state that names it; None ends."""


class Position(Model):
    """Where a graph stands: the next node (None: at its end), the state, the pause it was saved after.

    `resumed`: the node is entered after a pause, so its own pause point does not fire again.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("node", "seq", "resumed")
    ALWAYS: ClassVar[frozenset[str]] = frozenset({"node", "state"})
    NULLABLE: ClassVar[frozenset[str]] = frozenset({"node", "state"})

    node: Id | None = None
    state: Json = None
    seq: StrictInt = 0
    resumed: StrictBool = False


class Graph:
    """A graph to be run by workers: `resume` is the handler. A run's input is the first state, its result the last one.

    `pause_before` and `pause_after` name the nodes with a scheduled pause there. Such a pause waits until somebody
    answers it; one that is cancelled ends the run as dead, for an operator, and its node does not run.
    """

    def __init__(
        self,
        nodes: Mapping[str, Node],
        edges: Mapping[str, Edge],
        *,
        start: str,
        pause_before: Collection[str] = (),
        pause_after: Collection[str] = (),
    ) -> None:
        self._nodes = {check_id("node", name): node for name, node in nodes.items()}
        self._edges = dict(edges)
        self._before, self._after = frozenset(pause_before), frozenset(pause_after)
        self._start = start
        fixed = {edge for edge in self._edges.values() if isinstance(edge, str)}
        for field, names in (
            ("start", {start}), ("edges", self._edges.keys() | fixed), ("pause_before", self._before),
            ("pause_after", self._after),
        ):  # fmt: skip
            if strange := sorted(names - self._nodes.keys()):
                raise InvalidInput(field, f"names no node: {strange[0]}", ", ".join(self._nodes))

    async def resume(self, run: Run[Any]) -> JSON:
        """The last state: runs node after node from where the run stands. Pauses by `Paused`."""
        at = await self._enter(run)
        while at.node is not None:
            at = await self._visit(run, at.node, at)
        return at.state

    async def _visit(self, run: Run[Any], node: str, at: Position) -> Position:
        async with AsyncGuard(run, since=at.seq):
            if node in self._before and not at.resumed:
                raise Interrupted(ScheduledPause(phase=Phase.BEFORE, node=node))
            state = plain(await invoke(self._nodes[node], (at.state, run), {}, None))
            after = Position(node=self._next(node, state), state=state, seq=run.seq)
            await run.checkpoint(envelope(after.to_json()))
            if node in self._after:
                raise Interrupted(ScheduledPause(phase=Phase.AFTER, node=node))
            return after
        raise Paused(run.id)  # which the guard has raised: it ends no block of a run without an error

    def _next(self, node: str, state: JSON) -> str | None:
        edge = self._edges.get(node)
        found = edge(state) if callable(edge) else edge
        if found is not None and found not in self._nodes:
            raise InvalidInput(f"edges.{node}", "leads to no node", ", ".join(self._nodes))
        return found

    async def _enter(self, run: Run[Any]) -> Position:
        """Where the run stands now, with what the answers to its last pause say about it."""
        at = _saved(run) or Position(node=self._start, state=run.input)
        if run.seq <= at.seq:
            return at  # nothing was asked since: its worker died, or it is new
        await _check_scheduled(run)
        match await self._command(run):
            case Update(state=state):
                moved = Position(node=at.node, state=state, seq=run.seq, resumed=True)
            case GoTo(node=node):
                moved = Position(node=node, state=at.state, seq=run.seq, resumed=True)
            case _:
                return at.model_copy(update={"resumed": True})
        await run.checkpoint(envelope(moved.to_json()))
        return moved

    async def _command(self, run: Run[Any]) -> Command | None:
        """The command among the answers to the last pause. One to a node that is not there is asked about again."""
        found = _command(run.interrupts)
        if isinstance(found, GoTo) and found.node not in self._nodes:
            async with AsyncGuard(run, since=run.seq):
                raise Interrupted(Custom(), {"no_node": found.node, "nodes": list(self._nodes)})
        return found


def _saved(run: Run[Any]) -> Position | None:
    if run.cut == 0:
        return None
    try:
        return Position.from_json(open_envelope(run.checkpointed))
    except InvalidInput as fault:
        reason = f"{fault.field} {fault.problem}"
    raise Corrupt(f"checkpoint of {run.id}", reason)


async def _check_scheduled(run: Run[Any]) -> None:
    """Nothing that happens by itself lets a node run: a scheduled pause needs somebody's answer."""
    for one in run.interrupts:
        ended = one.resolution
        if (
            isinstance(one.interrupt.kind, ScheduledPause)
            and ended
            and ended.state is not Settlement.RESOLVED
        ):
            fault = CallFailed(one.interrupt.kind.node, ended.state, "its scheduled pause was not answered")
            await run.fail(fault.code, str(fault), final=True)
            raise fault


def _command(interrupts: tuple[InterruptRecord, ...]) -> Command | None:
    """The command among the answers to the last pause."""
    for one in interrupts:
        match one.resolution.answer if one.resolution else None:
            case Respond(payload=dict() as payload) | Cancel(payload=dict() as payload):
                if payload.get(Command.TAG_KEY) in (Update.TAG, GoTo.TAG):
                    return parse_command(payload)
            case _:
                pass
    return None
