"""A server that refuses everything for a while, for each of its reasons: waited for, said in time, and got over."""

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
import redis

from broker import AsyncBroker, RunState, Unavailable
from broker.testing import ServerProcess, await_until, wait_until
from tests.worker.fleet import run_when

from .fleet import both_readers
from .world import QUICK, told

MOST_CLIENTS = 40


@contextmanager
def too_many_clients(server: ServerProcess) -> Generator[None]:
    """Others take every place there is. The places of the broker's own connections are taken from it first."""
    with ExitStack() as stack:
        server.call("CONFIG", "SET", "maxclients", MOST_CLIENTS)
        server.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        for _ in range(MOST_CLIENTS):
            with suppress(redis.ConnectionError):
                stack.enter_context(redis.Redis.from_url(server.url, single_connection_client=True))
        yield


@contextmanager
def read_only(server: ServerProcess) -> Generator[None]:
    server.call("REPLICAOF", "127.0.0.1", 1)
    yield
    server.call("REPLICAOF", "NO", "ONE")


@contextmanager
def without_replicas(server: ServerProcess) -> Generator[None]:
    server.call("CONFIG", "SET", "min-replicas-to-write", 1)
    yield
    server.call("CONFIG", "SET", "min-replicas-to-write", 0)


@contextmanager
def failing_snapshots(server: ServerProcess) -> Generator[None]:
    """The place of the snapshot is taken by a folder."""
    (server.directory / "dump.rdb").mkdir()
    server.call("CONFIG", "SET", "save", "3600 1")
    server.call("BGSAVE")
    wait_until(lambda: b"rdb_last_bgsave_status:err" in info(server, "persistence"))
    yield
    (server.directory / "dump.rdb").rmdir()
    server.call("BGSAVE")
    wait_until(lambda: b"rdb_last_bgsave_status:ok" in info(server, "persistence"))


@contextmanager
def busy_with_a_script(server: ServerProcess) -> Generator[None]:
    server.call("CONFIG", "SET", "busy-reply-threshold", 10)

    def run() -> None:
        with redis.Redis.from_url(server.url) as client, suppress(redis.ResponseError):
            client.eval("while true do end", 0)

    running = threading.Thread(target=run)
    running.start()
    with redis.Redis.from_url(server.url) as client:
        wait_until(lambda: is_busy(client))
        yield
        client.script_kill()
    running.join()


def is_busy(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.ResponseError as error:
        return str(error).startswith("BUSY")
    return False


def info(server: ServerProcess, section: str) -> bytes:
    told = server.call("INFO", section)
    assert isinstance(told, bytes)
    return told


LOST = "max number of clients|ConnectionError"
"""The server says so and hangs up: a client that is still writing sees only the second."""
Refusal = Callable[[ServerProcess], Any]
REFUSALS: dict[str, Refusal] = {
    LOST: too_many_clients,
    "READONLY": read_only,
    "NOREPLICAS": without_replicas,
    "MISCONF": failing_snapshots,
    "BUSY": busy_with_a_script,
}


@pytest.mark.parametrize("word", REFUSALS)
async def test_what_passes_is_waited_for(fleet: AsyncBroker, own_server: ServerProcess, word: str) -> None:
    """Who has no patience is told the word, and that nothing was written.

    Off: the word is not among `_LATER`, or not looked for in `status_code`.
    """
    began = await fleet.start("asks", 0, session="before")
    await run_when(fleet, began.run_id, RunState.FINISHED)
    async with AsyncBroker(own_server.url, settings=QUICK, patience=0.3) as hasty:
        refused = REFUSALS[word](own_server)
        await asyncio.to_thread(refused.__enter__)
        with pytest.raises(Unavailable, match=word) as fault:
            await hasty.start("asks", 1, session="hasty")
        assert word == LOST or not fault.value.unsure
        patient = asyncio.create_task(fleet.start("asks", 2, session="patient", key="k"))
        done, _ = await asyncio.wait([patient], timeout=0.2)
        assert not done
        await asyncio.to_thread(refused.__exit__, None, None, None)
    assert told(await patient) == "accepted"
    run = await run_when(fleet, (await patient).run_id, RunState.FINISHED)
    assert (run.result, run.errors) == ("approve", ())


async def test_a_server_that_is_paused_for_longer_than_a_call_is_asked_again(
    fleet: AsyncBroker, own_server: ServerProcess, short_patience: float
) -> None:
    """CLIENT PAUSE. Off: the deadline of a call, or `start_op`."""
    await fleet.start("none", 0, session="before")
    pause = short_patience * 3
    own_server.call("CLIENT", "PAUSE", round(pause * 1000), "WRITE")
    began = asyncio.get_running_loop().time()
    assert told(await fleet.start("asks", 1, session="s", key="k")) in ("accepted", "replayed")
    assert asyncio.get_running_loop().time() - began > short_patience
    run = await run_when(
        fleet, (await fleet.start("asks", 1, session="s", key="k")).run_id, RunState.FINISHED
    )
    assert run.result == "approve"
    assert [one.event for one in await fleet.history("s")].count("started") == 1


@pytest.mark.parametrize("how", ["ERROR", "TIMEOUT"])
async def test_readers_that_are_unblocked_read_on(
    fleet: AsyncBroker, own_server: ServerProcess, how: str
) -> None:
    """CLIENT UNBLOCK, and what a server says that is demoted. Off: a reader passes over no faults (`_pass_over`)."""
    with redis.Redis.from_url(own_server.url, protocol=2, legacy_responses=True) as client:
        for n in range(5):
            follower, _ = await await_until(
                lambda: both_readers(client)
            )  # a worker that waits is not blocked
            assert client.client_unblock(follower, error=how == "ERROR")
            run = await fleet.start("asks", n, session=f"s{n}")
            assert (await run_when(fleet, run.run_id, RunState.FINISHED)).result == "approve"


@pytest.mark.server_config({"timeout": 1})
async def test_idle_connections_that_the_server_closed_are_made_again(
    fleet: AsyncBroker, own_server: ServerProcess
) -> None:
    """Off: `Gone` is not repeated."""
    await fleet.start("none", 0, session="before")
    name = fleet._link.options.client_name
    await asyncio.gather(*(fleet.history("before") for _ in range(8)))
    with redis.Redis.from_url(own_server.url, protocol=2, legacy_responses=True) as client:
        await await_until(lambda: idle(client, name) == 0, 20)
        run = await fleet.start("asks", 1, session="s")
        assert told(run) == "accepted"
        assert (await run_when(fleet, run.run_id, RunState.FINISHED)).result == "approve"


def idle(client: redis.Redis, name: str) -> int:
    """How many connections of that name have been idle, and are no subscribers or blocked readers."""
    found = [one for one in client.client_list() if one["name"] == name]
    return len([one for one in found if one["flags"] == "N" and int(one["idle"]) >= 1])
