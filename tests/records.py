"""Records as the scripts pack them, read and changed from outside: what a test does in the place of another program."""

from typing import Any

import msgpack

from broker.store.fields import FIELDS, named


def fields(packed: Any) -> dict[str, bytes]:
    """The fields of a record, none where there is no record."""
    return {} if packed is None else named(msgpack.unpackb(packed, raw=True))


def changed(packed: Any, **values: Any) -> bytes:
    """The record with other fields; None takes one out."""
    found: dict[str, Any] = {**fields(packed), **values}
    kept = {FIELDS.get(name, name): value for name, value in found.items() if value is not None}
    record: bytes = msgpack.packb(kept, use_bin_type=False)
    return record


def poke(client: Any, key: str, **values: str | bytes | None) -> None:
    """Changes fields of a record on the server."""
    client.set(key, changed(client.get(key), **values))
