"""What `interrupt` raises becomes one suspension, and how it ended is there when the code is entered again."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker import (
    Approve,
    AsyncBroker,
    BlockingRun,
    Broker,
    Custom,
    InterruptState,
    InvalidInput,
    Phase,
    Reject,
    Replayed,
    Resolution,
    Respond,
    Run,
    RunState,
    ScheduledPause,
    Settlement,
    Worker,
    gated,
)
from broker.core.kinds import ApprovalPending
from broker.interop import entelix
from broker.interop.entelix import guard, guarded, interrupt
from broker.testing import RunningServer
from tests.clients.asking import ADA
from tests.worker.fleet import ended, run_when

from .entering import PAUSED, asked, begin, enter

Connect = Callable[..., Any]


def said(ended: Resolution) -> Any:
    """The payload of a response."""
    assert isinstance(ended.answer, Respond)
    return ended.answer.payload


async def respond(broker: AsyncBroker, value: Any) -> None:
    assert (await broker.inbox.answer((await asked(broker)).id, Respond(payload=value))).ok


async def test_a_question_pauses_and_its_answer_is_there_at_the_next_entry(broker: AsyncBroker) -> None:
    @guarded
    async def handler(_: Run[Any]) -> Any:
        return said(interrupt({"ask": "which seat?"}))

    run_id = await begin(broker, handler)
    record = await asked(broker)
    assert (record.interrupt.kind, record.interrupt.payload) == (Custom(), {"ask": "which seat?"})
    await respond(broker, "12A")
    assert await enter(broker, run_id, handler) == "12A"


async def test_equal_questions_get_their_answers_in_order_across_pauses(broker: AsyncBroker) -> None:
    """Off: the guard's steps (`_pauses`), or `take` without `del`."""

    @gated
    async def pay(amount: int) -> str:
        return f"paid {amount}"

    @guarded
    async def handler(run: Run[Any]) -> Any:
        first = said(interrupt("more?"))
        paid = await run.call(pay, {"amount": 1}, call_id="c1")
        return [first, paid, said(interrupt("more?")), said(interrupt("more?"))]

    run_id = await begin(broker, handler)
    await respond(broker, 1)
    assert await enter(broker, run_id, handler) is PAUSED
    await broker.inbox.answer((await asked(broker)).id, Approve())
    for value in (2, 3):
        assert await enter(broker, run_id, handler) is PAUSED
        await respond(broker, value)
    assert await enter(broker, run_id, handler) == [1, "paid 1", 2, 3]


async def test_how_it_ended_is_told_apart(broker: AsyncBroker) -> None:
    """Denied is `resolved` with a `Reject`, given up is `cancelled`."""

    @guarded
    async def handler(_: Run[Any]) -> Any:
        ended = interrupt()
        return [ended.state, ended.kind]

    run_id = await begin(broker, handler, thread="a")
    await broker.inbox.answer((await asked(broker, "a")).id, Reject(reason="no"))
    assert await enter(broker, run_id, handler) == ["resolved", "reject"]
    run_id = await begin(broker, handler, thread="b")
    await broker.cancel((await asked(broker, "b")).id)
    assert await enter(broker, run_id, handler) == ["cancelled", "cancel"]


async def test_a_tool_pauses_its_run_and_runs_again_under_the_same_key(broker: AsyncBroker) -> None:
    """No handler of a tool's errors eats it. Off: `Interrupted` as an `Exception`."""
    ran: list[str] = []

    async def book(seat: str) -> Any:
        ran.append(seat)
        try:
            return said(interrupt({"seat": seat}))
        except Exception:  # noqa: BLE001 - what tools do
            return "swallowed"

    @guarded
    async def handler(run: Run[Any]) -> Any:
        return await run.calls([{"id": "c1", "name": "book", "arguments": {"seat": "12A"}}], [book])

    run_id = await begin(broker, handler)
    await respond(broker, "aisle")
    (message,) = await enter(broker, run_id, handler)
    assert message["content"] == "aisle"
    assert ran == ["12A", "12A"]


