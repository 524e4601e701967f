from contextlib import aclosing

import pytest
import redis

from broker import Approve, AsyncBroker, Delivery, InvalidInput
from broker.store.keys import Keyspace
from broker.testing import RunningServer
from tests.clients.asking import refund, render


async def first(broker: AsyncBroker, group: str, count: int) -> list[Delivery]:
    """The first deliveries of a group, each acknowledged."""
    found: list[Delivery] = []
    async with aclosing(broker.inbox.follow(group)) as deliveries:
        async for delivery in deliveries:
            found.append(delivery)
            if len(found) > count:
                break
            if len(found) == count:
                await broker.suspend("support", refund(), render(), session=f"last-{group}")
    return found[:count]


async def test_each_group_gets_what_is_for_it(broker: AsyncBroker) -> None:
    paused = await broker.suspend("support", refund(), render(), session="s")
    for group, wanted in (("approvals", paused.interrupt_ids[:1]), ("completions", paused.interrupt_ids[1:])):
        found = await first(broker, group, 1)
        assert [one.record.id for one in found] == list(wanted)


async def test_a_group_of_ones_own_gets_everything(broker: AsyncBroker) -> None:
    paused = await broker.suspend("support", refund(), render(), session="s")
    found = await first(broker, "notifier", 2)
    assert [one.record.id for one in found] == list(paused.interrupt_ids)
    assert paused.interrupt_ids[0] in repr(found[0])


async def test_what_is_settled_is_not_delivered(broker: AsyncBroker) -> None:
    old = await broker.suspend("support", refund(call="a"), session="s1")
    await broker.inbox.answer(old.interrupt_ids[0], Approve())
    new = await broker.suspend("support", refund(call="b"), session="s2")
    found = await first(broker, "approvals", 1)
    assert [one.record.id for one in found] == list(new.interrupt_ids)


async def test_who_leaves_in_the_middle_leaves_it_to_another(broker: AsyncBroker) -> None:
    paused = await broker.suspend("support", refund(), session="s")
    for consumer in ("one", "one"):  # not acknowledged, so it is the same one's after a restart
        async with aclosing(broker.inbox.follow("approvals", consumer=consumer)) as deliveries:
            async for delivery in deliveries:
                assert delivery.record.id == paused.interrupt_ids[0]
                break


async def test_a_reader_that_is_done_leaves_no_name(
    broker: AsyncBroker, server: RunningServer, namespace: str
) -> None:
    await broker.suspend("support", refund(), session="s")
    stream = Keyspace(namespace, 1).partition(0).key("interrupts")
    async with aclosing(broker.inbox.follow("approvals", batch=1)) as deliveries:
        async for delivery in deliveries:
            await broker.inbox.answer(delivery.record.id, Approve())
            break
    with redis.Redis.from_url(server.url) as client:
        (owing,) = client.xinfo_consumers(stream, "approvals")
        assert owing["pending"] == 1  # it left in the middle: its name keeps what it owes
        client.xgroup_delconsumer(stream, "approvals", owing["name"])
    await broker.suspend("support", refund(), session="s2")
    assert len(await first(broker, "approvals", 1)) == 1
    with redis.Redis.from_url(server.url) as client:
        assert [row["pending"] for row in client.xinfo_consumers(stream, "approvals")] in ([], [1])


async def test_what_a_follower_cannot_take_is_named(broker: AsyncBroker) -> None:
    for given in ({"group": "a b"}, {"consumer": ""}):
        with pytest.raises(InvalidInput):
            broker.inbox.follow(**given)  # type: ignore[arg-type]
