from tests.features.conftest import broker, clock, connect, serve, sweep

__all__ = ["broker", "clock", "connect", "serve", "sweep"]
