"""A namespace's own settings on the server, and what must be true of the server before anything is written to it."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from ..core.durability import Durability
from ..core.settings import Settings
from ..core.wire import WIRE_VERSION
from ..errors import InvalidInput, NotPermitted, UnsuitableServer, WrongNamespace
from .commands.values import Command, Item, Reply, pairs, text
from .disk import ASK, Disk
from .keys import Keyspace, Partition, meta_key

log: logging.Logger = logging.getLogger("broker")

SECTIONS: Final = ("server", "memory", "cluster", "replication", "persistence")
SERVER_FACTS: Final = (*(("INFO", name) for name in SECTIONS), ASK)
KEPT: Final = ("keep_settled", "keep_history", "keep_parked", "retry_window")
OFFERED: Final = ("memory", "fsynced")
MOST_PARTITIONS: Final = 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client asks a namespace to be. None: whatever it is, or the defaults where it is new."""

    partitions: int | None = None
    settings: Settings | None = None

    def __post_init__(self) -> None:
        if self.partitions is not None and not 1 <= self.partitions <= MOST_PARTITIONS:
            raise InvalidInput("partitions", "is out of range", f"1 to {MOST_PARTITIONS}")


@dataclass(frozen=True, slots=True)
class Found:
    """What a namespace is: its key names and its settings."""

    space: Keyspace
    settings: Settings
    durability: Durability


def check_server(facts: Sequence[Any]) -> Disk:
    """How the server gets writes to its disk. What it may not be asked is passed over.

    Raises `UnsuitableServer` for a server that cannot keep the promises.
    """
    info: dict[str, Any] = {}
    for part in facts:
        if isinstance(part, dict):
            info.update({text(name): value for name, value in part.items()})
        elif isinstance(part, Exception) and str(part).startswith(("NOAUTH", "WRONGPASS")):
            raise NotPermitted(str(part))
    version = text(info.get("valkey_version") or info.get("redis_version") or "")
    parts = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    oldest = (7, 2) if "valkey_version" in info else (7, 0)
    if parts and parts < oldest:
        raise UnsuitableServer(f"it is version {version}", "Redis 7.0 or Valkey 7.2 is the oldest that works")
    policy = text(info.get("maxmemory_policy") or "noeviction")
    if policy.startswith("allkeys-"):
        raise UnsuitableServer(
            f"its maxmemory-policy is {policy}, which deletes pauses", "Set it to noeviction"
        )
    if policy.startswith("volatile-"):
        log.warning("maxmemory-policy is %s; noeviction is advised", policy)
    if str(info.get("cluster_enabled", 0)) == "1":
        raise UnsuitableServer("it is a node of a cluster", "This release connects to single servers")
    if text(info.get("role") or "master") != "master":
        raise UnsuitableServer("it is a replica", "Connect to its primary")
    return Disk.of(info, parts)


def _ms(span: timedelta) -> int:
    return round(span.total_seconds() * 1000)


def read(namespace: str) -> tuple[str, str]:
    """The command that reads the settings of a namespace."""
    return ("HGETALL", meta_key(namespace))


def fields(reply: Any) -> dict[str, str]:
    """The settings in the reply to `read`; empty where the namespace is new."""
    return {name: text(value) for name, value in pairs(reply).items()}


def defaults(wanted: Wanted, durability: Durability) -> dict[str, str]:
    """The settings a namespace gets when it is created, with that class of durability."""
    settings = wanted.settings or Settings()
    told = {"wire": str(WIRE_VERSION), "epoch": "1", "partitions": str(wanted.partitions or 1)}
    told |= {name: str(_ms(getattr(settings, name))) for name in KEPT}
    return told | {"durability": str(durability)}


def create(namespace: str, wanted: Wanted, durability: Durability | None = None) -> Command[dict[str, str]]:
    """The settings of a namespace, created where it is new, then with that class of durability (default memory)."""
    told = defaults(wanted, durability or Durability.memory())
    flat = [part for pair in told.items() for part in pair]
    key = meta_key(namespace)
    partition = Partition(key.removesuffix(":meta"))

    def decode(_: int, reply: Reply) -> dict[str, str]:
        return fields(reply[1:])

    return Command("namespace", partition, (Item((key,), (len(told), *flat)),), decode)


def _number(found: dict[str, str], name: str) -> int:
    """A number, 0 where another program wrote something else."""
    value = found.get(name, "")
    return int(value) if value.isdecimal() and len(value) < 16 else 0  # noqa: PLR2004 - what a timedelta holds


def durability(wanted: Wanted, disk: Disk | None) -> Durability:
    """The class a new namespace gets; raises `UnsuitableServer` where it cannot be had. Without a `disk` it was had."""
    asked = wanted.settings.durability if wanted.settings else None
    if disk is None:
        return asked or Durability.memory()
    chosen = asked or disk.strongest
    disk.barrier(chosen, kept=False)
    return chosen


def check_namespace(namespace: str, wanted: Wanted, found: dict[str, str]) -> Found:
    """What the namespace is. Raises `WrongNamespace` where that is not what the client asked for."""
    wire, count = _number(found, "wire"), _number(found, "partitions")
    if not 0 < wire <= WIRE_VERSION:
        raise WrongNamespace(namespace, f"has wire version {wire}", f"up to {WIRE_VERSION} in this release")
    if not 1 <= count <= MOST_PARTITIONS:
        raise WrongNamespace(namespace, f"has {count} partitions", f"1 to {MOST_PARTITIONS}")
    if wanted.partitions is not None and wanted.partitions != count:
        raise WrongNamespace(
            namespace, f"has {count} partitions and {wanted.partitions} were asked for", str(count)
        )
    kept: dict[str, Any] = {
        name: timedelta(milliseconds=_number(found, name)) for name in KEPT if name in found
    }
    if not all(kept.values()):
        raise WrongNamespace(namespace, "has spans that cannot be read", "whole milliseconds above zero")
    kept["durability"] = _durability(namespace, found.get("durability", "memory"))
    space = Keyspace(namespace, count)
    if wanted.settings is None:
        return Found(space, Settings(**kept), kept["durability"])
    for name, value in kept.items():
        asked = getattr(wanted.settings, name)
        if asked != value and (asked is not None or name != "durability"):
            raise WrongNamespace(namespace, f"has {name} {value} and {asked} was asked for", f"{value}")
    settings = wanted.settings.model_copy(update={"durability": kept["durability"]})
    return Found(space, settings, kept["durability"])


def _durability(namespace: str, kept: str) -> Durability:
    if kept not in OFFERED:
        raise WrongNamespace(
            namespace, f"has durability {kept!r}, which is not offered by this release", " or ".join(OFFERED)
        )
    return Durability.parse(kept)


def check_commands(space: Keyspace, *, decider: bool) -> Command[str]:
    """Empty when this user may do everything the scripts do (with verdicts, for a decider), else what is refused."""
    p = space.partition(0)
    keys = [p.key("scratch", name) for name in "shzlxm"]
    if decider:
        keys.append(p.key("verdict", "scratch"))

    def decode(_: int, reply: Reply) -> str:
        return "" if text(reply[0]) == "ok" else f"{text(reply[1])}: {text(reply[2])}"

    return Command("check", p, (Item(tuple(keys), (int(decider),)),), decode)
