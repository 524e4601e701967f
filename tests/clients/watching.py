"""Workers, sweepers and readers that are said to be there, and records that somebody has damaged."""

from datetime import timedelta
from typing import Any, Final

from broker import WorkerInfo
from broker.store.commands import sweep
from broker.store.commands.sweep import Right, There
from broker.store.commands.values import Command

LONG: Final = timedelta(minutes=5)


def place(broker: Any) -> Any:
    """The one partition of the broker's namespace."""
    return broker._link.space.partition(0)


def works(broker: Any, name: str = "w-1", **more: Any) -> Command[There]:
    """A worker says that it is there."""
    told: dict[str, Any] = {
        "queue": "agents",
        "agents": ("support",),
        "concurrency": 4,
        "host": "h",
        "pid": 7,
    } | more
    return sweep.register(place(broker), name, WorkerInfo(name=name, **told).to_bytes())


def sweeps(broker: Any, name: str = "s-1") -> Command[Right | None]:
    """A process sweeps, for some minutes."""
    return sweep.sweep_right(place(broker), f"d {name}", LONG)


def reads(broker: Any, group: str = "approvals") -> tuple[Any, ...]:
    """The command by which a group begins to read the interrupts doorbell."""
    return ("XGROUP", "CREATE", place(broker).key("interrupts"), group, "0", "MKSTREAM")
