"""API keys of a namespace, in one hash of its first partition: id -> digest of the secret, then the record."""

import hmac
from typing import Any

from ...core.access import ApiKey, digest_of
from ..keys import Partition
from .values import Read, pairs

DIGEST = 32


def put_key(p: Partition, key: ApiKey, digest: bytes) -> Read[None]:
    """Stores a key, in place of what was stored under its id. Safe to repeat."""
    packed = digest + key.to_bytes()
    return Read((("HSET", p.key("credentials"), key.id, packed),), lambda _: None)


def read_key(p: Partition, id: str, secret: str | None = None) -> Read[tuple[ApiKey, bytes] | None]:
    """A key and the digest of its secret; None where there is none, or it has another secret than the one given."""

    def decode(replies: list[Any]) -> tuple[ApiKey, bytes] | None:
        found = _parse(replies[0])
        if found is None or (secret is not None and not hmac.compare_digest(found[1], digest_of(secret))):
            return None
        return found

    return Read((("HGET", p.key("credentials"), id),), decode)


def read_keys(p: Partition) -> Read[tuple[ApiKey, ...]]:
    """Every key, the oldest first."""

    def decode(replies: list[Any]) -> tuple[ApiKey, ...]:
        found = [parsed[0] for stored in pairs(replies[0]).values() if (parsed := _parse(stored))]
        return tuple(sorted(found, key=lambda one: (one.created_at, one.id)))

    return Read((("HGETALL", p.key("credentials")),), decode)


def _parse(stored: Any) -> tuple[ApiKey, bytes] | None:
    if not isinstance(stored, bytes) or len(stored) <= DIGEST:
        return None
    return ApiKey.from_bytes(stored[DIGEST:]), stored[:DIGEST]
