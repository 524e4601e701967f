import pytest
import redis

from broker import Accepted, AsyncBroker, Conflict, InvalidInput, Replayed, RunState, UnknownId
from broker.store.keys import Keyspace, Pool
from broker.testing import RunningServer
from tests.clients.asking import ADA
from tests.records import fields


async def dead_run(broker: AsyncBroker, session: str = "s") -> str:
    started = await broker.start("support", {"n": 1}, session=session)
    async with broker.take(started.run_id) as run:
        await run.fail("Hopeless", "no way", final=True)
    return run.id


async def test_a_queue_counts_and_leases(broker: AsyncBroker) -> None:
    for agent, build in (("a", None), ("a", "v2"), ("b", None), ("a", None)):
        await broker.start(agent, session="s", build=build)
    queue = broker.queue("agents")
    assert await queue.counts() == {
        Pool("agents", "a"): 2, Pool("agents", "a", "v2"): 1, Pool("agents", "b"): 1,
    }  # fmt: skip
    mine = await queue.lease(("a",), limit=5, holder="me")
    assert [run.agent for run in mine] == ["a", "a"]
    (pinned,) = await queue.lease(("a", "c"), limit=5, build="v2")
    assert pinned.build == "v2"
    assert await queue.lease(("a",), limit=5, build="v2") == ()
    assert [run.agent for run in await queue.lease(("a", "b"))] == ["b"]
    for run in mine:
        await run.finish()


async def test_what_a_queue_cannot_take_is_named(broker: AsyncBroker) -> None:
    with pytest.raises(InvalidInput):
        broker.queue("a b")
    for given in ({"agents": ("a b",)}, {"agents": ("a",), "limit": 0}, {"agents": ("a",), "limit": 65}):
        with pytest.raises(InvalidInput):
            await broker.queue("agents").lease(**given)


async def test_no_agent_waits_behind_another_ones_backlog(broker: AsyncBroker) -> None:
    for agent in ("a", "a", "b", "a"):
        await broker.start(agent, session="s")
    taken = await broker.queue("agents").lease(("a", "b"), limit=3)
    assert [run.agent for run in taken] == ["a", "a", "b"]


async def test_what_cannot_be_read_holds_up_nobody(
    broker: AsyncBroker, server: RunningServer, namespace: str
) -> None:
    ids = [(await broker.start("a", {"n": n}, session="s")).run_id for n in range(4)]
    p = Keyspace(namespace, 1).partition(0)
    with redis.Redis.from_url(server.url) as client:
        client.delete(p.key("run", ids[0]))
        client.delete(p.key("run", ids[1]))
        client.set(p.key("run", ids[1]), "foreign")
        client.set(p.key("input", ids[2]), b"\x01\x00broken")
    queue = broker.queue("agents")
    assert await queue.lease(("a",)) == ()  # it took the one whose input is broken: that attempt has failed
    (run,) = await queue.lease(("a",))
    assert run.input == {"n": 3}
    failed = await broker.runs.get(run.id)
    assert failed.tries == 1
    with redis.Redis.from_url(server.url) as client:
        assert fields(client.get(p.key("run", ids[2])))["state"] == b"ready"  # failed once, and comes back


async def test_a_dead_run_is_seen_and_sent_back(broker: AsyncBroker) -> None:
    run_id = await dead_run(broker)
    (dead,) = await broker.dead.list()
    assert (dead.id, dead.state, dead.input) == (run_id, RunState.DEAD, {"n": 1})
    assert "Hopeless: no way" in dead.errors[0]
    assert isinstance(await broker.dead.requeue(run_id, fence=9), Conflict)
    assert isinstance(await broker.dead.requeue(run_id, fence=1, by=ADA), Accepted)
    assert isinstance(await broker.dead.requeue(run_id, fence=1, by=ADA), Replayed)
    assert await broker.dead.list() == ()
    async with broker.take(run_id) as run:
        assert (run.fence, run.attempt) == (2, 1)
        await run.finish()
    assert isinstance(await broker.dead.requeue(run_id), Conflict)
    with pytest.raises(UnknownId):
        await broker.dead.requeue("run_" + "0" * 30)


async def test_a_dead_run_is_sent_to_another_queue(broker: AsyncBroker) -> None:
    run_id = await dead_run(broker)
    assert isinstance(await broker.dead.requeue(run_id, queue="slow"), Accepted)
    assert await broker.runs.ready("slow") == (run_id,)


async def test_the_dead_are_listed_even_where_they_cannot_be_read(
    broker: AsyncBroker, server: RunningServer, namespace: str
) -> None:
    first, second = await dead_run(broker, "s1"), await dead_run(broker, "s2")
    with redis.Redis.from_url(server.url) as client:
        client.set(Keyspace(namespace, 1).partition(0).key("input", first), b"\x01\x00broken")
    found = await broker.dead.list()
    assert [run.id for run in found] == [first, second]
    assert found[0].input is None
    assert any("input" in error for error in found[0].errors)
    with pytest.raises(InvalidInput):
        await broker.dead.list(limit=0)
