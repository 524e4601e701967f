"""Access rules by role: what a worker, a decider, a gateway and an operator may do, as the server enforces it.

The rules are patterns over the key names of `keys.SEGMENTS`, so they hold inside scripts too. A worker may read
verdicts and cannot write one: neither a script nor a command of its own makes an approval. A decider answers, and its
sweeper gives default answers and deletes what retention asks for. A gateway does the same for whoever shows it a
credential, and nobody below it reads what those rest on. An operator may also mend doorbells by hand.
"""

from enum import StrEnum
from typing import Final

from ..core.limits import check_namespace
from .keys import SEGMENTS


class Role(StrEnum):
    """Who uses a credential."""

    WORKER = "worker"
    DECIDER = "decider"
    GATEWAY = "gateway"
    OPERATOR = "operator"


_NO_KEYS: Final = frozenset({"settled", "stir", "wake", "clock", "meta"})
"""Segments that are no keys of a partition: channels, the clock of tests, and the settings (see `_patterns`)."""
_OUTSIDE: Final = (Role.WORKER, Role.DECIDER)
_PRIVATE: Final = frozenset(
    {"credentials", "signing", "revoked", "rates", "hooks", "posts", "due", "lost", "intakes", "seen"}
)
"""Segments for gateways and operators: whoever reads a signing key can sign, whoever writes a key may do anything."""
_FOLLOWED: Final = frozenset({"cursors", "notes", "holders"})
"""Segments of those who follow what happens: a worker follows nothing."""

# What the scripts run, what readers and followers of doorbells need, and what the client says when it connects.
COMMANDS: Final[tuple[str, ...]] = (
    *("eval", "evalsha", "type", "time", "publish"),
    *("get", "set", "del", "exists", "mset"),
    *("hget", "hgetall", "hkeys", "hlen", "hmget", "hset", "hsetnx", "hdel"),
    *("lindex", "llen", "lrange", "ltrim", "rpush", "sadd", "scard", "smembers", "spop", "srem"),
    *("zadd", "zcard", "zrange", "zrangebyscore", "zrem", "zremrangebyrank", "zremrangebyscore", "zscore"),
    *("xack", "xadd", "xautoclaim", "xgroup|create", "xgroup|delconsumer", "xinfo|groups", "xpending"),
    *("xrange", "xread", "xreadgroup", "xtrim"),
    *("ping", "info", "select", "subscribe", "unsubscribe", "client|setname"),
)
COUNTING: Final = ("hincrby", "expire")
FOLLOWING: Final = ("xinfo|stream",)
"""What following events needs beside those: a worker follows none."""
MENDING: Final = ("xinfo|consumers", "xgroup|setid", "xgroup|destroy", "xlen", "memory|usage")


def acl_rules(namespace: str, role: Role, *, waits: bool = False) -> tuple[str, ...]:
    """The rules of a user of that role, as `ACL SETUSER` and ACL files take them; name and password are the caller's.

    They name every key pattern and command; nothing else is allowed. `waits`: the namespace has the class `fsynced` by
    WAITAOF, which older servers do not know. Raises `InvalidInput` for a bad namespace.
    """
    check_namespace(namespace)
    counting = () if role in _OUTSIDE else COUNTING
    following = () if role is Role.WORKER else FOLLOWING
    mending = MENDING if role is Role.OPERATOR else ()
    commands = (*COMMANDS, *counting, *following, *mending, *(("waitaof",) if waits else ()))
    allowed = tuple(f"+{command}" for command in commands)
    return ("resetkeys", "resetchannels", *_patterns(namespace, role), "nocommands", *allowed)


def _patterns(namespace: str, role: Role) -> tuple[str, ...]:
    partition = f"{{{namespace}:*}}"
    found = [f"&{partition}{SEGMENTS[channel]}*" for channel in ("settled", "stir", "wake")]
    found.append(f"~{{{namespace}}}{SEGMENTS['meta']}")
    for kind, segment in SEGMENTS.items():
        if kind not in _NO_KEYS and not _is_private(role, kind):
            access = "%R~" if role is Role.WORKER and kind == "verdict" else "~"
            found.append(f"{access}{partition}{segment}{'*' if segment.endswith(':') else ''}")
    return tuple(found)


def _is_private(role: Role, kind: str) -> bool:
    return (role in _OUTSIDE and kind in _PRIVATE) or (role is Role.WORKER and kind in _FOLLOWED)
