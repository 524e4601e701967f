"""Where the client's time goes: the functions that take most of it, operation by operation, by cProfile.

In processor time, so that neither waiting for the server nor other processes count; what is written in C counts for the
function that calls it, since timing every small call apart would drown the rest.
"""

import asyncio
import cProfile
import pstats
import time
from collections import Counter
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
        profile = cProfile.Profile(time.process_time, builtins=False)
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
    total = sum(row[1][2] for row in rows)
    shares: Counter[str] = Counter()
    for where, (_, _, own, _, _) in rows:
        shares[_package(where[0])] += own / total
    parts = ", ".join(f"{package} {share:.0%}" for package, share in shares.most_common(5))
    out = [f"{name}: {total / calls * 1e6:.0f} us per call under the profiler; {parts}"]
    out += [
        f"  {own / calls * 1e6:7.1f} us  {times / calls:6.1f} x  {_place(where)}"
        for where, (_, times, own, _, _) in rows[:lines]
    ]
    return "\n".join(out)


def _place(where: tuple[str, int, str]) -> str:
    file, line, function = where
    return f"{'/'.join(_inside(file))}:{line} {function}"


def _package(file: str) -> str:
    inside = _inside(file)
    return inside[0] if inside[0] in PACKAGES else "other"


def _inside(file: str) -> tuple[str, ...]:
    """The path of a module from its package on."""
    parts = Path(file).parts
    return parts[next((n for n, part in enumerate(parts) if part in PACKAGES), len(parts) - 1) :]
