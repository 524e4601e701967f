"""What happened, from a cursor on: `broker.events`."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import pytest
import redis

from broker import Action, Approve, AsyncBroker, Broker, Interrupt, InvalidInput, Principal
from broker.core.events import BEGINNING, Event
from broker.testing import RunningServer, await_until

ADA = Principal(id="ada")
ACTION = Action(tool="refund", arguments={"amount": 4711})


async def ask(broker: AsyncBroker, session: str = "s", **rest: object) -> str:
    asked = Interrupt.approval(ACTION, "call-1", labels=("money",), **rest)
    return (await broker.suspend("airline", asked, session=session)).interrupt_ids[0]


async def take(events: AsyncGenerator[Event, None], count: int) -> list[Event]:
    found: list[Event] = []
    async with asyncio.timeout(20):
        async for event in events:
            found.append(event)
            if len(found) == count:
                break
    return found


async def connections(broker: AsyncBroker) -> int:
    """How many connections of the server wait for entries of a stream."""
    rows = await broker._link.client.execute_command("CLIENT", "LIST")
    text = rows.decode() if isinstance(rows, bytes) else str(rows)
    return text.count("cmd=xread")


@contextlib.asynccontextmanager
async def followed(broker: AsyncBroker, **how: object) -> AsyncIterator[AsyncGenerator[Event, None]]:
    events = broker.events.follow(**how)  # type: ignore[arg-type]
    async with aclosing(events):
        yield events


async def test_what_happens_is_told_without_arguments(broker: AsyncBroker) -> None:
    one = await ask(broker)
    await broker.inbox.answer(one, Approve(), by=ADA)
    async with followed(broker, after=BEGINNING) as events:
        opened, settled = await take(events, 2)
    assert (opened.type, opened.interrupt_id, opened.state) == ("interrupt.opened", one, "open")
    assert (opened.tool, opened.kind, opened.labels, opened.agent) == (
        "refund", "approval_pending", ("money",), "airline",
    )  # fmt: skip
    assert (settled.type, settled.interrupt_id, settled.state) == ("interrupt.settled", one, "resolved")
    assert (settled.answer, settled.by, settled.session_id) == ("approve", ADA, "s")
    assert opened.at <= settled.at
    assert "4711" not in str(opened.to_json()) + str(settled.to_json())


async def test_it_goes_on_after_a_cursor_of_any_event(broker: AsyncBroker) -> None:
    ids = [await ask(broker, f"s{n}") for n in range(6)]
    async with followed(broker, after=BEGINNING) as events:
        told = await take(events, 6)
    assert sorted(one.interrupt_id or "" for one in told) == sorted(ids)
    for n, event in enumerate(told[:-1]):
        async with followed(broker, after=event.cursor) as events:
            rest = await take(events, 5 - n)
        assert [one.id for one in rest] == [one.id for one in told[n + 1 :]]


async def test_from_now_on_and_by_filter(broker: AsyncBroker) -> None:
    await ask(broker, "before")
    following = broker.events.following(session="mine", types=["interrupt.opened"])
    await following.open()
    await ask(broker, "other")
    mine = await ask(broker, "mine")
    found: list[Event] = []

    async def came() -> bool:
        found.extend(await following.next(0.2))
        return bool(found)

    await await_until(came)
    await broker.inbox.answer(mine, Approve(), by=ADA)
    assert [one.interrupt_id for one in found] == [mine]
    assert not await following.next(0.3)  # the answer is no opening
    await following.leave()
    # The cursor has passed what was not wanted.
    async with followed(broker, after=following.cursor) as events:
        later = await ask(broker, "later")
        assert [one.interrupt_id for one in await take(events, 1)] == [later]


async def test_all_followers_of_a_process_share_one_connection(broker: AsyncBroker) -> None:
    following = [broker.events.following() for _ in range(50)]
    for one in following:
        await one.open()
    waiting = [asyncio.create_task(one.next(20)) for one in following]
    await await_until(lambda: connections(broker))
    assert await connections(broker) == 1
    made = await ask(broker)
    told = await asyncio.gather(*waiting)
    assert {event.interrupt_id for events in told for event in events} == {made}
    assert all(len(events) == 1 for events in told)
    for one in following:
        await one.leave()

    async def quiet() -> bool:
        return await connections(broker) == 0

    await await_until(quiet)


async def test_P9_who_falls_behind_is_told_of_the_gap(broker: AsyncBroker, server: RunningServer) -> None:
    """P9: what was trimmed before it was read is told as a gap with its number, and nothing else is lost."""
    start = await broker.events.cursor()
    ids = [await ask(broker, f"s{n}") for n in range(5)]
    name = broker._link.space.partition(0).key("interrupts")
    with redis.Redis.from_url(server.url) as client:
        client.xtrim(name, maxlen=2, approximate=False)
    async with followed(broker, after=start) as events:
        gap, *rest = await take(events, 3)
    assert (gap.type, gap.missed) == ("gap", 3)
    assert [one.interrupt_id for one in rest] == ids[3:]
    async with followed(broker, after=gap.cursor) as events:
        assert [one.type for one in await take(events, 2)] == ["interrupt.opened"] * 2


async def test_P9_a_trimmed_stream_is_no_gap_where_all_was_read(
    broker: AsyncBroker, server: RunningServer
) -> None:
    await ask(broker, "one")
    async with followed(broker, after=BEGINNING) as events:
        (last,) = await take(events, 1)
    name = broker._link.space.partition(0).key("interrupts")
    with redis.Redis.from_url(server.url) as client:
        client.xtrim(name, maxlen=0, approximate=False)
    two = await ask(broker, "two")
    async with followed(broker, after=last.cursor) as events:
        assert [one.interrupt_id for one in await take(events, 1)] == [two]


async def test_P9_a_lost_stream_is_a_gap(broker: AsyncBroker, server: RunningServer) -> None:
    await ask(broker, "one")
    last = await broker.events.cursor()
    with redis.Redis.from_url(server.url) as client:
        client.delete(broker._link.space.partition(0).key("interrupts"))
    async with followed(broker, after=last) as events:
        (gap,) = await take(events, 1)
        two = await ask(broker, "two")
        (opened,) = await take(events, 1)
    assert (gap.type, gap.missed) == ("gap", None)
    assert opened.interrupt_id == two


async def test_a_follower_that_does_not_keep_up_loses_nothing(
    broker: AsyncBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker._async._fan.MOST_WAITING", 5)
    following = broker.events.following()
    other = broker.events.following()
    await following.open()
    await other.open()
    await following.next(0.01)
    await other.next(0.01)
    ids = [await ask(broker, f"s{n}") for n in range(20)]
    seat = following._seat
    assert seat is not None
    await await_until(lambda: seat.is_over)
    found: list[str | None] = []

    async def all_came() -> bool:
        found.extend(one.interrupt_id for one in await following.next(0.2))
        return len(found) >= len(ids)

    await await_until(all_came)
    assert found == ids
    await following.leave()
    await other.leave()


async def test_over_all_partitions(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace, partitions=16) as broker:
        start = await broker.events.cursor()
        ids = [await ask(broker, f"s{n}") for n in range(40)]
        async with followed(broker, after=start) as events:
            told = await take(events, 40)
        assert sorted(one.interrupt_id or "" for one in told) == sorted(ids)
        async with followed(broker, after=told[17].cursor) as events:
            assert [one.id for one in await take(events, 22)] == [one.id for one in told[18:]]


@pytest.mark.parametrize(
    "cursor", ["", "1", "c", "c0.0.0", "c0.0.0_0.0.0_0.0.0", "cx.0.0_0.0.0", "c-1.0.0_0.0.0"]
)
async def test_P12_a_cursor_of_nobody_is_refused(broker: AsyncBroker, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="after"):
        await broker.events.following(after=cursor).open()


async def test_named_cursors(broker: AsyncBroker) -> None:
    assert await broker.events.position("mail") is None
    cursor = await broker.events.cursor()
    await broker.events.keep("mail", cursor)
    assert await broker.events.position("mail") == cursor
    await broker.events.drop("mail")
    assert await broker.events.position("mail") is None


async def test_the_blocking_twin(server: RunningServer, namespace: str) -> None:
    def work() -> tuple[str, list[Event]]:
        with Broker(server.url, namespace=namespace) as broker:
            start = broker.events.cursor()
            asked = Interrupt.approval(ACTION, "call-1")
            one = broker.suspend("airline", asked, session="s").interrupt_ids[0]
            broker.inbox.answer(one, Approve(), by=ADA)
            events = broker.events.follow(after=start)
            found = [next(events), next(events)]
            events.close()
            return one, found

    one, found = await asyncio.to_thread(work)
    assert [(event.interrupt_id, event.type) for event in found] == [
        (one, "interrupt.opened"), (one, "interrupt.settled"),
    ]  # fmt: skip
