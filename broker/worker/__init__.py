"""The worker: runs agents, keeps its leases, and sweeps."""

from .main import Worker
from .sweeper import Sweeper

__all__ = ["Sweeper", "Worker"]
