"""Who may use a namespace from outside, in its first partition.

API keys are one hash: id -> digest of the secret, then the record. Signing keys are another: number -> record.
Tokens that were taken back are a sorted set, by when they would have expired.
"""

import hmac
from typing import Any

from ...core.access import ApiKey, digest_of
from ...core.signing import SigningKey
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


def add_signing_key(p: Partition, key: SigningKey) -> Read[None]:
    """Stores a signing key, unless there is one of that number. Safe to repeat."""
    return Read((("HSETNX", p.key("signing"), str(key.number), key.to_bytes()),), lambda _: None)


def read_signing_keys(p: Partition) -> Read[tuple[SigningKey, ...]]:
    """Every signing key, by its number."""

    def decode(replies: list[Any]) -> tuple[SigningKey, ...]:
        found = (SigningKey.from_bytes(one, key="signing") for one in pairs(replies[0]).values())
        return tuple(sorted(found, key=lambda one: one.number))

    return Read((("HGETALL", p.key("signing")),), decode)


def drop_signing_key(p: Partition, number: int) -> Read[None]:
    """Deletes a signing key. Safe to repeat."""
    return Read((("HDEL", p.key("signing"), str(number)),), lambda _: None)


def revoke(p: Partition, id: str, until: int, now: int) -> Read[None]:
    """Notes that a token counts no more, and forgets those that have expired since. Times are in milliseconds."""
    name = p.key("revoked")
    return Read((("ZREMRANGEBYSCORE", name, "-inf", now), ("ZADD", name, until, id)), lambda _: None)


def is_revoked(p: Partition, id: str) -> Read[bool]:
    """Whether a token was taken back."""
    return Read((("ZSCORE", p.key("revoked"), id),), lambda replies: replies[0] is not None)
