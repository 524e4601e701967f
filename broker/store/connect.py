"""The only importer of a Redis client: options, what its errors mean, and what must be true of a server.

The options are stated here because the client's defaults repeat writes silently, cut blocking reads after five
seconds, and on Python 3.11 swallow cancellations. Deadlines and repeats are the business of the layer above.
"""

import asyncio
import contextlib
import re
import select
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import hiredis
import redis
import redis.asyncio
from redis import exceptions
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException, RedisError
from redis.retry import Retry

from ..errors import BrokerError, InvalidInput, NotPermitted, OutOfMemory, Unavailable, UnsuitableServer

SyncClient = redis.Redis
AsyncClient = redis.asyncio.Redis
C = TypeVar("C", SyncClient, AsyncClient)

Refusal = exceptions.ResponseError
"""What the server says against a command."""
FAULTS: Final = (RedisError, RedisClusterException, OSError, TimeoutError, asyncio.TimeoutError)
"""What a call to the server can raise."""

# Words an error begins with -> what follows from it. Looked at before the class, which is often a bare ResponseError.
_LATER: Final = frozenset(
    {
        "LOADING",
        "MASTERDOWN",
        "CLUSTERDOWN",
        "TRYAGAIN",
        "NOREPLICAS",
        "READONLY",
        "BUSY",
        "MISCONF",
        "UNBLOCKED",
    }
)
_DENIED: Final = frozenset({"NOAUTH", "WRONGPASS", "NOPERM"})


class Gone(Exception):
    """The connection was lost or the reply did not come: a write may have happened. Repeat it."""


class Later(Exception):
    """The server is there and wants the call again after a while; nothing was written."""


class NoScript(Exception):
    """The server does not know the script's hash: send the text."""


class NoGroup(Exception):
    """The consumer group is gone (the server lost data or somebody deleted it): create it again."""


_SIGNALS: Final[dict[str, type[Exception]]] = {"NOSCRIPT": NoScript, "NOGROUP": NoGroup}


# What the client puts before the server's words when the command was one of several (its arguments included).
_IN_PIPELINE: Final = re.compile(r"^Command # \d+ \(.*?\) of pipeline caused error: ", re.DOTALL)


def meaning(error: BaseException) -> BaseException:
    """What a fault of the client means to us: a signal to the layer above, or an error for the user."""
    if isinstance(error, BrokerError):
        return error
    if isinstance(error.__cause__, exceptions.AuthenticationError):
        error = error.__cause__  # the client calls a refused password a lost connection
    said = _IN_PIPELINE.sub("", str(error)).rstrip(".")
    # The client takes the word off the text where it has a class for it.
    code = getattr(error, "status_code", None)
    word = code if code and code != "ERR" else said.split(" ", 1)[0] if said else ""
    return _by_word(word, said) or _by_class(error, said, word)


def _by_word(word: str, said: str) -> BaseException | None:
    """By the word a server's refusal begins with: the class is often no more than ResponseError."""
    if word in _SIGNALS:
        return _SIGNALS[word]()
    if word in _DENIED or "ACL failure in script" in said or "user executing the script" in said:
        return NotPermitted(said)
    if word == "UNBLOCKED" and "no longer exists" in said:
        return NoGroup()  # how Redis 7.0 tells a blocked reader that its stream is gone
    if word in _LATER:
        return Later(word)
    if "max number of clients" in said:
        return Later("max number of clients reached")
    if word == "OOM":
        return OutOfMemory("its memory limit is reached")
    if word in {"MOVED", "ASK"}:
        return UnsuitableServer(
            "it is a node of a cluster, reached as a single server", "Connect to the cluster"
        )
    if word == "WRONGTYPE":
        return UnsuitableServer("a key of the namespace holds another type", "Find the foreign writer")
    return None


