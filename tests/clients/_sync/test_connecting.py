# Generated from tests/clients/_async/test_connecting.py by tests/tools/unasync.py (make sync): do not edit.
"""Every way to a server, and every server that is refused with a sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
import redis.asyncio

from broker import (
    Broker,
    InvalidInput,
    NotPermitted,
    OutOfMemory,
    Settings,
    Unavailable,
    UnsuitableServer,
    WrongNamespace,
)
from broker.embedded import down
from broker.testing import RunningServer, ServerProcess
from tests.clients.asking import ADA, refund

Start = Callable[..., ServerProcess]


def works(broker: Broker) -> bool:
    """Whether a run can be started and seen, over commands and over the waiting connection."""
    with broker:
        started = broker.start("support", session="s")
        with broker.take(started.run_id) as run:
            run.finish()
        broker.wait(run.id, 5)
    return True


def test_by_a_unix_socket_and_by_tcp(start_server: Start) -> None:
    server = start_server(port=0)
    assert works(Broker(server.url))
    assert works(Broker(f"{server.tcp_url}/0"))


def test_with_a_password(start_server: Start) -> None:
    server = start_server({"requirepass": "s3cret"}, port=0)
    assert works(Broker(server.tcp_url))
    for url in (f"unix://{server.socket}", f"unix://:wrong@{server.socket}"):
        with pytest.raises(NotPermitted) as fault:
            Broker(url).open()
        assert "wrong" not in str(fault.value)


def test_as_a_user_of_the_server(start_server: Start) -> None:
    server = start_server()
    server.call("ACL", "SETUSER", "ann", "on", ">pw", "~{mine:*}:*", "~{mine}:meta", "&{mine:*}:*", "+@all")
    url = f"unix://ann:pw@{server.socket}"
    assert works(Broker(url, namespace="mine"))
    with pytest.raises(NotPermitted):
        Broker(url, namespace="yours").open()
    with pytest.raises(NotPermitted):
        Broker(f"unix://ann:no@{server.socket}", namespace="mine").open()


def test_by_somebodys_client_without_its_habits(start_server: Start) -> None:
    server = start_server({"requirepass": "s3cret"}, port=0)
    for given in (
        redis.Redis.from_url(server.url, decode_responses=True, socket_timeout=0.5, protocol=2),
        redis.asyncio.Redis.from_url(server.tcp_url, decode_responses=True, health_check_interval=1),
    ):
        assert works(Broker(client=given))
        assert "s3cret" not in repr(Broker(client=given))
        pool = Broker(client=given)._link.client.connection_pool
        assert pool.connection_kwargs["retry"]._retries == 0
        assert pool is not given.connection_pool


def test_with_a_credential_provider(start_server: Start) -> None:
    server = start_server({"requirepass": "s3cret"}, port=0)

    class Vault(redis.CredentialProvider):
        asked = 0

        def get_credentials(self) -> tuple[str, str]:
            Vault.asked += 1
            return "default", "s3cret"

    given = redis.Redis(port=server.port or 0, credential_provider=Vault())
    assert works(Broker(client=given))
    assert Vault.asked > 0


def test_by_the_environment(server: RunningServer, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_URL", server.url)
    assert works(Broker(namespace=namespace))


def test_to_the_embedded_server_of_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROKER_URL", raising=False)
    monkeypatch.setenv("BROKER_HOME", str(tmp_path / "home"))
    try:
        assert works(Broker(namespace="mine"))
        with Broker(namespace="mine") as again:
            assert [entry.event for entry in again.history("s")][-1] == "finished"
    finally:
        down(tmp_path / "home")


def test_one_way_at_a_time(server: RunningServer) -> None:
    with redis.Redis.from_url(server.url) as client, pytest.raises(InvalidInput):
        Broker(server.url, client=client)
    for url in ("http://localhost", "localhost:6379", "redis://:pa ss@[::1"):
        with pytest.raises(InvalidInput) as fault:
            Broker(url).open()
        assert "pa ss" not in str(fault.value)


def test_a_broker_opens_again(broker: Broker) -> None:
    started = broker.start("support", session="s")
    for _ in range(2):
        broker.close()
        broker.close()
        assert broker.runs.ready("agents") == (started.run_id,)


def test_where_nobody_answers(tmp_path: Path) -> None:
    nobody = Broker(f"unix://{tmp_path}/nobody", patience=0.1)
    with pytest.raises(Unavailable):
        nobody.open()
    nobody.close()


@pytest.mark.report("RA58")
def test_a_server_that_would_delete_pauses_is_refused(start_server: Start) -> None:
    with pytest.raises(UnsuitableServer, match=r"allkeys-lru.*noeviction"):
        Broker(start_server({"maxmemory-policy": "allkeys-lru"}).url).open()


@pytest.mark.report("RA58")
def test_a_server_that_may_delete_pauses_is_reported(
    start_server: Start, caplog: pytest.LogCaptureFixture
) -> None:
    assert works(Broker(start_server({"maxmemory-policy": "volatile-lru"}).url))
    assert "volatile-lru" in caplog.text


def test_a_node_of_a_cluster_is_refused(start_server: Start) -> None:
    with pytest.raises(UnsuitableServer, match="cluster"):
        Broker(start_server({"cluster-enabled": "yes"}).url).open()


def test_a_replica_is_refused(start_server: Start) -> None:
    primary = start_server(port=0)
    replica = start_server({"replicaof": f"127.0.0.1 {primary.port}"})
    with pytest.raises(UnsuitableServer, match="replica"):
        Broker(replica.url).open()


def test_R12_a_full_server_is_opened_and_creates_nothing(start_server: Start) -> None:
    server = start_server()
    with Broker(server.url, by=ADA) as before:
        paused = before.suspend("support", refund(), session="s")
    server.call("CONFIG", "SET", "maxmemory", 1)
    with Broker(server.url, by=ADA) as late:
        assert [one.id for one in (late.inbox.list()).items] == list(paused.interrupt_ids)
        with pytest.raises(OutOfMemory):
            late.start("support", session="s")


def test_what_a_namespace_is_was_settled_when_it_was_made(
    server: RunningServer, namespace: str, new_namespace: Callable[[], str]
) -> None:
    with Broker(server.url, namespace=namespace, partitions=4) as made:
        assert made._link.space.count == 4
    with Broker(server.url, namespace=namespace) as again:
        assert again._link.space.count == 4
    with pytest.raises(WrongNamespace, match=r"4 partitions.*3"):
        Broker(server.url, namespace=namespace, partitions=3).open()
    other = Settings().model_copy(update={"keep_settled": Settings().keep_settled * 2})
    with pytest.raises(WrongNamespace, match="keep_settled"):
        Broker(server.url, namespace=namespace, settings=other).open()
    with Broker(server.url, namespace=new_namespace(), settings=other) as doubled:
        assert doubled._link.settings.keep_settled == other.keep_settled
    for wrong in ({"namespace": "a:b"}, {"namespace": "A"}, {"partitions": 0}, {"partitions": 1025}):
        with pytest.raises(InvalidInput):
            Broker(server.url, **wrong)


def test_who_only_looks_makes_no_namespace(server: RunningServer, namespace: str) -> None:
    with Broker(server.url, namespace=namespace, create=False) as looking:
        assert (looking.fleet()).open == 0
        assert (looking.inbox.list()).items == ()
    with redis.Redis.from_url(server.url) as client:
        assert client.exists(f"{{{namespace}}}:meta") == 0
    with Broker(server.url, namespace=namespace, partitions=3) as made:
        assert made._link.space.count == 3


def test_sessions_are_spread_over_partitions(server: RunningServer, namespace: str) -> None:
    with Broker(server.url, namespace=namespace, partitions=3, by=ADA) as broker:
        paused = [broker.suspend("support", refund(n), session=f"s{n}") for n in range(12)]
        for one in paused:
            broker.inbox.get(one.interrupt_ids[0])
        tags = {broker._link.space.of_session(f"s{n}").tag for n in range(12)}
        assert len(tags) == 3
        seen: list[str] = []
        cursor = None
        while True:
            page = broker.inbox.list(limit=5, cursor=cursor)
            seen += [one.id for one in page.items]
            cursor = page.cursor
            if cursor is None:
                break
        assert sorted(seen) == sorted(one.interrupt_ids[0] for one in paused)
        for one in paused:
            broker.runs.withdraw(one.run_id)
        started = [(broker.start("a", session=f"s{n}")).run_id for n in range(12)]
        assert sum((broker.queue("agents").counts()).values()) == 12
        assert set(broker.runs.ready("agents")) == set(started)
        taken = broker.queue("agents").lease(("a",), limit=12)
        assert {run.id for run in taken} == set(started)
        assert (broker.fleet()).open == 0
