"""Floor 1, pure: the values, their wire form and the rules. Imports no Redis, asyncio, threading or socket."""