def _by_class(error: BaseException, said: str, word: str) -> BaseException:
    """By class, the narrower ones first: several of them are connection errors too."""
    for kinds, made in (
        (exceptions.NoScriptError, NoScript()),
        (exceptions.OutOfMemoryError, OutOfMemory("its memory limit is reached")),
        ((exceptions.AuthenticationError, exceptions.NoPermissionError), NotPermitted(said)),
        (exceptions.MaxConnectionsError, Later("no connection is free")),
        ((exceptions.BusyLoadingError, exceptions.ReadOnlyError), Later(word or "loading")),
        (
            (OSError, TimeoutError, exceptions.ConnectionError, exceptions.TimeoutError),
            Gone(type(error).__name__),
        ),
    ):
        if isinstance(error, kinds):
            return made
    return Unavailable(said or type(error).__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """How connections are made. Times in seconds."""

    connect_timeout: float = 3.0
    max_connections: int = 64
    client_name: str = "broker"


def options(how: Options) -> dict[str, Any]:
    """The client options every connection of ours has, whatever made it."""
    return {
        "protocol": 3,
        "decode_responses": False,
        "socket_timeout": None,
        "socket_connect_timeout": how.connect_timeout,
        "socket_keepalive": True,
        "max_connections": how.max_connections,
        "client_name": how.client_name,
        "legacy_responses": False,
    }


def async_client(url: str, how: Options, **more: Any) -> AsyncClient:
    """A client for one server by URL: redis://, rediss:// or unix://."""
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    return _plain(
        redis.asyncio.Redis.from_url(_checked(url), retry=retry, **_by_url(url, options(how)), **more)
    )


def sync_client(url: str, how: Options, seconds: float, **more: Any) -> SyncClient:
    """As `async_client`, blocking, with a limit on every reply."""
    how_now = _by_url(url, options(how)) | {"socket_timeout": seconds}
    return _plain(redis.Redis.from_url(_checked(url), retry=Retry(NoBackoff(), 0), **how_now, **more))


def _checked(url: str) -> str:
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise InvalidInput("url", "has another scheme", "redis://, rediss:// or unix://")
    try:
        redis.connection.parse_url(url)
    except ValueError:
        pass
    else:
        return url
    # Outside the handler: the client's own message repeats the address, which may hold a password.
    raise InvalidInput("url", "cannot be read", "redis://[[user]:password@]host[:port][/db] and the like")


def _plain(client: C) -> C:
    # The client's parser of this reply fails on the form with a range.
    client.response_callbacks.pop("XPENDING", None)
    return client


def _by_url(url: str, how: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in how.items()
        if not (url.startswith("unix:") and name == "socket_keepalive")
    }


def _settings_of(client: Any) -> dict[str, Any]:
    """Address, credentials and encryption of somebody's client, without its habits."""
    pool = client.connection_pool
    kept = ("host", "port", "db", "username", "password", "credential_provider", "path")
    given: Mapping[str, Any] = pool.connection_kwargs
    found = {
        name: value
        for name, value in given.items()
        if (name in kept or name.startswith("ssl")) and value is not None
    }
    if "path" in found:
        found["unix_socket_path"] = found.pop("path")
    if "SSL" in pool.connection_class.__name__:
        found["ssl"] = True
    return found


def async_client_like(client: Any, how: Options) -> AsyncClient:
    """A client of our own with the address, credentials and encryption of a redis-py client that somebody made."""
    found = _settings_of(client)
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    return _plain(redis.asyncio.Redis(retry=retry, **_fit(found, options(how)), **found))


def sync_client_like(client: Any, how: Options, seconds: float) -> SyncClient:
    """As `async_client_like`, blocking, with a limit on every reply."""
    found = _settings_of(client)
    how_now = _fit(found, options(how)) | {"socket_timeout": seconds}
    return _plain(redis.Redis(retry=Retry(NoBackoff(), 0), **how_now, **found))


def _fit(found: dict[str, Any], how: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in how.items()
        if not ("unix_socket_path" in found and name == "socket_keepalive")
    }


# A connection of a client, spoken to directly ---------------------------------------------------------------------

NOTHING: Final = object()
"""What the parser gives when no whole reply has come yet."""


def pack(words: tuple[Any, ...]) -> bytes:
    """A command as the server wants it."""
    return bytes(hiredis.pack_command(words))


def is_push(reply: Any) -> bool:
    """Whether this is something the server says unasked."""
    return isinstance(reply, hiredis.PushNotification)


@dataclass(frozen=True, slots=True)
class Stream:
    """A connection that the client has opened and greeted the server on, taken out of its hands."""

    transport: asyncio.Transport
    parser: Any = field(repr=False)
    held: Any = field(repr=False)
    """What would close the transport if nobody held it."""


async def open_stream(client: AsyncClient) -> Stream:
    """A new connection with the address, credentials and encryption of a client, in nobody's pool.

    The client has no public name for the transport of its connection.
    """
    connection = client.connection_pool.make_connection()
    try:
        await connection.connect()
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    writer = connection._writer  # noqa: SLF001
    connection._reader = connection._writer = None  # noqa: SLF001 - closing it is ours now
    return Stream(writer.transport, _reader(), writer)


def _reader() -> Any:
    return hiredis.Reader(protocolError=exceptions.InvalidResponse, replyError=Refusal, notEnoughData=NOTHING)


@dataclass(frozen=True, slots=True, eq=False)
class Socket:
    """A blocking connection that the client has opened and greeted the server on, taken out of its hands."""

    socket: socket.socket
    parser: Any
    poller: "select.poll | None"
    """What says whether something came unasked; None where the system has none."""

    def is_quiet(self) -> bool:
        """Whether nothing has come: neither the end of the connection nor the rest of an earlier reply."""
        return self.poller is None or not self.poller.poll(0)

    def close(self) -> None:
        """Ends it, also for a thread that waits on it. Safe to repeat."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def open_socket(client: SyncClient) -> Socket:
    """As `open_stream`, of a blocking client, with its limit on every reply."""
    pool = client.connection_pool
    connection = pool.connection_class(
        **pool.connection_kwargs
    )  # the pool counts what it makes, and makes only so many
    try:
        connection.connect()
    except BaseException:
        connection.disconnect()
        raise
    made, connection._sock = connection._sock, None  # noqa: SLF001 - closing it is ours now
    poller = select.poll() if hasattr(select, "poll") else None
    if poller is not None:
        poller.register(made, select.POLLIN)
    return Socket(made, _reader(), poller)
