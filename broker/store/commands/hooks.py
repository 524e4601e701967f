"""Whom to tell what happened, in the first partition of a namespace; no worker may read any of it.

`hooks` is a hash: id -> record. Each has a hash of its posts, `posts:<hook>` (id -> record), and two sorted sets that
name them: `due:<hook>` by when they are sent next (milliseconds), `lost:<hook>` by when they were given up.
"""

from collections.abc import Sequence
from typing import Any, Final

from ...core.hooks import Hook, Post
from ..keys import Partition
from .values import Arg, Read, pairs, text

MOST_DUE: Final = 10_000
"""So many posts wait for one address; more of them are given up at once."""
MOST_LOST: Final = 10_000
"""So many posts that were given up are kept for each address; the oldest go first."""

# A post that is there already stays as it is.
_PUT: Final = """#!lua
local posts, due, lost, hooks = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if not redis.call('HGET', hooks, ARGV[1]) then return 0 end
for n = 5, #ARGV, 2 do
  if redis.call('HSETNX', posts, ARGV[n], ARGV[n + 1]) == 1 then
    local full = redis.call('ZCARD', due) >= tonumber(ARGV[3])
    redis.call('ZADD', full and lost or due, ARGV[2], ARGV[n])
  end
end
for _, old in ipairs(redis.call('ZRANGE', lost, 0, -1 - tonumber(ARGV[4]))) do
  redis.call('ZREM', lost, old)
  redis.call('HDEL', posts, old)
end
return 1
"""
# Later, or given up: only what is still there, since its address may have been deleted meanwhile.
_MOVE: Final = """#!lua flags=allow-oom
local posts, from, to = KEYS[1], KEYS[2], KEYS[3]
local moved = 0
for n = 2, #ARGV, 2 do
  if redis.call('ZREM', from, ARGV[n]) == 1 then
    redis.call('HSET', posts, ARGV[n], ARGV[n + 1])
    redis.call('ZADD', to, ARGV[1], ARGV[n])
    moved = moved + 1
  end
end
return moved
"""


def put_hook(p: Partition, hook: Hook) -> Read[None]:
    """Stores a hook. Safe to repeat."""
    return Read((("HSET", p.key("hooks"), hook.id, hook.to_bytes()),), lambda _: None)


def read_hooks(p: Partition) -> Read[tuple[Hook, ...]]:
    """Every hook, the oldest first."""

    def decode(replies: list[Any]) -> tuple[Hook, ...]:
        found = (Hook.from_bytes(one, key="hooks") for one in pairs(replies[0]).values())
        return tuple(sorted(found, key=lambda one: (one.created_at, one.id)))

    return Read((("HGETALL", p.key("hooks")),), decode)


def read_hook(p: Partition, id: str) -> Read[Hook | None]:
    """One hook; None where there is none."""

    def decode(replies: list[Any]) -> Hook | None:
        return Hook.from_bytes(replies[0], key="hooks") if replies[0] else None

    return Read((("HGET", p.key("hooks"), id),), decode)


def drop_hook(p: Partition, id: str) -> Read[None]:
    """Deletes a hook, with what waits for it. Safe to repeat."""
    names = [p.key(kind, id) for kind in ("posts", "due", "lost")]
    return Read((("HDEL", p.key("hooks"), id), ("DEL", *names)), lambda _: None)


def put_posts(p: Partition, hook: str, posts: Sequence[Post], now: int) -> Read[None]:
    """Stores posts that are due at `now` (milliseconds). Safe to repeat while they wait."""
    keys = (*(p.key(kind, hook) for kind in ("posts", "due", "lost")), p.key("hooks"))
    rows: list[Arg] = [part for one in posts for part in (one.id, one.to_bytes())]
    command: tuple[Arg, ...] = ("EVAL", _PUT, 4, *keys, hook, now, MOST_DUE, MOST_LOST, *rows)
    return Read((command,) if posts else (), lambda _: None)


def read_due(p: Partition, hooks: Sequence[str], now: int, most: int) -> Read[dict[str, tuple[str, ...]]]:
    """The posts of each hook that are due at `now` (milliseconds), up to `most` of each, the first to be due first."""
    commands = tuple(("ZRANGEBYSCORE", p.key("due", one), "-inf", now, "LIMIT", 0, most) for one in hooks)

    def decode(replies: list[Any]) -> dict[str, tuple[str, ...]]:
        return {one: tuple(map(text, found)) for one, found in zip(hooks, replies, strict=True)}

    return Read(commands, decode)


def read_lost(p: Partition, hook: str, most: int) -> Read[tuple[str, ...]]:
    """The posts of a hook that were given up, the first to be given up first."""
    return Read((("ZRANGE", p.key("lost", hook), 0, most - 1),), lambda replies: tuple(map(text, replies[0])))


def read_posts(p: Partition, hook: str, ids: Sequence[str]) -> Read[tuple[Post, ...]]:
    """Posts by their ids, those that are there."""

    def decode(replies: list[Any]) -> tuple[Post, ...]:
        return tuple(Post.from_bytes(one, key="posts") for one in replies[0] if one)

    return Read((("HMGET", p.key("posts", hook), *ids),) if ids else (), lambda r: decode(r) if r else ())


def move_posts(p: Partition, hook: str, posts: Sequence[Post], way: tuple[str, str], at: int) -> Read[int]:
    """Moves posts between `due` and `lost`, or to a later time; how many were still there."""
    keys = [p.key("posts", hook), *(p.key(kind, hook) for kind in way)]
    rows: list[Arg] = [part for one in posts for part in (one.id, one.to_bytes())]
    command: tuple[Arg, ...] = ("EVAL", _MOVE, 3, *keys, at, *rows)
    return Read((command,), lambda replies: int(replies[0]))


def drop_post(p: Partition, hook: str, id: str) -> Read[None]:
    """Forgets a post that has arrived. Safe to repeat."""
    return Read((("ZREM", p.key("due", hook), id), ("HDEL", p.key("posts", hook), id)), lambda _: None)
