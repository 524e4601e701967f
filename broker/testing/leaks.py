"""What a test left behind on its server. Imports `store`.

Every key belongs to a namespace, and nothing that a promise rests on carries a time to live: both are seen best
from the server's side, after each test.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final, Protocol

from ..store.connect import Options, sync_client

MAY_EXPIRE: Final = frozenset({
    ":sweeper", ":vault-rates:0", ":vault-rates:1", ":holders:webhooks", ":holders:slack", ":holders:notify",
})  # fmt: skip
"""Keys, by what follows the hash tag, that may carry a time to live: leases of whom there is one of, and rates."""

_LIFETIMES: Final = (
    "local ms = {} for i, key in ipairs(KEYS) do ms[i] = redis.call('PTTL', key) end return ms"
)
_AT_ONCE: Final = 500
_SECONDS: Final = 10.0


class Executes(Protocol):
    """A blocking client, such as redis-py's: what is asked of it is one command."""

    def execute_command(self, *args: Any) -> Any:
        """The reply to one command."""


def leaked_keys(
    client: Executes, namespaces: Collection[str], *, may_expire: Collection[str] = MAY_EXPIRE
) -> list[str]:
    """One sentence for each key of the server that is not in one of `namespaces`, or that would expire by itself.

    `may_expire` names the keys that may, by what follows their hash tag. Reads the whole key space of one server.
    """
    found: list[str] = []
    for names, lifetimes in _keys(client):
        for name, lifetime in zip(names, lifetimes, strict=True):
            if not any(name.startswith((f"{{{each}:", f"{{{each}}}")) for each in namespaces):
                found.append(f"{name} is in no namespace of this test")
            elif lifetime >= 0 and name.partition("}")[2] not in may_expire:
                found.append(f"{name} expires by itself, in {lifetime} ms")
    return sorted(found)


def remove_namespaces(url: str, namespaces: Collection[str]) -> None:
    """Deletes every key of these namespaces, and nothing else. Safe to repeat."""
    client = sync_client(url, Options(), _SECONDS)
    try:
        for name in namespaces:
            for pattern in (f"{{{name}:*", f"{{{name}}}*"):
                for key in client.scan_iter(pattern, count=_AT_ONCE):
                    client.unlink(key)
    finally:
        client.close()


def _keys(client: Executes) -> Iterator[tuple[list[str], list[int]]]:
    """Names and lifetimes, some hundred at a time. SCAN may name a key twice."""
    cursor, seen = 0, set[str]()
    while True:
        cursor, raw = client.execute_command("SCAN", cursor, "COUNT", _AT_ONCE)
        names = sorted({n if isinstance(n, str) else n.decode(errors="backslashreplace") for n in raw} - seen)
        seen.update(names)
        if raw:
            yield names, client.execute_command("EVAL", _LIFETIMES, len(names), *names)
        if not int(cursor):
            return
