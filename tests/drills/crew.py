"""Worker processes that are killed and replaced, and what is said of the runs that they went on with."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from broker import AsyncBroker, HistoryEntry, RunState, Settings
from broker.testing import await_until
from tests.worker.fleet import LEASE, Agents

from .ledger import Ledger

SETTINGS: Final = Settings(
    lease=LEASE, sweep_every=timedelta(milliseconds=100), backoff_first=timedelta(milliseconds=20),
    backoff_most=timedelta(milliseconds=40), tries=20,
)  # fmt: skip
"""Everything happens soon, and a run outlives more workers than a drill kills."""
SOON: Final = LEASE + timedelta(seconds=10)
"""How soon a run goes on, from the answer or from the death of whoever held it, by the server's clock alone: the lease
runs out, a sweeper notices, another worker leases. A quiet machine needs a third of a second; one that runs other tests
at the same time may need all of it."""


async def server_time(broker: AsyncBroker) -> datetime:
    """What the server's clock says."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=await broker._link._now())


class Crew:
    """So many workers; whoever is killed is replaced. `deaths` has when each died, by its name."""

    def __init__(
        self, broker: AsyncBroker, start: Callable[..., Agents], ledger: Ledger, pace: float
    ) -> None:
        self.broker = broker
        self.ledger = ledger
        self.deaths: dict[str, datetime] = {}
        self.killed: set[int] = set()
        self.alive: list[Agents] = []
        self._start = start
        self._pace = pace
        self._count = 0

    def hire(self, count: int, program: str = "working", **options: Any) -> None:
        """Starts so many more; they come to work when they are up."""
        for _ in range(count):
            self._count += 1
            given = {"name": f"worker-{self._count}", "ledger": str(self.ledger.path), "pace": self._pace}
            self.alive.append(self._start(program=f"tests.drills.agents.{program}", **given, **options))

    async def kill(self, *victims: Agents) -> None:
        for victim in victims:
            self.deaths[victim.name] = await server_time(self.broker)
            self.killed.add(victim.pid)
            victim.kill()
            self.alive.remove(victim)

    async def busy(self) -> Agents | None:
        """A worker that is in the middle of a call, as soon as there is one; None where there is none for a second."""
        try:
            return await await_until(self._in_a_call, 1)
        except TimeoutError:
            return None

    def _in_a_call(self) -> Agents | None:
        by_pid = {agent.pid: agent for agent in self.alive}
        running = [by_pid[line.pid] for line in self.ledger.unrecorded() if line.pid in by_pid]
        return running[-1] if running else None


@dataclass(repr=False)
class Verdict:
    """What a drill counts. All is well where nothing is counted and nothing is slow."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)
    slowest: timedelta = timedelta()

    def __repr__(self) -> str:
        counts = {name: len(found) for name, found in vars(self).items() if isinstance(found, list)}
        some = [one for found in (self.lost, self.doubled, self.unsure) for one in found[:3]]
        return f"{counts}, slowest {self.slowest}; for example {some}"

    @property
    def is_complete(self) -> bool:
        """Nothing is lost, doubled or unsure."""
        return not (self.lost or self.doubled or self.unsure)

    @property
    def is_good(self) -> bool:
        """And nothing was slow."""
        return self.is_complete and self.slowest <= SOON


async def judge(crew: Crew, results: dict[str, Any], *, idle_until: datetime | None = None) -> Verdict:
    """What became of runs, each in a session of its own, whose results are known; nobody worked before `idle_until`."""
    verdict = Verdict(doubled=crew.ledger.doubled(crew.killed))
    for run_id, result in results.items():
        run = await crew.broker.runs.get(run_id)
        if (run.state, run.result) != (RunState.FINISHED, result):
            verdict.lost.append(f"{run_id} is {run.state}: {run.result!r}, {run.errors}")
            continue
        history = await crew.broker.history(run.session_id)
        if [entry.event for entry in history].count("resolved") != 1:
            verdict.doubled.append(f"{run_id} has {[entry.event for entry in history]}")
        verdict.slowest = max([verdict.slowest, *_waits(history, crew.deaths, idle_until)])
    return verdict


def _waits(
    history: Iterable[HistoryEntry], deaths: dict[str, datetime], idle_until: datetime | None
) -> Iterable[timedelta]:
    """How long a run waited for a worker: since its answer, or since the one that had it died."""
    since: datetime | None = None
    for entry in history:
        if entry.event == "resolved":
            since = entry.at
        elif entry.event == "leased":
            if since is not None:
                yield entry.at - max(since, idle_until or since)
            died = deaths.get(entry.detail or "")
            since = max(died, entry.at) if died is not None else None
        elif entry.event in ("suspended", "finished"):
            since = None
