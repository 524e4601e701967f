"""All keys of a namespace with their contents, to compare before and after."""

import re
from collections.abc import Collection
from typing import Any, Final, TypeAlias

from tests import records

Snapshot: TypeAlias = dict[str, object]

RECORD: Final = re.compile(rb"}:(run|interrupt):")
_READ: Final[dict[bytes, tuple[tuple[str, ...], ...]]] = {
    b"string": (("GET",),),
    b"hash": (("HGETALL",),),
    b"list": (("LRANGE", "0", "-1"),),
    b"set": (("SMEMBERS",),),
    b"zset": (("ZRANGE", "0", "-1", "WITHSCORES"),),
    b"stream": (("XRANGE", "-", "+"), ("XINFO GROUPS",)),
}
"""Type -> the commands that give its contents, the key left out."""


def take(client: Any, namespace: str, fields: Collection[bytes] = ()) -> Snapshot:
    """Every key whose tag belongs to the namespace, groups of streams included; without `fields` of hashes."""
    names = sorted(
        {*client.scan_iter(f"{{{namespace}:*", count=1000), *client.scan_iter(f"{{{namespace}}}*")}
    )
    types = client.pipeline(transaction=False)
    for name in names:
        types.type(name)
    kinds = types.execute()
    contents = client.pipeline(transaction=False)
    for name, kind in zip(names, kinds, strict=True):
        for command, *rest in _READ[kind]:
            contents.execute_command(*command.split(), name, *rest)
    replies = iter(contents.execute())
    found: Snapshot = {}
    for name, kind in zip(names, kinds, strict=True):
        parts = [next(replies) for _ in _READ[kind]]
        if kind == b"string" and RECORD.search(name):
            parts = [_record(parts[0])]
        found[name.decode()] = _comparable(parts, fields)
    return found


def _record(packed: bytes) -> object:
    """The fields of a record, whose order says nothing; what is none stays as it is."""
    try:
        return {name.encode(): value for name, value in records.fields(packed).items()}
    except (ValueError, AttributeError):
        return packed


def _comparable(parts: list[Any], fields: Collection[bytes]) -> object:
    (first, *rest) = parts
    if isinstance(first, dict):
        return sorted((name, value) for name, value in first.items() if name not in fields)
    return sorted(first) if isinstance(first, set) else (first, rest)


def changed(before: Snapshot, after: Snapshot) -> list[str]:
    """The names of the keys that differ."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
