"""Agent frameworks whose runs the broker keeps: one module each, imported by its users only, with an extra of its own.

An adapter turns what its framework does at a pause into a suspension, and the answers into what the framework goes on
from. `Described`, `Answered` and `Parked` are the words that adapters share; `effect_key` is for the tools they run.
`Resumable` is what to begin with for a framework without an adapter.
"""

from ._contract import Answered, Described, Finished, Framework, Parked, current_run, drive, effect_key, park
from ._resumable import Resumable

__all__ = [
    "Answered",
    "Described",
    "Finished",
    "Framework",
    "Parked",
    "Resumable",
    "current_run",
    "drive",
    "effect_key",
    "park",
]
