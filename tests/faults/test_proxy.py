"""The proxy does what it says, in front of a real server."""

import threading
from collections.abc import Callable, Generator
from time import monotonic

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from broker.testing import FaultProxy, RunningServer, ServerProcess, wait_until
from broker.testing.frames import Frames, frame_end


@pytest.fixture
def connect(proxy: FaultProxy) -> Generator[Callable[..., redis.Redis]]:
    """Clients of the proxy that try everything once and wait for seconds, not for ever."""
    clients: list[redis.Redis] = []

    def connect(seconds: float = 10.0, protocol: int = 3) -> redis.Redis:
        client = redis.Redis.from_url(
            proxy.url, protocol=protocol, socket_timeout=seconds, retry=Retry(NoBackoff(), 0)
        )
        client.ping()  # the greeting is over, what follows is the test's
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def key(namespace: str) -> str:
    return f"{{{namespace}:0.0}}:run:counter"


@pytest.fixture
def direct(server: RunningServer) -> Generator[redis.Redis]:
    """A client that knows no proxy."""
    with redis.Redis.from_url(server.url) as client:
        yield client


@pytest.mark.parametrize("protocol", [2, 3])
def test_everything_passes(
    proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str, protocol: int
) -> None:
    client = connect(protocol=protocol)
    requests, replies = proxy.requests, proxy.replies
    with client.pipeline(transaction=False) as pipe:
        for _ in range(1000):
            pipe.incr(key)
        assert pipe.execute()[-1] == 1000
    big = b"\r\n+x" * 300_000
    client.set(key, big)
    assert client.get(key) == big
    assert client.eval("return {1, {2, {}}, false, 'x'}", 0) == [1, [2, []], None, b"x"]
    assert proxy.requests - requests == 1003
    assert proxy.replies - replies == 1003
    assert proxy.connections == 1
    assert proxy.dropped == 0


def test_a_lost_reply_is_that_of_a_command_that_was_executed(
    proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str, direct: redis.Redis
) -> None:
    client = connect()
    proxy.drop_next_reply()
    with pytest.raises(redis.ConnectionError):
        client.incr(key)
    assert proxy.dropped == 1
    assert direct.get(key) == b"1"
    assert client.incr(key) == 2


def test_the_reply_to_lose_is_chosen_by_bytes_and_number(
    proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str
) -> None:
    client = connect()
    proxy.drop_next_reply(b"INCR", nth=3)
    assert [client.incr(key), client.echo("between"), client.incr(key)] == [1, b"between", 2]
    with pytest.raises(redis.ConnectionError):
        client.incr(key)
    assert client.incr(key) == 4
    assert proxy.dropped == 1


def test_of_a_pipeline_the_replies_before_the_lost_one_arrive(
    proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str, direct: redis.Redis
) -> None:
    client = connect()
    replies = proxy.replies
    proxy.drop_next_reply(nth=2)
    with client.pipeline(transaction=False) as pipe:
        for _ in range(3):
            pipe.incr(key)
        with pytest.raises(redis.ConnectionError):
            pipe.execute()
    assert proxy.replies - replies == 1
    assert direct.get(key) == b"3"


def test_a_lost_reply_may_leave_silence(
    proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str, direct: redis.Redis
) -> None:
    client = connect(seconds=1.0)
    proxy.drop_next_reply(then="silence")
    with pytest.raises(redis.TimeoutError):
        client.incr(key)
    assert direct.get(key) == b"1"


def test_mute_is_for_the_connections_that_are_open(
    proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str, direct: redis.Redis
) -> None:
    old = connect(seconds=1.0)
    assert old.incr(key) == 1
    proxy.mute()
    assert connect().incr(key) == 2
    with pytest.raises(redis.TimeoutError):
        old.incr(key)
    assert direct.get(key) == b"2"
    assert old.incr(key) == 3  # over a new one


def test_cut_ends_every_connection_and_takes_new_ones(
    proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str
) -> None:
    clients = [connect(), connect()]
    held = [client.connection_pool.get_connection() for client in clients]
    proxy.cut()
    for connection in held:
        with pytest.raises(redis.ConnectionError):
            connection.read_response()
        connection.disconnect()
    assert [client.incr(key) for client in clients] == [1, 2]
    assert proxy.connections == 4


