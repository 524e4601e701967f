"""The measures beside `lifecycle` and `latency`: one module each, all with a `run(how)`."""

from . import (
    durable,
    fleet,
    growth,
    idle,
    journal,
    memory,
    recover,
    scale,
    sync_call,
    wake,
)
from .how import Found, How, Measure

SHORT: dict[str, Measure] = {
    "sync_call": sync_call.run,
    "bytes_open_4k": memory.of_4k,
    "bytes_open_airline": memory.of_runs,
    "journal_call": journal.run,
    "idle_worker": idle.run,
}
"""What takes seconds."""

LONG: dict[str, Measure] = {
    "growth_100k": growth.to_100k,
    "growth_1m": growth.to_1m,
    "scale_out": scale.run,
    "wake_10k": wake.run,
    "fleet_1000": fleet.run,
    "durable": durable.run,
    "recover": recover.run,
}
"""What takes minutes."""

__all__ = ["LONG", "SHORT", "Found", "How", "Measure"]
