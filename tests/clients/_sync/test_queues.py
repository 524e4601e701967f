# Generated from tests/clients/_async/test_queues.py by tests/tools/unasync.py (make sync): do not edit.
import pytest
import redis

from broker import Accepted, Broker, Conflict, InvalidInput, Replayed, RunState, UnknownId
from broker.store.keys import Keyspace, Pool
from broker.testing import RunningServer
from tests.clients.asking import ADA
from tests.records import fields


def dead_run(broker: Broker, session: str = "s") -> str:
    started = broker.start("support", {"n": 1}, session=session)
    with broker.take(started.run_id) as run:
        run.fail("Hopeless", "no way", final=True)
    return run.id


def test_a_queue_counts_and_leases(broker: Broker) -> None:
    for agent, build in (("a", None), ("a", "v2"), ("b", None), ("a", None)):
        broker.start(agent, session="s", build=build)
    queue = broker.queue("agents")
    assert queue.counts() == {
        Pool("agents", "a"): 2, Pool("agents", "a", "v2"): 1, Pool("agents", "b"): 1,
    }  # fmt: skip
    mine = queue.lease(("a",), limit=5, holder="me")
    assert [run.agent for run in mine] == ["a", "a"]
    (pinned,) = queue.lease(("a", "c"), limit=5, build="v2")
    assert pinned.build == "v2"
    assert queue.lease(("a",), limit=5, build="v2") == ()
    assert [run.agent for run in queue.lease(("a", "b"))] == ["b"]
    for run in mine:
        run.finish()


def test_what_a_queue_cannot_take_is_named(broker: Broker) -> None:
    with pytest.raises(InvalidInput):
        broker.queue("a b")
    for given in ({"agents": ("a b",)}, {"agents": ("a",), "limit": 0}, {"agents": ("a",), "limit": 65}):
        with pytest.raises(InvalidInput):
            broker.queue("agents").lease(**given)


def test_no_agent_waits_behind_another_ones_backlog(broker: Broker) -> None:
    for agent in ("a", "a", "b", "a"):
        broker.start(agent, session="s")
    taken = broker.queue("agents").lease(("a", "b"), limit=3)
    assert [run.agent for run in taken] == ["a", "a", "b"]


def test_what_cannot_be_read_holds_up_nobody(broker: Broker, server: RunningServer, namespace: str) -> None:
    ids = [(broker.start("a", {"n": n}, session="s")).run_id for n in range(4)]
    p = Keyspace(namespace, 1).partition(0)
    with redis.Redis.from_url(server.url) as client:
        client.delete(p.key("run", ids[0]))
        client.delete(p.key("run", ids[1]))
        client.set(p.key("run", ids[1]), "foreign")
        client.set(p.key("input", ids[2]), b"\x01\x00broken")
    queue = broker.queue("agents")
    assert queue.lease(("a",)) == ()  # it took the one whose input is broken: that attempt has failed
    (run,) = queue.lease(("a",))
    assert run.input == {"n": 3}
    failed = broker.runs.get(run.id)
    assert failed.tries == 1
    with redis.Redis.from_url(server.url) as client:
        assert fields(client.get(p.key("run", ids[2])))["state"] == b"ready"  # failed once, and comes back


def test_a_dead_run_is_seen_and_sent_back(broker: Broker) -> None:
    run_id = dead_run(broker)
    (dead,) = broker.dead.list()
    assert (dead.id, dead.state, dead.input) == (run_id, RunState.DEAD, {"n": 1})
    assert "Hopeless: no way" in dead.errors[0]
    assert isinstance(broker.dead.requeue(run_id, fence=9), Conflict)
    assert isinstance(broker.dead.requeue(run_id, fence=1, by=ADA), Accepted)
    assert isinstance(broker.dead.requeue(run_id, fence=1, by=ADA), Replayed)
    assert broker.dead.list() == ()
    with broker.take(run_id) as run:
        assert (run.fence, run.attempt) == (2, 1)
        run.finish()
    assert isinstance(broker.dead.requeue(run_id), Conflict)
    with pytest.raises(UnknownId):
        broker.dead.requeue("run_" + "0" * 30)


def test_a_dead_run_is_sent_to_another_queue(broker: Broker) -> None:
    run_id = dead_run(broker)
    assert isinstance(broker.dead.requeue(run_id, queue="slow"), Accepted)
    assert broker.runs.ready("slow") == (run_id,)


def test_the_dead_are_listed_even_where_they_cannot_be_read(
    broker: Broker, server: RunningServer, namespace: str
) -> None:
    first, second = dead_run(broker, "s1"), dead_run(broker, "s2")
    with redis.Redis.from_url(server.url) as client:
        client.set(Keyspace(namespace, 1).partition(0).key("input", first), b"\x01\x00broken")
    found = broker.dead.list()
    assert [run.id for run in found] == [first, second]
    assert found[0].input is None
    assert any("input" in error for error in found[0].errors)
    with pytest.raises(InvalidInput):
        broker.dead.list(limit=0)
