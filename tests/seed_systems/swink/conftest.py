"""What the features' tests have too: brokers of one namespace, as processes have them, and workers."""

from tests.features.conftest import broker, clock, connect, serve, sweep

__all__ = ["broker", "clock", "connect", "serve", "sweep"]
