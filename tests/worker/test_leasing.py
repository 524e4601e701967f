"""What a worker takes, and how it calls its handlers."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from broker import AsyncBroker, BlockingRun, Cancel, Interrupt, InterruptState, Reject, Run, RunState, Worker
from broker._async.ready import Leases
from broker.store.commands.runs import Offer, records_of
from broker.store.keys import Pool
from broker.testing import await_until

from .fleet import ended, run_when

Serve = Callable[..., Worker]


class Question(BaseModel):
    text: str
    times: int = 1


async def done(run: Run[Any]) -> str:
    return run.agent


def test_a_thousand_workers_of_a_process_have_a_name_each() -> None:
    """Off: fewer than ten characters of chance in a name: two workers then read the bells as one."""
    names = {Worker("redis://127.0.0.1:1", namespace="airline").name for _ in range(1000)}
    assert len(names) == 1000


async def test_only_registered_agents_are_leased(broker: AsyncBroker, serve: Serve) -> None:
    theirs = await broker.start("other", session="s")
    elsewhere = await broker.start("support", session="s", queue="slow")
    mine = await broker.start("support", session="s")
    serve(support=done)
    assert (await ended(broker, mine.run_id)).result == "support"
    for left in (theirs, elsewhere):
        run = await broker.runs.get(left.run_id)
        assert (run.state, run.fence) == (RunState.READY, 0)


async def test_a_pinned_run_is_for_its_build(broker: AsyncBroker, serve: Serve) -> None:
    serve(support=done, options={"build": "v1", "name": "w-1"})
    old, new, free = [await broker.start("support", session="s", build=build) for build in ("v1", "v2", None)]
    assert (await ended(broker, old.run_id)).holder == "w-1"
    assert (await ended(broker, free.run_id)).holder == "w-1"
    assert (await broker.runs.get(new.run_id)).state is RunState.READY
    serve(support=done, options={"build": "v2", "name": "w-2"})
    assert (await ended(broker, new.run_id)).holder == "w-2"


async def test_P5_runs_may_end_while_their_worker_says_that_it_is_full(
    broker: AsyncBroker, serve: Serve
) -> None:
    """It is woken for both agents at once and has room for one, which ends soon. Off: the second look at the room."""
    serve(one=done, two=done, options={"concurrency": 1})
    for _ in range(100):
        both = await asyncio.gather(*(broker.start(agent, session="s") for agent in ("one", "two")))
        for run in both:
            assert (await ended(broker, run.run_id)).state is RunState.FINISHED


async def test_no_more_runs_than_its_concurrency(broker: AsyncBroker, serve: Serve) -> None:
    running, most = 0, 0
    let_go = asyncio.Event()

    async def support(_: Run[Any]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await let_go.wait()
        running -= 1

    serve(support=support, options={"concurrency": 3})
    ids = [(await broker.start("support", session=f"s{n}")).run_id for n in range(10)]
    await await_until(lambda: running == 3)
    assert len(await broker.runs.ready("agents")) == 7
    let_go.set()
    for one in ids:
        await ended(broker, one)
    assert most == 3


async def test_a_worker_says_what_it_is(broker: AsyncBroker, serve: Serve) -> None:
    serve(support=done, options={"name": "w-1", "build": "v1", "concurrency": 7})
    (told,) = await await_until(lambda: workers(broker))
    assert (told.name, told.queue, told.agents, told.build, told.concurrency, told.alive) == (
        "w-1", "agents", ("support",), "v1", 7, True,
    )  # fmt: skip


async def workers(broker: AsyncBroker) -> tuple[Any, ...]:
    return (await broker.fleet()).workers


async def test_the_input_has_the_type_that_the_handler_names(broker: AsyncBroker, serve: Serve) -> None:
    got: list[Question] = []

    async def support(run: Run[Question]) -> str:
        question: Question = run.input
        got.append(question)
        return question.text * question.times

    serve(support=support)
    started = await broker.start("support", Question(text="ha", times=2), session="s")
    assert (await ended(broker, started.run_id)).result == "haha"
    assert got == [Question(text="ha", times=2)]
    wrong = await broker.start("support", {"text": 7}, session="s")
    run = await ended(broker, wrong.run_id)
    assert run.state is RunState.DEAD
    assert "input.text" in run.errors[-1]


async def test_plain_handlers_run_in_threads_and_block_there(broker: AsyncBroker, serve: Serve) -> None:
    together = threading.Barrier(12, timeout=20)

    def support(run: BlockingRun[Question]) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        if run.seq == 0:
            together.wait()  # all at once: more than a loop's own threads
            return run.suspend(Interrupt.question(run.input.text))
        return run.resolutions[0].kind

    serve(support=support, options={"concurrency": 12})
    ids = [
        (await broker.start("support", Question(text="why?"), session=f"s{n}")).run_id or ""
        for n in range(12)
    ]
    for one in ids:
        paused = await run_when(broker, one, RunState.WAITING)
        assert (await broker.inbox.answer(paused.interrupt_ids[0], Reject(reason="no"))).ok
    for one in ids:
        assert (await ended(broker, one)).result == "reject"


async def test_handlers_of_every_shape(broker: AsyncBroker, serve: Serve) -> None:
    class Handler:
        async def __call__(self, run: Run[Any]) -> str:
            return f"object {run.agent}"

    def stops(_: Any) -> None:
        raise StopIteration

    serve(plain=lambda run: f"plain {run.agent}", object=Handler(), stops=stops)
    ids = {name: (await broker.start(name, session="s")).run_id for name in ("plain", "object", "stops")}
    assert (await ended(broker, ids["plain"])).result == "plain plain"
    assert (await ended(broker, ids["object"])).result == "object object"
    assert "RuntimeError" in (await ended(broker, ids["stops"])).errors[0]


async def test_runs_are_taken_by_priority(broker: AsyncBroker, serve: Serve) -> None:
    order: list[int] = []

    async def support(run: Run[int]) -> None:
        order.append(run.input)

    ids = [
        (await broker.start("support", priority, session="s", priority=priority)).run_id
        for priority in (0, 5, -5, 7)
    ]
    serve(support=support, options={"concurrency": 1})
    for one in ids:
        await ended(broker, one)
    assert order == [7, 5, 0, -5]


@pytest.mark.parametrize("partitions", [3])
async def test_every_partition_gets_its_turn(
    partitions: int, serve: Serve, server: Any, namespace: str
) -> None:
    async with AsyncBroker(server.url, namespace=namespace, partitions=partitions) as broker:
        serve(support=done, options={"concurrency": 2})
        ids = [(await broker.start("support", session=f"s{n}")).run_id for n in range(20)]
        for one in ids:
            assert (await ended(broker, one)).state is RunState.FINISHED


async def test_what_was_read_ahead_of_another_pause_is_not_gone_on_from(broker: AsyncBroker) -> None:
    """Off: `is_still`, when what was read for a run as it was before counts for the run as it is."""

    def state(prompt: str) -> InterruptState:
        return InterruptState(system_prompt=prompt)

    paused = await broker.suspend("a", Interrupt(), session="s", state=state("first"))
    await broker.inbox.answer(paused.interrupt_ids[0], Cancel())
    link = broker._link
    p, pool = link.space.partition(0), Pool("agents", "a", "")
    before = Offer(paused.run_id, pool, (await link.fetch(records_of(p, [paused.run_id])))[paused.run_id])
    (leased,) = await Leases(link)._try(p, [before], "one")
    assert leased.ahead is not None
    run: Run[Any] = Run(link, leased)
    await run.load()
    again = await run.suspend(Interrupt(), state=state("second"))
    await broker.inbox.answer(again.interrupt_ids[0], Cancel())
    (leased,) = await Leases(link)._try(p, [before], "two")
    assert leased.ahead is None
    run = Run(link, leased)
    await run.load()
    assert run.state is not None
    assert run.state.system_prompt == "second"