async def test_a_gated_sibling_is_asked_first_and_nothing_is_lost(broker: AsyncBroker) -> None:
    async def book() -> Any:
        return said(interrupt("which?"))

    @gated
    async def pay() -> str:
        return "paid"

    @guarded
    async def handler(run: Run[Any]) -> Any:
        calls: list[Any] = [{"id": name, "name": name, "arguments": {}} for name in ("book", "pay")]
        return [one["content"] for one in await run.calls(calls, [book, pay])]

    run_id = await begin(broker, handler)
    assert (await asked(broker)).interrupt.call_id == "pay"
    await broker.inbox.answer((await asked(broker)).id, Approve())
    assert await enter(broker, run_id, handler) is PAUSED
    await respond(broker, "12A")
    assert await enter(broker, run_id, handler) == ["12A", "paid"]


async def test_tasks_of_a_group_pause_together(broker: AsyncBroker) -> None:
    """One suspension of two questions. Off: `_leaves` without groups."""

    async def ask(what: str) -> Any:
        return said(interrupt(what))

    @guarded
    async def handler(_: Run[Any]) -> Any:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(what)) for what in ("a", "b", "a")]
        return [task.result() for task in tasks]

    await begin(broker, handler)
    found = await entelix.open_interrupts(broker, "th_2")
    assert [one.interrupt.payload for one in found] == ["a", "b"]
    assert {one.seq for one in found} == {1}


async def test_a_handler_may_have_several_guards(broker: AsyncBroker) -> None:
    """One after the other and one in another. Off: `_known`."""

    @guarded
    async def handler(run: Run[Any]) -> Any:
        async with guard(run):
            first = said(interrupt("more?"))
        async with guard(run), guard(run):
            return [first, said(interrupt("more?"))]

    run_id = await begin(broker, handler)
    await respond(broker, 1)
    assert await enter(broker, run_id, handler) is PAUSED
    await respond(broker, 2)
    assert await enter(broker, run_id, handler) == [1, 2]


async def test_an_error_that_is_no_pause_goes_through(broker: AsyncBroker) -> None:
    @guarded
    async def handler(_: Run[Any]) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails(interrupt))
            group.create_task(fails(int))

    async def fails(function: Callable[[Any], Any]) -> Any:
        return function("x")

    started = await broker.start("support", session="th_2")
    with pytest.raises(BaseExceptionGroup):
        await enter(broker, started.run_id, handler)
    assert await entelix.open_interrupts(broker, "th_2") == ()


async def test_without_a_guard_it_only_raises() -> None:
    with pytest.raises(entelix.Interrupted) as raised:
        interrupt({"a": 1}, ScheduledPause(phase=Phase.BEFORE, node="x"))
    assert raised.value == entelix.Interrupted(ScheduledPause(phase=Phase.BEFORE, node="x"), {"a": 1})


async def test_questions_carry_what_the_guard_says_and_the_pause_its_state(broker: AsyncBroker) -> None:
    async def handler(run: Run[Any]) -> Any:
        frozen = InterruptState(system_prompt="Be careful.")
        async with guard(run, state=lambda: frozen, reviewers=("ops",), message="Which seat?"):
            return said(interrupt("seat"))

    run_id = await begin(broker, handler)
    record = await asked(broker)
    assert (record.interrupt.reviewers, record.interrupt.message) == (("ops",), "Which seat?")
    state = await broker.runs.state(run_id)
    assert state is not None
    assert state.system_prompt == "Be careful."
    await respond(broker, "12A")
    assert await enter(broker, run_id, handler) == "12A"


