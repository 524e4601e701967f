"""How each row of tests/protocol.toml is set up on a real server, and done."""

from . import answers, pauses, runs, sweeps
from .case import ROWS, Case, Key

__all__ = ["ROWS", "Case", "Key", "answers", "pauses", "runs", "sweeps"]
