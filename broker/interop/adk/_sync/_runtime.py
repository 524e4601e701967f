"""What the two colours differ in: this one blocks. Hand-written, as its twin is."""

from ...._sync._runtime import invoke
from ...._sync.client import Broker
from ...._sync.run import Run

__all__ = ["Broker", "Run", "invoke"]
