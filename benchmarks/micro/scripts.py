"""What one call of each operation costs: in the script, in the commands it calls, outside of it, and on the client.

The server's own counters (`INFO commandstats`) give the time of every command, those in scripts among them; `MONITOR`
tells for a few calls which commands came from a script. What a script takes beyond its commands is its overhead. The
server counts elapsed time, so each figure is the best of a few repeats: those that other processes disturbed least.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

import redis

from benchmarks.machine import cpu_seconds, server_info
from benchmarks.stats import rounded
from benchmarks.variants.broker_calls import NAMESPACE
from broker import AsyncBroker, Principal
from broker.testing import ServerProcess

from .operations import all_operations

SAMPLE: Final = 3
WARM_UP: Final = 20
SCRIPTS: Final = frozenset({"evalsha", "eval"})
GREETINGS: Final = frozenset({"hello", "client", "ping"})
"""What a new connection says before its first command."""
MARK: Final = "end of an operation"


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds for one call, and how many commands it is."""

    client_us: float
    """Processor time of the calling process."""
    server_us: float
    """Processor time of the server, with its network and its append-only file."""
    script_us: float
    """In scripts, as the server counts it: `commands_us` and `overhead_us` together."""
    commands_us: float
    """In the commands that scripts call."""
    overhead_us: float
    """In scripts outside of their commands."""
    reads_us: float
    """In commands sent beside scripts."""
    scripts: float
    """Script calls."""
    commands: float
    """Commands that they call."""
    reads: float
    """Commands sent beside them."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """How often each command came from scripts and how often from clients, for one call."""

    inside: Counter[str]
    outside: Counter[str]


class Watcher:
    """Watches the commands of a few calls with MONITOR."""

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url)
        self.seen: dict[str, Traffic] = {}

    def close(self) -> None:
        """Gives the connection back."""
        self._client.close()

    @contextmanager
    def around(self, name: str, count: int) -> Iterator[None]:
        """Counts what is sent meanwhile. The calls are the only traffic of the server."""
        found = Traffic(Counter(), Counter())
        with self._client.monitor() as monitor:
            yield
            self._client.echo(MARK)
            for entry in monitor.listen():
                word = str(entry["command"]).split(" ", 1)[0].lower()
                if MARK in str(entry["command"]):
                    break
                (found.inside if entry["client_type"] == "lua" else found.outside)[word] += 1
        self.seen[name] = Traffic(_divided(found.inside, count), _divided(found.outside, count))


class Meter:
    """Measures many calls with the server's counters and the processors' clocks."""

    def __init__(self, server: ServerProcess, seen: dict[str, Traffic]) -> None:
        self._server = server
        self._seen = seen
        self.costs: dict[str, Cost] = {}

    @contextmanager
    def around(self, name: str, count: int) -> Iterator[None]:
        """Measures what is called meanwhile."""
        self._server.call("CONFIG", "RESETSTAT")
        client, server = time.process_time(), cpu_seconds(self._server.pid)
        yield
        client, server = time.process_time() - client, cpu_seconds(self._server.pid) - server
        stats = _command_stats(self._server)
        traffic = self._seen.get(name, Traffic(Counter(), Counter()))
        self.costs[name] = _cost(count, client, server, stats, traffic)


def _cost(
    count: int, client: float, server: float, stats: dict[str, tuple[int, float]], traffic: Traffic
) -> Cost:
    each = {word: spent / calls for word, (calls, spent) in stats.items() if calls}
    inside = sum(each.get(word, 0.0) * times for word, times in traffic.inside.items())
    outside = {word: times for word, times in traffic.outside.items() if word not in SCRIPTS | GREETINGS}
    scripts = sum(spent for word, (_, spent) in stats.items() if word in SCRIPTS) / count
    found = Cost(
        client_us=client / count * 1e6,
        server_us=server / count * 1e6,
        script_us=scripts,
        commands_us=inside,
        overhead_us=max(scripts - inside, 0.0),
        reads_us=sum(each.get(word, 0.0) * times for word, times in outside.items()),
        scripts=sum(calls for word, (calls, _) in stats.items() if word in SCRIPTS) / count,
        commands=sum(traffic.inside.values()),
        reads=sum(outside.values()),
    )
    return Cost(**{name: rounded(value) for name, value in asdict(found).items()})


def _command_stats(server: ServerProcess) -> dict[str, tuple[int, float]]:
    """Command -> calls and microseconds in it; of commands with several words all forms together."""
    found: dict[str, tuple[int, float]] = {}
    for name, line in server_info(server, "commandstats").items():
        word = name.removeprefix("cmdstat_").partition("|")[0]
        facts = dict(part.split("=", 1) for part in line.split(","))
        calls, spent = found.get(word, (0, 0.0))
        found[word] = (calls + int(facts["calls"]), spent + float(facts["usec"]))
    return found


def _divided(counts: Counter[str], by: int) -> Counter[str]:
    shares: Any = {word: times / by for word, times in counts.items()}
    return Counter(shares)


def run(count: int, repeats: int) -> dict[str, dict[str, float]]:
    """The cost of every operation on a server of its own: the best of so many repeats of so many calls."""
    with ServerProcess(port=0) as server:
        return asyncio.run(_run(server, count, repeats))


async def _run(server: ServerProcess, count: int, repeats: int) -> dict[str, dict[str, float]]:
    async with AsyncBroker(server.tcp_url, namespace=NAMESPACE, by=Principal.local("measure")) as broker:
        watcher = Watcher(server.tcp_url)
        await all_operations(broker, 0, WARM_UP, Meter(server, {}).around)
        await all_operations(broker, 2 * WARM_UP, SAMPLE, watcher.around)
        meters = [Meter(server, watcher.seen) for _ in range(repeats)]
        for number, meter in enumerate(meters):
            await all_operations(broker, 1000 + 2 * number * count, count, meter.around)
    return {name: _best([asdict(meter.costs[name]) for meter in meters]) for name in meters[0].costs}


def _best(costs: list[dict[str, float]]) -> dict[str, float]:
    best = {field: min(cost[field] for cost in costs) for field in costs[0]}
    return best | {"overhead_us": rounded(max(best["script_us"] - best["commands_us"], 0.0))}
