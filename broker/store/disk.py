"""How a write gets to a server's disk, and how it is known to be there before anybody is told of it (P1).

Under `appendfsync always` the reply itself follows the fsync, on both families. `WAITAOF` waits for the fsync on Redis;
Valkey acknowledges it before, so there it proves nothing. Both were held against a server whose fsync was stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from ..core.durability import Durability
from ..core.outcomes import Full, Invalid, NotAllowed, NotDurable, Told
from ..errors import InvalidInput, Refused, UnsuitableServer
from .commands.values import Arg, pairs, text
from .keys import Partition

T = TypeVar("T")

ASK: Final = ("CONFIG", "GET", "appendonly", "appendfsync", "no-appendfsync-on-rewrite")
OLDEST_THAT_WAITS: Final = (7, 2)

# WAITAOF counts what its own connection wrote, and a repeat or a refusal writes nothing: so this is written before it.
# A script, since a plain write of a value is refused at the server's memory limit, where answers still go through.
TOUCH: Final = "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], '')"


class Barrier(StrEnum):
    """What a confirmed call rests on."""

    NONE = "none"
    """Nothing: the reply is enough, at class memory."""
    ASKED = "asked"
    """The reply follows the fsync; the server is asked with every call whether that still is its way."""
    KEPT = "kept"
    """The same, on the word of the namespace's record: this user may not ask."""
    WAITED = "waited"
    """A write of the connection's own, and a wait for its fsync."""

    def commands(self, p: Partition, within: timedelta) -> tuple[tuple[Arg, ...], ...]:
        """What is sent behind the scripts, on the same connection."""
        match self:
            case Barrier.ASKED:
                return (ASK,)
            case Barrier.WAITED:
                wait = ("WAITAOF", 1, 0, max(1, round(within.total_seconds() * 1000)))
                return (("EVAL", TOUCH, 1, p.key("touch")), wait)
            case _:
                return ()

    def is_passed(self, replies: Sequence[Any]) -> bool:
        """Whether the replies to those commands say that everything before them is on the disk."""
        match self, replies:
            case Barrier.ASKED, [told]:
                return not isinstance(told, Exception) and _always(pairs(told))
            case Barrier.WAITED, [touched, [local, *_]]:
                return not isinstance(touched, Exception) and int(local) >= 1
            case Barrier.KEPT, []:
                return True
            case _:
                return False


def _always(config: Mapping[str, Any]) -> bool:
    found = [text(config.get(name, "")) for name in ASK[2:]]
    return found == ["yes", "always", "no"]


@dataclass(frozen=True, slots=True)
class Disk:
    """What a server says of its way to the disk. `policy` is empty where this user may not ask."""

    waits: bool = False
    logs: bool = False
    policy: str = ""
    is_always: bool = False

    @classmethod
    def of(cls, info: Mapping[str, Any], version: tuple[int, ...]) -> "Disk":
        """From what `INFO` and `CONFIG GET` said together."""
        waits = "valkey_version" not in info and version >= OLDEST_THAT_WAITS
        logs = text(info.get("appendonly", "")) == "yes" or text(info.get("aof_enabled", 0)) == "1"
        return cls(waits, logs, text(info.get("appendfsync", "")), _always(info))

    @property
    def strongest(self) -> Durability:
        """The strongest class that costs no wait beyond the reply."""
        return Durability.fsynced() if self.is_always else Durability.memory()

    def barrier(self, wanted: Durability, *, kept: bool) -> Barrier:
        """What confirmed calls of a class rest on. `kept`: the namespace has the class already.

        Raises `UnsuitableServer` with the remedy where nothing would hold.
        """
        if wanted == Durability.memory():
            return Barrier.NONE
        if self.is_always:
            return Barrier.ASKED
        if self.waits and self.logs and self.policy != "no":
            return Barrier.WAITED
        if self.logs and not self.policy and kept:
            return Barrier.KEPT
        raise self._unsuitable()

    def _unsuitable(self) -> UnsuitableServer:
        about = "durability fsynced is wanted, and "
        if not self.logs:
            return UnsuitableServer(
                f"{about}it keeps no append-only file", "Set appendonly yes and appendfsync always"
            )
        if not self.policy:
            return UnsuitableServer(
                f"{about}this user may not ask when it syncs",
                "Allow CONFIG GET, or open the namespace once as one who may",
            )
        if self.policy == "always":
            return UnsuitableServer(
                f"{about}it does not sync while it rewrites its file", "Set no-appendfsync-on-rewrite no"
            )
        return UnsuitableServer(f"{about}its appendfsync is {self.policy}", "Set appendfsync always")


def check_offered(wanted: Durability | None) -> None:
    """Raises `InvalidInput` for a class that this release does not keep."""
    if wanted is not None and wanted.replicas:
        raise InvalidInput("settings.durability", "is not offered by this release", "memory or fsynced")


def told(what: T | BaseException, wanted: Durability, *, reached: bool) -> T | NotDurable | BaseException:
    """What the caller of a confirmed call is told; a fault in the place of what has no outcome.

    What was refused for itself, whatever is stored, is told as it is.
    """
    if isinstance(what, BaseException | Invalid | NotAllowed | Full):
        return what
    if not reached:
        missed = NotDurable(wanted=wanted)
        return missed if isinstance(what, Told) else Refused(missed)
    return what.model_copy(update={"durability": wanted}) if isinstance(what, Told) else what