def test_cut_wakes_a_blocked_reader(proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str) -> None:
    reader = connect(seconds=30.0)
    before = proxy.requests
    ends: list[type[Exception]] = []

    def read() -> None:
        try:
            reader.blpop([key], timeout=0)
        except redis.ConnectionError as error:
            ends.append(type(error))

    thread = threading.Thread(target=read)
    thread.start()
    wait_until(lambda: proxy.requests > before)
    proxy.cut()
    thread.join()
    assert ends == [redis.ConnectionError]


def test_delay_holds_replies_back(proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str) -> None:
    client = connect()
    proxy.delay(0.2)
    began = monotonic()
    assert client.incr(key) == 1
    assert monotonic() - began >= 0.2
    proxy.restore()

    def took() -> float:
        began = monotonic()
        client.ping()
        return monotonic() - began

    assert min(took() for _ in range(5)) < 0.2


def test_refuse_is_like_a_machine_without_the_server(
    proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str
) -> None:
    client, port = connect(), proxy.port
    for _ in range(3):
        proxy.refuse()
        with pytest.raises(redis.ConnectionError):
            client.incr(key)
        with pytest.raises(redis.ConnectionError, match="refused"):
            client.incr(key)
        proxy.restore()
        assert client.incr(key)
    assert proxy.port == port
    assert client.get(key) == b"3"


def test_hang_holds_everything_until_restored(
    proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str, direct: redis.Redis
) -> None:
    client = connect(seconds=1.0)
    proxy.hang()
    with pytest.raises(redis.TimeoutError):
        client.incr(key)
    assert direct.get(key) is None
    proxy.restore()
    wait_until(lambda: direct.get(key) == b"1", what="the arrival of what was held back")
    assert connect().incr(key) == 2


def test_what_the_server_says_unasked_is_no_reply(
    proxy: FaultProxy, connect: Callable[..., redis.Redis], key: str, direct: redis.Redis
) -> None:
    client = connect(protocol=3)
    client.execute_command("CLIENT", "TRACKING", "ON", "BCAST")
    direct.set(key, 1)  # the proxied connection is told that the key is no longer what it was
    replies = proxy.replies
    proxy.drop_next_reply(b"GET")
    with pytest.raises(redis.ConnectionError):
        client.get(key)
    assert proxy.replies == replies


def test_a_server_that_ends_takes_its_connections_with_it(own_server: ServerProcess) -> None:
    once = Retry(NoBackoff(), 0)
    with FaultProxy(own_server.url) as proxy, redis.Redis.from_url(proxy.url, retry=once) as client:
        assert client.ping()
        own_server.kill()
        for _ in range(2):
            with pytest.raises(redis.ConnectionError):
                client.ping()
        own_server.start()
        assert client.ping()


def test_it_stands_before_a_loopback_port_with_a_password_too(
    start_server: Callable[..., ServerProcess],
) -> None:
    server = start_server({"requirepass": "letmein"}, port=0)
    with FaultProxy(server.tcp_url + "/3") as proxy:
        assert proxy.url == f"redis://:letmein@127.0.0.1:{proxy.port}/3"
        with redis.Redis.from_url(proxy.url) as client:
            client.set("here", 1)
    assert b"db3" in bytes(server.call("INFO", "keyspace") or b"")  # type: ignore[arg-type]


FRAMES = [
    b"+OK\r\n",
    b"-ERR no\r\n",
    b":12\r\n",
    b"$-1\r\n",
    b"$0\r\n\r\n",
    b"$5\r\n\r\n*9\r\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"*2\r\n*1\r\n:1\r\n$1\r\nx\r\n",
    b"_\r\n",
    b"#t\r\n",
    b",1.5\r\n",
    b"(12345678901234567890\r\n",
    b"=7\r\ntxt:abc\r\n",
    b"!5\r\nERR x\r\n",
    b"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n",
    b"~2\r\n:1\r\n:2\r\n",
    b">2\r\n+message\r\n$1\r\nx\r\n",
    b"|1\r\n+ttl\r\n:5\r\n*1\r\n:1\r\n",
    b"PING\r\n",
]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_ends_where_it_ends(frame: bytes) -> None:
    assert frame_end(frame, 0) == len(frame)
    assert frame_end(b"+before\r\n" + frame + b"+after\r\n", 9) == 9 + len(frame)
    assert [frame_end(frame[:part], 0) for part in range(len(frame))] == [None] * len(frame)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_frames_are_the_same_however_they_arrive(size: int) -> None:
    stream, frames = b"".join(FRAMES), Frames()
    assert [
        frame for at in range(0, len(stream), size) for frame in frames.feed(stream[at : at + size])
    ] == FRAMES
