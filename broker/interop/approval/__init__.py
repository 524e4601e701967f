"""Approval across the four systems: which calls are asked about by all policies together, and what silence means."""

from .policies import Facts, asks, asks_any, gate
from .timeouts import escalated, with_timeout

__all__ = ["Facts", "asks", "asks_any", "escalated", "gate", "with_timeout"]
