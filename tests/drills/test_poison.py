"""One run in a hundred is poison, for its handler or for its whole worker: it is set aside, and the others go on."""

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest

from broker import AsyncBroker, Principal, RunState
from broker.testing import RunningServer
from tests.worker.fleet import Agents

from .agents.poisoned import FEW_TRIES
from .asking import all_over, each
from .ledger import takes
from .sizes import Size

pytestmark = pytest.mark.drill
WORKERS = 3


async def keep_up(start: Callable[..., Agents], concurrency: int) -> None:
    """Keeps so many workers alive, as a supervisor does, until it is cancelled."""
    names = (f"worker-{n}" for n in count(1))
    alive: list[Agents] = []
    while True:
        alive = [worker for worker in alive if worker.is_alive]
        while len(alive) < WORKERS:
            more = {"name": next(names), "concurrency": concurrency}
            alive.append(start(program="tests.drills.agents.poisoned", **more))
        await takes(0.02)


# Runs that a worker has at the same time share its death, so poison that kills is met by workers of one run each.
@pytest.mark.parametrize(("kind", "concurrency"), [("raises", 32), ("kills", 1)])
async def test_R14_of_a_hundred_runs_the_one_that_is_poison_is_dead_and_the_others_finish(
    server: RunningServer,
    namespace: str,
    processes: Callable[..., Agents],
    size: Size,
    kind: str,
    concurrency: int,
) -> None:
    """Off: lease.lua without its `bump` of the tries: the run comes back for ever."""
    me, poison, good = Principal.local("me"), list[str](), list[str]()
    async with AsyncBroker(server.url, namespace=namespace, settings=FEW_TRIES, by=me) as broker:

        async def start(n: int) -> None:
            bad = n % 100 == 50
            run = await broker.start("works", kind if bad else n, session=f"s{n}")
            (poison if bad else good).append(run.run_id)

        await each(range(size(100, 300)), start)
        keeping = asyncio.create_task(keep_up(processes, concurrency))
        await all_over(broker, [*poison, *good])
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        counts = Counter[str]()
        for one in good:
            run = await broker.runs.get(one)
            counts.update({"lost": run.state is not RunState.FINISHED, "again": run.fence > 1})
        assert not +counts, dict(counts)
        for one in poison:
            run = await broker.runs.get(one)
            assert (run.state, run.fence, len(run.errors)) == (
                RunState.DEAD,
                FEW_TRIES.tries,
                FEW_TRIES.tries,
            )
            assert {"raises": "ValueError: poison", "kills": "lease_lost"}[kind] in run.errors[0]
        assert {run.id for run in await broker.dead.list()} == set(poison)
