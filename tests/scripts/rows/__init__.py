"""How each row of tests/protocol.toml is set up on a real server, and done."""

from . import answers, journal, leases, pauses, runs, sweeps
from .case import GUARDED, ROWS, Case, Key

__all__ = ["GUARDED", "ROWS", "Case", "Key", "answers", "journal", "leases", "pauses", "runs", "sweeps"]
