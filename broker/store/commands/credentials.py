"""Who may use a namespace from outside, in its first partition.

API keys are one hash: id -> digest of the secret, then the record; beside it when it retires and was revoked.
Signing keys are another: number -> record.
Tokens that were taken back are a sorted set, by when they would have expired.
"""

import hmac
from datetime import datetime, timedelta
from typing import Any

from ...core.access import ApiKey, Used, digest_of
from ...core.fields import from_ms
from ...core.signing import SigningKey
from ..keys import Partition
from .values import Read, pairs

DIGEST = 32
RETIRES = " retires"
REVOKED = " revoked"


def put_key(p: Partition, key: ApiKey, digest: bytes, until: int | None = None) -> Read[None]:
    """Stores a new key; the one it replaces, if any, retires at `until` (milliseconds). Safe to repeat."""
    old = (f"{key.replaces}{RETIRES}", until) if key.replaces and until is not None else ()
    return Read((("HSET", p.key("credentials"), key.id, digest + key.to_bytes(), *old),), lambda _: None)


def revoke_key(p: Partition, id: str, now: int) -> Read[None]:
    """Notes since when (milliseconds) a key counts no more. Safe to repeat: the first time stays."""
    return Read((("HSETNX", p.key("credentials"), f"{id}{REVOKED}", now),), lambda _: None)


def read_key(p: Partition, id: str, secret: str | None = None) -> Read[ApiKey | None]:
    """A key; None where there is none, or it has another secret than the one given."""

    def decode(replies: list[Any]) -> ApiKey | None:
        stored, retires, revoked = replies[0]
        if (
            not stored
            or len(stored) <= DIGEST
            or (secret is not None and not hmac.compare_digest(stored[:DIGEST], digest_of(secret)))
        ):
            return None
        return _key(stored, retires, revoked)

    return Read((("HMGET", p.key("credentials"), id, f"{id}{RETIRES}", f"{id}{REVOKED}"),), decode)


def read_keys(p: Partition) -> Read[tuple[ApiKey, ...]]:
    """Every key, the oldest first."""

    def decode(replies: list[Any]) -> tuple[ApiKey, ...]:
        rows = pairs(replies[0])
        found = [
            _key(stored, rows.get(f"{id}{RETIRES}"), rows.get(f"{id}{REVOKED}"))
            for id, stored in rows.items() if " " not in id
        ]  # fmt: skip
        return tuple(sorted(found, key=lambda one: (one.created_at, one.id)))

    return Read((("HGETALL", p.key("credentials")),), decode)


def _key(stored: bytes, retires: bytes | None, revoked: bytes | None) -> ApiKey:
    """A key with what has become of it since it was made: that is never written into its record.

    So a revocation cannot be lost to a rotation that happens at the same time.
    """
    key = ApiKey.from_bytes(stored[DIGEST:], key="credentials")
    since = {"retires_at": retires, "revoked_at": revoked}
    return key.model_copy(update={name: from_ms(int(at)) for name, at in since.items() if at is not None})


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


def count_use(p: Partition, credential: str, now: datetime, within: timedelta) -> Read[Used]:
    """Counts one more use of a credential in the present span. Two counters take turns, each gone before its next."""
    span = max(1, round(within.total_seconds()))
    at = int(now.timestamp())
    left = span - at % span
    key = p.key("rates", at // span % 2)
    commands = (("HINCRBY", key, credential, 1), ("EXPIRE", key, left + span // 2))
    return Read(commands, lambda replies: Used(int(replies[0]), left))
