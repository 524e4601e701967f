"""All keys of a namespace with their contents, to compare before and after."""

from collections.abc import Collection
from typing import Any, TypeAlias

Snapshot: TypeAlias = dict[str, object]


def take(client: Any, namespace: str, fields: Collection[bytes] = ()) -> Snapshot:
    """Every key whose tag belongs to the namespace, groups of streams included; without `fields` of hashes."""
    found: Snapshot = {}
    names = sorted(
        {*client.scan_iter(f"{{{namespace}:*", count=1000), *client.scan_iter(f"{{{namespace}}}*")}
    )
    pipe = client.pipeline(transaction=False)
    for name in names:
        pipe.type(name)
    for name, kind in zip(names, pipe.execute(), strict=True):
        found[name.decode()] = _contents(client, name, kind.decode(), fields)
    return found


def _contents(client: Any, name: bytes, kind: str, fields: Collection[bytes]) -> object:
    match kind:
        case "string":
            return client.get(name)
        case "hash":
            return sorted(
                (field, value) for field, value in client.hgetall(name).items() if field not in fields
            )
        case "list":
            return client.lrange(name, 0, -1)
        case "set":
            return sorted(client.smembers(name))
        case "zset":
            return client.zrange(name, 0, -1, withscores=True)
        case _:
            return client.xrange(name), client.execute_command("XINFO", "GROUPS", name)


def changed(before: Snapshot, after: Snapshot) -> list[str]:
    """The names of the keys that differ."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
