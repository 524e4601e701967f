"""The journal in the hands of a real worker: groups of tasks, plain handlers, drains, and what is dead at once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from broker import (
    Approve,
    AsyncBroker,
    BlockingRun,
    CallFailed,
    InterruptRecord,
    Reject,
    Run,
    RunState,
    Worker,
    current_call,
    gated,
)
from tests.journal.asked import call

from .fleet import ended, run_when

Serve = Callable[..., Worker]


class Desk:
    """One gated tool and one that is not, and what they did."""

    def __init__(self) -> None:
        self.did: list[str] = []

    @property
    def tools(self) -> tuple[Any, Any]:
        @gated
        async def pay(amount: int) -> str:
            self.did.append(f"pay {amount}")
            return f"paid {amount}"

        async def search(text: str) -> str:
            self.did.append(f"search {text}")
            return f"found {text}"

        return pay, search


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def asked(broker: AsyncBroker, run_id: str) -> dict[str | None, InterruptRecord]:
    """The questions of a run, as soon as it waits."""
    run = await run_when(broker, run_id, RunState.WAITING)
    found = [await broker.inbox.get(one) for one in run.interrupt_ids]
    return {one.interrupt.call_id: one for one in found}


async def in_a_task_group(run: Run[Any], desk: Desk) -> list[Any]:
    pay, search = desk.tools

    async def tried(amount: int) -> Any:
        try:
            return await run.call(pay, {"amount": amount}, call_id=f"c{amount}")
        except CallFailed as failed:
            return failed.kind

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(tried(amount)) for amount in (1, 3, 4)]
        tasks.append(group.create_task(run.call(search, {"text": "x"}, call_id="c2")))
    return [task.result() for task in tasks]


async def gathered(run: Run[Any], desk: Desk) -> list[Any]:
    pay, search = desk.tools

    async def tried(amount: int) -> Any:
        try:
            return await run.call(pay, {"amount": amount}, call_id=f"c{amount}")
        except CallFailed as failed:
            return failed.kind

    return await asyncio.gather(*map(tried, (1, 3, 4)), run.call(search, {"text": "x"}, call_id="c2"))


@pytest.mark.parametrize("handle", [in_a_task_group, gathered])
async def test_siblings_pause_once(
    broker: AsyncBroker, serve: Serve, desk: Desk, handle: Callable[[Run[Any], Desk], Any]
) -> None:
    """One suspension of three questions; the ungated sibling is done; nothing is cancelled or asked twice.

    Off: `Attempt._is_settled` without `_busy`.
    """
    entered: list[int] = []

    async def handler(run: Run[Any]) -> Any:
        entered.append(run.seq)
        return await handle(run, desk)

    serve(airline=handler)
    started = await broker.start("airline", session="s")
    questions = await asked(broker, started.run_id)
    assert sorted(map(str, questions)) == ["c1", "c3", "c4"]
    assert desk.did == ["search x"]
    for call_id, answer in (("c1", Approve()), ("c3", Reject(reason="no")), ("c4", Approve())):
        assert (await broker.inbox.answer(questions[call_id].id, answer)).ok
    run = await ended(broker, started.run_id)
    assert (run.state, run.errors, run.seq) == (RunState.FINISHED, (), 1)
    assert run.result == ["paid 1", "rejected", "paid 4", "found x"]
    assert sorted(desk.did) == ["pay 1", "pay 4", "search x"]
    assert entered == [0, 1]


async def test_a_mismatch_in_a_task_group_is_dead_at_once(
    broker: AsyncBroker, serve: Serve, desk: Desk
) -> None:
    amounts = [1, 2]

    async def handler(run: Run[Any]) -> None:
        pay, _search = desk.tools
        async with asyncio.TaskGroup() as group:
            group.create_task(run.call(pay, {"amount": amounts.pop(0)}, call_id="c1"))

    serve(airline=handler)
    started = await broker.start("airline", session="s")
    (question,) = (await asked(broker, started.run_id)).values()
    await broker.inbox.answer(question.id, Approve())
    run = await ended(broker, started.run_id)
    assert (run.state, desk.did) == (RunState.DEAD, [])
    assert "journal_mismatch" in run.errors[0]


class Order(BaseModel):
    item: str


async def test_a_plain_handler_has_the_same_journal(broker: AsyncBroker, serve: Serve) -> None:
    """Its input has its type, its steps and tools are plain functions; what it returns after a pause is no result."""
    did: list[str] = []

    @gated
    def order(item: str) -> str:
        did.append(f"{item} {current_call().attempt}")
        return f"ordered {item}"

    def think(item: str) -> Order:
        did.append("thought")
        return Order(item=f"{item}, blue")

    def handler(run: BlockingRun[Order]) -> str:
        try:
            found: Order = run.step(think, run.input.item)
            (message,) = run.calls([call("c1", "order", item=found.item)], [order])
            return str(message["content"])
        except BaseException:  # noqa: BLE001 - what is tried
            return "never mind"

    serve(airline=handler)
    started = await broker.start("airline", Order(item="lamp"), session="s")
    (question,) = (await asked(broker, started.run_id)).values()
    assert did == ["thought"]
    await broker.inbox.answer(question.id, Approve())
    run = await ended(broker, started.run_id)
    assert (run.state, run.result) == (RunState.FINISHED, "ordered lamp, blue")
    assert did == ["thought", "lamp, blue 1"]


async def test_a_mismatch_of_a_plain_handler_is_dead_at_once(broker: AsyncBroker, serve: Serve) -> None:
    items = ["lamp", "bulb"]
    did: list[str] = []

    @gated
    def order(item: str) -> None:
        did.append(item)

    def handler(run: BlockingRun[Any]) -> str:
        try:
            run.calls([call("c1", "order", item=items.pop(0))], [order])
        except Exception:  # noqa: BLE001 - what is tried
            return "it went well"
        return "done"

    serve(airline=handler)
    started = await broker.start("airline", session="s")
    (question,) = (await asked(broker, started.run_id)).values()
    await broker.inbox.answer(question.id, Approve())
    run = await ended(broker, started.run_id)
    assert (run.state, did) == (RunState.DEAD, [])


async def test_a_tool_that_cancels_itself_has_failed(broker: AsyncBroker, serve: Serve) -> None:
    """A24: nobody asked this task to end."""

    async def cancels() -> None:
        raise asyncio.CancelledError

    async def handler(run: Run[Any]) -> Any:
        (message,) = await run.calls([call("c1", "cancels")], [cancels])
        return message["content"]

    serve(airline=handler)
    started = await broker.start("airline", session="s")
    run = await ended(broker, started.run_id)
    assert (run.state, run.result, run.tries) == (RunState.FINISHED, "Error: CancelledError", 1)


async def test_a_drained_worker_leaves_its_call_to_the_next(broker: AsyncBroker, serve: Serve) -> None:
    """A drain is no failure of the tool: it is run again, under the same key, and nothing is recorded of the first."""
    keys: list[str] = []
    entered = asyncio.Event()

    async def slow() -> str:
        keys.append(current_call().key)
        if len(keys) == 1:
            entered.set()
            await asyncio.Event().wait()
        return "done"

    async def handler(run: Run[Any]) -> Any:
        (message,) = await run.calls([call("c1", "slow")], [slow])
        return message["content"]

    first = serve(airline=handler)
    started = await broker.start("airline", session="s")
    await entered.wait()
    first.stop()
    first.stop()
    await run_when(broker, started.run_id, RunState.READY)
    serve(airline=handler)
    run = await ended(broker, started.run_id)
    assert (run.state, run.result, run.errors) == (RunState.FINISHED, "done", ())
    assert keys == [f"{run.id}:c1"] * 2


async def test_a_loop_that_never_ends_holds_up_nobody(broker: AsyncBroker, serve: Serve, desk: Desk) -> None:
    """A handler that swallows its pause and goes on for ever: other runs of the worker are served."""
    go_on = [True]

    async def mad(run: Run[Any]) -> None:
        pay, _search = desk.tools
        while go_on:
            try:
                await run.call(pay, {"amount": 1}, call_id="c1")
            except:  # noqa: E722, S112 - what is tried
                continue

    async def sane(_run: Run[Any]) -> str:
        return "served"

    serve(mad=mad, sane=sane)
    started = await broker.start("mad", session="s")
    await run_when(broker, started.run_id, RunState.WAITING)
    other = await broker.start("sane", session="s")
    assert (await ended(broker, other.run_id)).result == "served"
    go_on.clear()