async def test_plain_handlers_of_a_worker_have_the_same_guard(
    broker: AsyncBroker, serve: Callable[..., Worker]
) -> None:
    @guarded
    def handler(run: BlockingRun[int]) -> list[Any]:
        assert isinstance(run, BlockingRun)
        return [run.input, said(interrupt("more?")), said(interrupt("more?"))]

    serve(support=handler)
    started = await broker.start("support", 7, session="th_2")
    for seq in (1, 2):
        await run_when(broker, started.run_id, RunState.WAITING)
        found = await asked(broker)
        assert found.seq == seq
        await respond(broker, seq)
        await broker.inbox.wait(found.id, 5)
    assert (await ended(broker, started.run_id)).result == [7, 1, 2]


async def test_without_a_guard_a_worker_counts_it_as_a_failure(
    broker: AsyncBroker, serve: Callable[..., Worker]
) -> None:
    async def handler(_: Run[Any]) -> Any:
        interrupt("lost?")

    serve(support=handler)
    run = await ended(broker, (await broker.start("support", session="th_2")).run_id)
    assert run.state is RunState.DEAD
    assert "Interrupted" in run.errors[0]


# Threads that no worker holds ------------------------------------------------------------------------------------


async def dispatch(broker: AsyncBroker, thread: str | None, key: str | None = "k") -> entelix.AsyncGuard:
    """A host that runs its agent by itself, until it pauses."""
    async with guard(entelix.Thread(broker=broker, agent="support", session=thread, key=key)) as paused:
        interrupt(
            {"run_id": "", "tool_use_id": "tu_81", "tool": "pay", "input": {"n": 1}},
            ApprovalPending(tool_use_id="tu_81"),
        )
    return paused


async def test_a_thread_is_suspended_and_a_worker_goes_on(broker: AsyncBroker) -> None:
    paused = (await dispatch(broker, "th_2")).suspended
    assert paused is not None
    record = await asked(broker)
    assert paused.interrupt_ids == (record.id,)
    assert record.interrupt.action is not None
    assert (record.interrupt.action.tool, record.interrupt.call_id) == ("pay", "tu_81")
    await broker.inbox.answer(record.id, Approve())
    async with broker.take(paused.run_id) as run:
        assert run.resolution("tu_81").answer == Approve()
        await run.finish()


@pytest.mark.row("E10")
async def test_E10_asking_twice_opens_one_interrupt(broker: AsyncBroker, connect: Connect) -> None:
    """From two processes. Off: no `key`."""
    other = await connect(by=ADA)
    first, second = await dispatch(broker, "th_2"), await dispatch(other, "th_2")
    assert first.suspended is not None
    assert isinstance(second.suspended, Replayed)
    assert first.suspended.interrupt_ids == second.suspended.interrupt_ids
    assert len(await entelix.open_interrupts(other, "th_2")) == 1
    await broker.inbox.answer(first.suspended.interrupt_ids[0], Approve())
    third = (await dispatch(other, "th_2")).suspended
    assert isinstance(third, Replayed)
    (found,) = third.interrupt_ids
    assert entelix.decision_of(await other.inbox.get(found)) == Approve()


@pytest.mark.parametrize("thread", [None, ""])
async def test_a_pause_that_could_never_be_resumed_is_refused(
    broker: AsyncBroker, thread: str | None
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await dispatch(broker, thread)
    assert refused.value.field == "session"
    assert isinstance(refused.value.__context__, entelix.Interrupted)
    assert (await broker.inbox.list()).items == ()


async def test_a_thread_without_a_pause_just_runs(broker: AsyncBroker) -> None:
    async with guard(entelix.Thread(broker=broker, agent="support", session=None)) as paused:
        pass
    assert paused.suspended is None


def test_the_blocking_broker_has_the_same_guard(server: RunningServer, namespace: str) -> None:
    with Broker(server.url, namespace=namespace, by=ADA) as broker:
        place = entelix.Thread(broker=broker, agent="support", session="th_2")
        with guard(place) as paused:
            interrupt("seat?")
        assert paused.suspended is not None
        (found,) = paused.suspended.interrupt_ids
        assert broker.inbox.get(found).state is Settlement.OPEN
        with pytest.raises(KeyError), guard(place):
            raise KeyError
