"""What a call costs the server does not hang on how much else there is: pages, claims, answers, waits, large states."""

import asyncio
import os
import statistics
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from broker import Approve, AsyncBroker, InterruptState, Settlement, Suspension
from broker.testing import ServerProcess, await_until
from tests.clients.asking import ADA, refund
from tests.reports.counting import Work
from tests.worker.fleet import QUICK


@pytest.fixture
async def own(own_server: ServerProcess) -> AsyncGenerator[AsyncBroker]:
    """A broker on a server of the test's own, with nobody else on it."""
    async with AsyncBroker(own_server.url, settings=QUICK, by=ADA) as broker:
        yield broker


async def ask(broker: AsyncBroker, first: int, last: int, queue: str = "agents") -> list[str]:
    """Opens so many questions, each of a session of its own."""
    asked = []
    for start in range(first, last, 200):
        told = await broker.batch.suspend(
            [
                Suspension(agent="a", session=f"s{n:06}", interrupts=[refund(n % 10)], queue=queue)
                for n in range(start, min(start + 200, last))
            ]
        )
        assert all(one.ok for one in told)
        asked += [one for outcome in told for one in getattr(outcome, "interrupt_ids", ())]
    return asked


@pytest.mark.report("RA45", "RA47")
async def test_RA45_RA47_a_page_costs_the_same_however_much_is_open(
    own: AsyncBroker, own_server: ServerProcess
) -> None:
    """The first one, and one far behind. Off: a page without its LIMIT (`reads.page_of_open`), or one by offset."""
    works: list[Work] = []

    async def look(cursor: str | None) -> str | None:
        before = Work.of(own_server)
        page = await own.inbox.list(limit=20, cursor=cursor)
        assert len(page.items) == 20
        works.append(Work.of(own_server).since(before))
        return page.cursor

    await ask(own, 0, 60)
    await look(None)
    asked = await ask(own, 60, 3000)
    await look(None)
    middle = await own.inbox.list(limit=500)
    for _ in range(4):
        middle = await own.inbox.list(limit=500, cursor=middle.cursor)
    await look(middle.cursor)
    few, many, far = works
    assert few.commands == many.commands == far.commands
    for work in (many, far):
        assert work.sent == pytest.approx(few.sent, rel=0.1)
    seen, cursor = list[str](), None
    while True:
        page = await own.inbox.list(limit=500, cursor=cursor)
        seen += [one.id for one in page.items]
        if (cursor := page.cursor) is None:
            break
    assert seen[60:] == asked
    assert len(set(seen)) == 3000


@pytest.mark.report("RA46")
async def test_RA46_to_take_and_to_answer_cost_the_same_among_many_queues(
    own: AsyncBroker, own_server: ServerProcess
) -> None:
    """Off: a look at every pool before a lease (`Queue.lease`), or at every list before an answer."""

    async def costs(session: str) -> tuple[Work, Work]:
        paused = await own.suspend("a", refund(), session=session)
        start = Work.of(own_server)
        assert (await own.inbox.answer(paused.interrupt_ids[0], Approve())).ok
        middle = Work.of(own_server)
        (run,) = await own.queue("agents").lease(("a",))
        end = Work.of(own_server)
        await run.finish()
        return middle.since(start), end.since(middle)

    await costs("warm")
    few = await costs("few")
    for n in range(300):
        await own.start("a", session=f"other-{n}", queue=f"q-{n}")
        if n % 3 == 0:
            await ask(own, n, n + 1, queue=f"q-{n}")
    many = await costs("many")
    assert [one.commands for one in few] == [one.commands for one in many]
    for less, more in zip(few, many, strict=True):
        assert more.sent == pytest.approx(less.sent, abs=200)


@asynccontextmanager
async def waiting(
    broker: AsyncBroker, server: ServerProcess, ids: list[str]
) -> AsyncGenerator[dict[str, float]]:
    """A task for each of these questions that waits for its end, and when each was told."""
    told: dict[str, float] = {}

    async def wait(one: str) -> None:
        assert (await broker.inbox.wait(one)).state is Settlement.RESOLVED
        told[one] = time.monotonic()

    tasks = [asyncio.create_task(wait(one)) for one in ids]

    def subscribed() -> bool:
        channels = server.call("PUBSUB", "CHANNELS", "*:settled:*")
        return isinstance(channels, list) and len(channels) == len(ids)

    await await_until(subscribed, 30, what="all of them wait")
    # They have looked once behind that, and rest: the last one to look has had its answer then.
    await await_until(lambda: _rests(server), 30, what="they have looked")
    yield told
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _rests(server: ServerProcess) -> bool:
    """Whether the server is asked for nothing for a moment."""
    before = Work.of(server).commands["get"]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 0.3)
    return Work.of(server).commands["get"] == before


@pytest.mark.report("RA16")
async def test_RA16_whoever_waits_is_told_soon_and_alone(own: AsyncBroker, own_server: ServerProcess) -> None:
    """With five hundred waiters an answer costs what it costs with one, and is there within a tenth of a second.

    Off: one channel for all ends (`settled` without its id), by which every waiter looks at every answer.
    """
    (warm, first, *others) = await ask(own, 0, 531)
    assert (await own.inbox.answer(warm, Approve())).ok  # the server knows the script
    async with AsyncBroker(own_server.url, settings=QUICK) as waiter:
        async with waiting(waiter, own_server, [first]) as told:
            alone = await answered(own, own_server, first, told)
        async with waiting(waiter, own_server, others) as told:
            among = await answered(own, own_server, others[0], told)
            assert among.commands == alone.commands
            late = []
            for one in others[1:31]:
                began = time.monotonic()
                await answered(own, own_server, one, told)
                late.append(told[one] - began)
    assert statistics.median(late) < 0.1


async def answered(broker: AsyncBroker, server: ServerProcess, one: str, told: dict[str, float]) -> Work:
    """What the server did from an answer until its waiter was told."""
    before = Work.of(server)
    assert (await broker.inbox.answer(one, Approve())).ok
    await await_until(lambda: one in told)
    return Work.of(server).since(before)


@pytest.mark.report("RA51")
@pytest.mark.parametrize("end", ["cancel", "withdraw", "answer"])
async def test_RA51_a_run_is_ended_without_its_large_state(
    own: AsyncBroker, own_server: ServerProcess, end: str
) -> None:
    """Off: a state that lies in the record of its run, which every step reads and writes."""

    async def work(state: InterruptState | None, note: str) -> Work:
        paused = await own.suspend("a", refund(payload=note), session=f"s{len(note)}", state=state)
        (one,), before = paused.interrupt_ids, Work.of(own_server)
        match end:
            case "cancel":
                outcome = await own.cancel(one)
            case "withdraw":
                outcome = await own.runs.withdraw(paused.run_id)
            case _:
                outcome = await own.inbox.answer(one, Approve())
        assert outcome.ok
        return Work.of(own_server).since(before)

    await work(None, "")  # the server knows the script
    small = await work(None, "x")
    large = await work(InterruptState(framework="mine", opaque=os.urandom(3_000_000)), "x" * 900_000)
    assert large.commands == small.commands
    assert large.received == pytest.approx(small.received, abs=500)
    assert (
        large.sent < 20_000
    )  # whoever answers reads the question again, which is compressed, and never the state
