"""Graphs: a pause before a node runs the node afterwards, a pause after it does not run it again."""

from collections.abc import Callable
from typing import Any

import pytest

from broker import (
    Approve,
    AsyncBroker,
    CallFailed,
    Corrupt,
    InvalidInput,
    Phase,
    Respond,
    Run,
    RunState,
    ScheduledPause,
)
from broker.interop import entelix
from broker.interop.entelix import Approvals, GoTo, Graph, Resume, Update, interrupt, send

from .entering import PAUSED, asked, begin, comes_back, enter


class Shop:
    """Three nodes in a row, and which of them ran with which state."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, Any]] = []

    def node(self, name: str) -> Callable[[Any, Run[Any]], Any]:
        def run(state: Any, _: Run[Any]) -> Any:
            self.ran.append((name, state))
            return [*state, name]

        return run

    def graph(self, **pauses: Any) -> Graph:
        names = ("quote", "pay", "ship")
        nodes = {name: self.node(name) for name in names}
        return Graph(nodes, {"quote": "pay", "pay": lambda _: "ship", "ship": None}, start="quote", **pauses)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.ran]


async def resume(broker: AsyncBroker, run_id: str, graph: Graph, command: Any = None) -> Any:
    assert (await send(broker, "th_2", command or Resume())).ok
    return await enter(broker, run_id, graph.resume)


async def test_a_graph_runs_to_its_end(broker: AsyncBroker) -> None:
    shop = Shop()
    started = await broker.start("support", [], session="th_2")
    assert await enter(broker, started.run_id, shop.graph().resume) == ["quote", "pay", "ship"]


@pytest.mark.row("E14")
async def test_E14_before_runs_the_node_when_it_is_resumed(broker: AsyncBroker) -> None:
    """Off: the checkpoint of the next node in place of this one."""
    shop = Shop()
    graph = shop.graph(pause_before=("pay",))
    run_id = await begin(broker, graph.resume, state=[])
    record = await asked(broker)
    assert record.interrupt.kind == ScheduledPause(phase=Phase.BEFORE, node="pay")
    assert record.interrupt.payload is None
    assert shop.names == ["quote"]
    assert await resume(broker, run_id, graph) == ["quote", "pay", "ship"]
    assert shop.names == ["quote", "pay", "ship"]


@pytest.mark.row("E14")
async def test_E14_after_does_not_run_it_again(broker: AsyncBroker) -> None:
    """Off: the pause before the checkpoint."""
    shop = Shop()
    graph = shop.graph(pause_after=("pay",))
    run_id = await begin(broker, graph.resume, state=[])
    assert (await asked(broker)).interrupt.kind == ScheduledPause(phase=Phase.AFTER, node="pay")
    assert shop.names == ["quote", "pay"]
    assert await resume(broker, run_id, graph) == ["quote", "pay", "ship"]
    assert shop.names == ["quote", "pay", "ship"]


@pytest.mark.row("E14")
async def test_E14_without_a_next_node_nothing_runs(broker: AsyncBroker) -> None:
    shop = Shop()
    graph = shop.graph(pause_after=("ship",))
    run_id = await begin(broker, graph.resume, state=[])
    assert await resume(broker, run_id, graph) == ["quote", "pay", "ship"]
    assert shop.names == ["quote", "pay", "ship"]


@pytest.mark.row("E14")
async def test_E14_only_the_first_visited_node_skips_its_own_pause(broker: AsyncBroker) -> None:
    """Off: `resumed` carried on to the next node, or not looked at."""
    shop = Shop()
    graph = shop.graph(pause_before=("quote", "pay"), pause_after=("quote",))
    run_id = await begin(broker, graph.resume, state=[])
    labels = [(await asked(broker)).interrupt.kind.label]
    while await resume(broker, run_id, graph) is PAUSED:
        labels.append((await asked(broker)).interrupt.kind.label)
    # The pause after quote is resumed at pay, which is then the first node to be visited.
    assert labels == ["paused before quote", "paused after quote"]
    again = shop.graph(pause_before=("quote", "pay"))
    run_id = await begin(broker, again.resume, state=[])
    assert await resume(broker, run_id, again) is PAUSED
    assert (await asked(broker)).interrupt.kind.label == "paused before pay"


async def test_a_crash_after_the_resume_does_not_lose_a_pause_that_is_to_come(broker: AsyncBroker) -> None:
    """The node that was resumed is done and saved; the next one has its pause. Off: `seq` not in the position."""
    shop = Shop()
    graph = shop.graph(pause_before=("quote", "pay"))
    run_id = await begin(broker, graph.resume, state=[])
    assert (await send(broker, "th_2", Resume())).ok

    async def crashes(run: Run[Any]) -> Any:
        checkpoint = run.checkpoint

        async def save(state: Any) -> None:
            await checkpoint(state)
            raise KeyError

        run.checkpoint = save  # type: ignore[method-assign]
        return await graph.resume(run)

    with pytest.raises(KeyError):
        await enter(broker, run_id, crashes)
    await comes_back(broker, run_id)
    assert await enter(broker, run_id, graph.resume) is PAUSED
    assert (await asked(broker)).interrupt.kind.label == "paused before pay"
    assert shop.names == ["quote"]


async def test_update_replaces_the_state(broker: AsyncBroker) -> None:
    shop = Shop()
    graph = shop.graph(pause_before=("pay",))
    run_id = await begin(broker, graph.resume, state=[])
    assert await resume(broker, run_id, graph, Update(state=["changed"])) == ["changed", "pay", "ship"]


async def test_goto_replaces_the_node_and_skips_its_pause(broker: AsyncBroker) -> None:
    shop = Shop()
    graph = shop.graph(pause_before=("pay", "ship"))
    run_id = await begin(broker, graph.resume, state=[])
    assert await resume(broker, run_id, graph, GoTo(node="ship")) == ["quote", "ship"]
    assert shop.names == ["quote", "ship"]


async def test_a_node_that_is_not_there_is_asked_about_again(broker: AsyncBroker) -> None:
    shop = Shop()
    graph = shop.graph(pause_before=("pay",))
    run_id = await begin(broker, graph.resume, state=[])
    assert await resume(broker, run_id, graph, GoTo(node="refund")) is PAUSED
    assert (await asked(broker)).interrupt.payload == {"no_node": "refund", "nodes": ["quote", "pay", "ship"]}
    assert await resume(broker, run_id, graph, GoTo(node="ship")) == ["quote", "ship"]


@pytest.mark.parametrize(
    "answer", [Respond(payload="a remark"), Respond(payload={"command": "resume"}), Approve()]
)
async def test_other_answers_to_a_scheduled_pause_let_it_go_on(broker: AsyncBroker, answer: Any) -> None:
    shop = Shop()
    graph = shop.graph(pause_before=("pay",))
    run_id = await begin(broker, graph.resume, state=[])
    assert (await broker.inbox.answer((await asked(broker)).id, answer)).ok
    assert await enter(broker, run_id, graph.resume) == ["quote", "pay", "ship"]


async def test_a_scheduled_pause_waits_for_as_long_as_it_takes(broker: AsyncBroker) -> None:
    """Off: the deadline that other questions have."""
    started = await broker.start("support", [], session="th_2")
    await enter(broker, started.run_id, Shop().graph(pause_before=("pay",)).resume)
    record = await asked(broker)
    assert record.deadline is None


async def test_a_scheduled_pause_that_is_given_up_runs_nothing(broker: AsyncBroker) -> None:
    """Nothing that happens by itself approves. Off: `_check_scheduled`."""
    shop = Shop()
    graph = shop.graph(pause_before=("pay",))
    run_id = await begin(broker, graph.resume, state=[])
    await broker.cancel((await asked(broker)).id)
    with pytest.raises(CallFailed):
        await enter(broker, run_id, graph.resume)
    run = await broker.runs.get(run_id)
    assert (run.state, shop.names) == (RunState.DEAD, ["quote"])
    assert "its scheduled pause was not answered" in run.errors[0]


async def test_a_node_that_asks_is_entered_again_and_its_calls_are_not_made_twice(
    broker: AsyncBroker,
) -> None:
    """Update in the middle of an open call gives the call up, and the node runs anew with the new state."""
    sent: list[int] = []
    approvals = Approvals()

    async def pay(amount: int) -> int:
        sent.append(amount)
        return amount

    async def node(state: Any, run: Run[Any]) -> Any:
        paid = await approvals.call(run, pay, {"amount": state["amount"]}, tool_use_id="tu_81")
        return {"paid": paid, "seat": interrupt("seat?").kind}

    graph = Graph({"pay": node}, {}, start="pay")
    run_id = await begin(broker, graph.resume, state={"amount": 400})
    assert await resume(broker, run_id, graph, Update(state={"amount": 40})) is PAUSED
    record = await asked(broker)
    assert record.interrupt.action is not None
    assert record.interrupt.action.arguments == {"amount": 40}
    command = entelix.ApproveTool(tool_use_id="tu_81", decision=Approve())
    assert await resume(broker, run_id, graph, command) is PAUSED
    assert await resume(broker, run_id, graph) == {"paid": 40, "seat": "approve"}
    assert sent == [40]


@pytest.mark.row("E19")
@pytest.mark.parametrize(
    "saved", [{"schema_version": 99, "body": {}}, {"schema_version": 0, "body": {}}, None, 7]
)
async def test_E19_a_checkpoint_of_another_version_fails_loudly_and_stays(
    broker: AsyncBroker, saved: Any
) -> None:
    """It is not taken for a run without one. Off: `_saved` with None for what it cannot read."""
    shop = Shop()
    started = await broker.start("support", [], session="th_2")

    async def other(run: Run[Any]) -> Any:
        await run.checkpoint(saved)
        return await shop.graph().resume(run)

    with pytest.raises(Corrupt):
        await enter(broker, started.run_id, other)
    assert shop.ran == []
    run = await broker.runs.get(started.run_id)
    assert run.state is RunState.READY
    assert "corrupt" in run.errors[0]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"start": "nowhere"}, "start"),
        ({"edges": {"a": "nowhere"}}, "edges"),
        ({"edges": {"nowhere": "a"}}, "edges"),
        ({"pause_before": ("nowhere",)}, "pause_before"),
        ({"pause_after": ("nowhere",)}, "pause_after"),
    ],
)
def test_names_of_no_node_are_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Graph({"a": Shop().node("a")}, **({"edges": {}, "start": "a"} | given))
    assert refused.value.field == field


async def test_an_edge_that_leads_nowhere_fails_the_attempt(broker: AsyncBroker) -> None:
    graph = Graph({"a": Shop().node("a")}, {"a": lambda _: "nowhere"}, start="a")
    started = await broker.start("support", [], session="th_2")
    with pytest.raises(InvalidInput, match=r"edges\.a leads to no node"):
        await enter(broker, started.run_id, graph.resume)
