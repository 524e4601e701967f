"""Where the client's time goes: the functions that take most of it, operation by operation, by cProfile."""

import asyncio
import cProfile
import pstats
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.variants.broker_calls import NAMESPACE
from broker import AsyncBroker, Principal
from broker.testing import ServerProcess

from .operations import all_operations

WARM_UP: Final = 20
PACKAGES: Final = ("broker", "redis", "hiredis", "pydantic", "msgpack", "asyncio")


class Profiles:
    """A profile for each operation."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, cProfile.Profile]] = {}

    @contextmanager
    def around(self, name: str, count: int) -> Iterator[None]:
        """Profiles what is called meanwhile."""
        profile = cProfile.Profile()
        profile.enable()
        yield
        profile.disable()
        self.found[name] = (count, profile)


def run(count: int, lines: int) -> str:
    """A report: for each operation the functions with most time of their own, in microseconds per call."""
    profiles = Profiles()

    async def main(url: str) -> None:
        async with AsyncBroker(url, namespace=NAMESPACE, by=Principal.local("profile")) as broker:
            await all_operations(broker, 0, WARM_UP, profiles.around)
            await all_operations(broker, 2 * WARM_UP, count, profiles.around)

    with ServerProcess(port=0) as server:
        asyncio.run(main(server.tcp_url))
    return "\n".join(
        _report(name, calls, profile, lines) for name, (calls, profile) in profiles.found.items()
    )


def _report(name: str, calls: int, profile: cProfile.Profile, lines: int) -> str:
    stats: Any = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    rows = sorted(stats.items(), key=lambda row: -row[1][2])
    waiting = ("select.epoll", "select.kqueue", "select.poll")
    rows = [row for row in rows if not any(word in row[0][2] for word in waiting)]
    total = sum(row[1][2] for row in rows)
    out = [f"{name}: {total / calls * 1e6:.0f} us per call under the profiler"]
    out += [
        f"  {own / calls * 1e6:7.1f} us  {times / calls:6.1f} x  {_place(where)}"
        for where, (_, times, own, _, _) in rows[:lines]
    ]
    return "\n".join(out)


def _place(where: tuple[str, int, str]) -> str:
    file, line, function = where
    if line == 0:
        return function
    parts = Path(file).parts
    start = next((n for n, part in enumerate(parts) if part in PACKAGES), len(parts) - 1)
    return f"{'/'.join(parts[start:])}:{line} {function}"
