"""Every way to a server, and every server that is refused with a sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
import redis.asyncio

from broker import (
    AsyncBroker,
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


async def works(broker: AsyncBroker) -> bool:
    """Whether a run can be started and seen, over commands and over the waiting connection."""
    async with broker:
        started = await broker.start("support", session="s")
        async with broker.take(started.run_id) as run:
            await run.finish()
        await broker.wait(run.id, 5)
    return True


async def test_by_a_unix_socket_and_by_tcp(start_server: Start) -> None:
    server = start_server(port=0)
    assert await works(AsyncBroker(server.url))
    assert await works(AsyncBroker(f"{server.tcp_url}/0"))


async def test_with_a_password(start_server: Start) -> None:
    server = start_server({"requirepass": "s3cret"}, port=0)
    assert await works(AsyncBroker(server.tcp_url))
    for url in (f"unix://{server.socket}", f"unix://:wrong@{server.socket}"):
        with pytest.raises(NotPermitted) as fault:
            await AsyncBroker(url).open()
        assert "wrong" not in str(fault.value)


async def test_as_a_user_of_the_server(start_server: Start) -> None:
    server = start_server()
    server.call("ACL", "SETUSER", "ann", "on", ">pw", "~{mine:*}:*", "~{mine}:meta", "&{mine:*}:*", "+@all")
    url = f"unix://ann:pw@{server.socket}"
    assert await works(AsyncBroker(url, namespace="mine"))
    with pytest.raises(NotPermitted):
        await AsyncBroker(url, namespace="yours").open()
    with pytest.raises(NotPermitted):
        await AsyncBroker(f"unix://ann:no@{server.socket}", namespace="mine").open()


async def test_by_somebodys_client_without_its_habits(start_server: Start) -> None:
    server = start_server({"requirepass": "s3cret"}, port=0)
    for given in (
        redis.Redis.from_url(server.url, decode_responses=True, socket_timeout=0.5, protocol=2),
        redis.asyncio.Redis.from_url(server.tcp_url, decode_responses=True, health_check_interval=1),
    ):
        assert await works(AsyncBroker(client=given))
        assert "s3cret" not in repr(AsyncBroker(client=given))
        pool = AsyncBroker(client=given)._link.client.connection_pool
        assert pool.connection_kwargs["retry"]._retries == 0
        assert pool is not given.connection_pool


async def test_with_a_credential_provider(start_server: Start) -> None:
    server = start_server({"requirepass": "s3cret"}, port=0)

    class Vault(redis.CredentialProvider):
        asked = 0

        def get_credentials(self) -> tuple[str, str]:
            Vault.asked += 1
            return "default", "s3cret"

    given = redis.Redis(port=server.port or 0, credential_provider=Vault())
    assert await works(AsyncBroker(client=given))
    assert Vault.asked > 0


async def test_by_the_environment(
    server: RunningServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_URL", server.url)
    assert await works(AsyncBroker(namespace=namespace))


async def test_to_the_embedded_server_of_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROKER_URL", raising=False)
    monkeypatch.setenv("BROKER_HOME", str(tmp_path / "home"))
    try:
        assert await works(AsyncBroker(namespace="mine"))
        async with AsyncBroker(namespace="mine") as again:
            assert [entry.event for entry in await again.history("s")][-1] == "finished"
    finally:
        down(tmp_path / "home")


async def test_one_way_at_a_time(server: RunningServer) -> None:
    with redis.Redis.from_url(server.url) as client, pytest.raises(InvalidInput):
        AsyncBroker(server.url, client=client)
    for url in ("http://localhost", "localhost:6379", "redis://:pa ss@[::1"):
        with pytest.raises(InvalidInput) as fault:
            await AsyncBroker(url).open()
        assert "pa ss" not in str(fault.value)


async def test_a_broker_opens_again(broker: AsyncBroker) -> None:
    started = await broker.start("support", session="s")
    for _ in range(2):
        await broker.aclose()
        await broker.aclose()
        assert await broker.runs.ready("agents") == (started.run_id,)


async def test_where_nobody_answers(tmp_path: Path) -> None:
    nobody = AsyncBroker(f"unix://{tmp_path}/nobody", patience=0.1)
    with pytest.raises(Unavailable):
        await nobody.open()
    await nobody.aclose()


@pytest.mark.report("RA58")
async def test_a_server_that_would_delete_pauses_is_refused(start_server: Start) -> None:
    with pytest.raises(UnsuitableServer, match=r"allkeys-lru.*noeviction"):
        await AsyncBroker(start_server({"maxmemory-policy": "allkeys-lru"}).url).open()


@pytest.mark.report("RA58")
async def test_a_server_that_may_delete_pauses_is_reported(
    start_server: Start, caplog: pytest.LogCaptureFixture
) -> None:
    assert await works(AsyncBroker(start_server({"maxmemory-policy": "volatile-lru"}).url))
    assert "volatile-lru" in caplog.text


async def test_a_node_of_a_cluster_is_refused(start_server: Start) -> None:
    with pytest.raises(UnsuitableServer, match="cluster"):
        await AsyncBroker(start_server({"cluster-enabled": "yes"}).url).open()


async def test_a_replica_is_refused(start_server: Start) -> None:
    primary = start_server(port=0)
    replica = start_server({"replicaof": f"127.0.0.1 {primary.port}"})
    with pytest.raises(UnsuitableServer, match="replica"):
        await AsyncBroker(replica.url).open()


async def test_R12_a_full_server_is_opened_and_creates_nothing(start_server: Start) -> None:
    server = start_server()
    async with AsyncBroker(server.url, by=ADA) as before:
        paused = await before.suspend("support", refund(), session="s")
    server.call("CONFIG", "SET", "maxmemory", 1)
    async with AsyncBroker(server.url, by=ADA) as late:
        assert [one.id for one in (await late.inbox.list()).items] == list(paused.interrupt_ids)
        with pytest.raises(OutOfMemory):
            await late.start("support", session="s")


async def test_what_a_namespace_is_was_settled_when_it_was_made(
    server: RunningServer, namespace: str, new_namespace: Callable[[], str]
) -> None:
    async with AsyncBroker(server.url, namespace=namespace, partitions=4) as made:
        assert made._link.space.count == 4
    async with AsyncBroker(server.url, namespace=namespace) as again:
        assert again._link.space.count == 4
    with pytest.raises(WrongNamespace, match=r"4 partitions.*3"):
        await AsyncBroker(server.url, namespace=namespace, partitions=3).open()
    other = Settings().model_copy(update={"keep_settled": Settings().keep_settled * 2})
    with pytest.raises(WrongNamespace, match="keep_settled"):
        await AsyncBroker(server.url, namespace=namespace, settings=other).open()
    async with AsyncBroker(server.url, namespace=new_namespace(), settings=other) as doubled:
        assert doubled._link.settings.keep_settled == other.keep_settled
    for wrong in ({"namespace": "a:b"}, {"namespace": "A"}, {"partitions": 0}, {"partitions": 1025}):
        with pytest.raises(InvalidInput):
            AsyncBroker(server.url, **wrong)


async def test_who_only_looks_makes_no_namespace(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace, create=False) as looking:
        assert (await looking.fleet()).open == 0
        assert (await looking.inbox.list()).items == ()
    with redis.Redis.from_url(server.url) as client:
        assert client.exists(f"{{{namespace}}}:meta") == 0
    async with AsyncBroker(server.url, namespace=namespace, partitions=3) as made:
        assert made._link.space.count == 3


async def test_sessions_are_spread_over_partitions(server: RunningServer, namespace: str) -> None:
    async with AsyncBroker(server.url, namespace=namespace, partitions=3, by=ADA) as broker:
        paused = [await broker.suspend("support", refund(n), session=f"s{n}") for n in range(12)]
        for one in paused:
            await broker.inbox.get(one.interrupt_ids[0])
        tags = {broker._link.space.of_session(f"s{n}").tag for n in range(12)}
        assert len(tags) == 3
        seen: list[str] = []
        cursor = None
        while True:
            page = await broker.inbox.list(limit=5, cursor=cursor)
            seen += [one.id for one in page.items]
            cursor = page.cursor
            if cursor is None:
                break
        assert sorted(seen) == sorted(one.interrupt_ids[0] for one in paused)
        for one in paused:
            await broker.runs.withdraw(one.run_id)
        started = [(await broker.start("a", session=f"s{n}")).run_id for n in range(12)]
        assert sum((await broker.queue("agents").counts()).values()) == 12
        assert set(await broker.runs.ready("agents")) == set(started)
        taken = await broker.queue("agents").lease(("a",), limit=12)
        assert {run.id for run in taken} == set(started)
        assert (await broker.fleet()).open == 0
