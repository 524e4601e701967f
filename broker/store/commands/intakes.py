"""Senders of signed requests, in the first partition: a hash, name -> record. No worker may read it.

`seen:<name>` is a sorted set of the requests of the last minutes, by their time: none counts twice.
"""

from typing import Any

from ...core.intakes import Intake
from ..keys import Partition
from .values import Read, pairs


def put_intake(p: Partition, intake: Intake) -> Read[None]:
    """Stores one. Safe to repeat."""
    return Read((("HSET", p.key("intakes"), intake.name, intake.to_bytes()),), lambda _: None)


def add_intake(p: Partition, intake: Intake) -> Read[bool]:
    """Stores one unless there is one of that name; whether it did."""
    command = ("HSETNX", p.key("intakes"), intake.name, intake.to_bytes())
    return Read((command,), lambda replies: int(replies[0]) == 1)


def read_intake(p: Partition, name: str) -> Read[Intake | None]:
    """One by its name; None where there is none."""

    def decode(replies: list[Any]) -> Intake | None:
        return Intake.from_bytes(replies[0], key="intakes") if replies[0] else None

    return Read((("HGET", p.key("intakes"), name),), decode)


def read_intakes(p: Partition) -> Read[tuple[Intake, ...]]:
    """Every one, by its name."""

    def decode(replies: list[Any]) -> tuple[Intake, ...]:
        found = (Intake.from_bytes(one, key="intakes") for one in pairs(replies[0]).values())
        return tuple(sorted(found, key=lambda one: one.name))

    return Read((("HGETALL", p.key("intakes")),), decode)


def drop_intake(p: Partition, name: str) -> Read[None]:
    """Deletes one. Safe to repeat."""
    return Read((("HDEL", p.key("intakes"), name), ("DEL", p.key("seen", name))), lambda _: None)


def see(p: Partition, name: str, request: str, now: int, oldest: int) -> Read[bool]:
    """Whether a request is seen for the first time; those before `oldest` are forgotten (milliseconds)."""
    key = p.key("seen", name)
    commands = (("ZREMRANGEBYSCORE", key, "-inf", oldest), ("ZADD", key, "NX", now, request))
    return Read(commands, lambda replies: int(replies[1]) == 1)
