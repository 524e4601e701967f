"""Ids the broker makes. Each carries 16 bits of its session's hash, so that an id alone finds its partition."""

import hashlib
import re
import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

SEPARATOR: Final = "\x1f"
"""Between the parts that are hashed together; no id may hold it."""

_OURS = re.compile(r"(?:run_([0-9a-f]{4})[0-9a-v]{26}|int_([0-9a-f]{4})[0-9a-f]{32})")


@lru_cache(maxsize=1024)
def session_hash(session: str) -> int:
    """16 stable bits of a session id; the partition is this modulo the number of partitions."""
    return int.from_bytes(hashlib.sha256(session.encode()).digest()[:2])


def bits_of(id: str) -> int | None:
    """The session bits an id of ours carries, or None for a foreign id (an alias inside its session)."""
    match = _OURS.fullmatch(id)
    return int(match[1] or match[2], 16) if match else None


def new_run_id(session: str, *, namespace: str, key: str | None = None) -> str:
    """A run id: random, or with a `key` always the same for (namespace, session, key), so that a start repeats."""
    if key is None:
        raw = secrets.token_bytes(16)
    else:
        raw = hashlib.sha256(SEPARATOR.join(("run", namespace, session, key)).encode()).digest()[:16]
    return f"run_{session_hash(session):04x}{base32(raw)}"


_PAIRS: Final = tuple(
    a + b for a in "0123456789abcdefghijklmnopqrstuv" for b in "0123456789abcdefghijklmnopqrstuv"
)
"""Ten bits as two digits."""


def base32(raw: bytes) -> str:
    """16 bytes as 26 digits of the extended-hex alphabet (RFC 4648), which keeps their order."""
    number = int.from_bytes(raw) << 2
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])


def interrupt_id(
    *,
    namespace: str,
    session: str,
    run_id: str,
    seq: int,
    agent_path: Sequence[str],
    call_key: str,
    kind_type: str,
    content_digest: str,
) -> str:
    """The id of an interrupt, computable before the pause: same point and content, same id; else another one.

    `call_key` is the framework's id of the interrupt or its call id, or its place in the suspension.
    """
    parts = (
        "int",
        namespace,
        session,
        run_id,
        str(seq),
        *agent_path,
        "",
        call_key,
        kind_type,
        content_digest,
    )
    return f"int_{session_hash(session):04x}{hashlib.sha256(SEPARATOR.join(parts).encode()).hexdigest()[:32]}"


def new_nonce() -> str:
    """16 random hex characters: what makes a lease token its holder's own, also after the server forgot."""
    return secrets.token_hex(8)
