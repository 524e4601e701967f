"""What the two colours differ in: this one is for asyncio. Hand-written, as its twin is."""

from ...._async._runtime import invoke
from ...._async.client import AsyncBroker
from ...._async.run import Run

__all__ = ["AsyncBroker", "Run", "invoke"]
