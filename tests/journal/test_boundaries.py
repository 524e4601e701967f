"""R04: a worker is killed at every moment of its journal, one moment per run: what comes out is the same.

The moments are those before and after each call to the server and each effect of a tool; `travel` names them. One run
that nobody kills shows that the list below is all of them.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path

import pytest

from broker import Approve, AsyncBroker, InterruptRecord, Principal, Respond, RunRecord, RunState, Worker
from broker.testing import RunningServer, await_until
from tests.worker.fleet import QUICK, ROOT

from . import travel

STEPS = ("0", "1", "2")
CALLS = ("c1", "c2", "c3", "c4", "c5")
EFFECTS = {"c1": "search", "c2": "book", "c3": "pay", "c4": "mail", "c5": "film"}
BEGINS = {"0": 4, "c1": 4, "c2": 4, "c3": 4, "1": 3, "c4": 3, "c5": 3, "2": 1}
"""How often each entry is begun when nobody dies: once in each attempt that comes to it."""
UNKNOWN = {"search": "before end c1", "pay": "before end c3", "film": "before handle c5"}
"""Tools that run again under their key where nobody knows whether they ran, and the last moment of that."""
TIMES = {"lease": 4, "suspend": 3, "finish": 1, "handle c5": 1}


def every_moment() -> Iterator[str]:
    """Every moment at which a worker of this agent may die."""
    counts = {f"begin {name}": times for name, times in BEGINS.items()}
    counts |= {f"end {name}": 1 for name in (*STEPS, *CALLS)} | TIMES
    for what, times in counts.items():
        for when in ("before", "after"):
            yield from (f"{when} {what}" if n == 1 else f"{when} {what} #{n}" for n in range(1, times + 1))
    for name in EFFECTS.values():
        yield from (f"{when} the effect of {name}" for when in ("before", "after"))


class Trip:
    """One run of the agent: whoever answers its questions, and its workers."""

    def __init__(self, broker: AsyncBroker, url: str, folder: Path) -> None:
        self.broker, self.url, self.folder = broker, url, folder
        self.world = travel.World(folder)
        self.run_id = ""
        self.over = False

    async def answer(self) -> None:
        """Answers what is open, as people and the film studio do: until the run has ended."""
        await await_until(self._answer_once, 100, what="the trip is over")

    async def _answer_once(self) -> bool:
        for one in (await self.broker.inbox.list()).items:
            if one.interrupt.audience == "completions":
                await self.broker.complete(self.tokens[-1], "film of 7")
            else:
                await self.broker.inbox.answer(one.id, self._decide(one))
        return self.over or (await self.broker.runs.get(self.run_id)).state in (
            RunState.FINISHED,
            RunState.DEAD,
        )

    @property
    def tokens(self) -> list[str]:
        return [token for name, _, token in self.world.done() if name == "film"]

    def _decide(self, one: InterruptRecord) -> Approve | Respond:
        """Yes; and somebody who is asked whether a mail was sent looks whether it was."""
        if one.interrupt.reason == "may_have_run" and f"{self.run_id}:c4" in self.world.keys("mail"):
            return Respond(payload="mailed ada")
        return Approve()

    async def killed(self, moment: str) -> int:
        """How a worker process ends that is told to die at this moment."""
        command = [
            sys.executable,
            "-m",
            "tests.journal.travel",
            self.url,
            self.broker.namespace,
            str(self.folder),
        ]
        process = await asyncio.create_subprocess_exec(*command, moment, cwd=ROOT, stderr=subprocess.DEVNULL)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def ended(self) -> RunRecord:
        async def there() -> RunRecord | None:
            run = await self.broker.runs.get(self.run_id)
            return run if run.state in (RunState.FINISHED, RunState.DEAD) else None

        found = await await_until(there, 60, what="the trip is over")
        assert found is not None
        return found


@pytest.fixture
async def trip(server: RunningServer, namespace: str, tmp_path: Path) -> AsyncGenerator[Trip]:
    """A trip that was started, with people who answer."""
    async with AsyncBroker(
        server.url, namespace=namespace, settings=QUICK, by=Principal.local("me")
    ) as broker:
        trip = Trip(broker, server.url, tmp_path)
        trip.run_id = (await broker.start("travel", "a week in the hills", session="s")).run_id
        answering = asyncio.create_task(trip.answer())
        yield trip
        trip.over = True
        await answering


@pytest.fixture
async def serve(trip: Trip) -> AsyncGenerator[Callable[[], Worker]]:
    """Starts the worker that nobody kills, in this process."""
    serving: list[tuple[Worker, asyncio.Task[None]]] = []

    def start() -> Worker:
        worker = travel.worker(trip.url, trip.broker.namespace, trip.folder)
        serving.append((worker, asyncio.create_task(worker.serve())))
        return worker

    yield start
    for worker, task in serving:
        worker.stop()
        worker.stop()
        await task


async def test_the_list_of_moments_is_all_of_them(trip: Trip, serve: Callable[[], Worker]) -> None:
    serve()
    assert (await trip.ended()).result == travel.SAID
    noted = trip.folder / "moments"
    await await_until(
        lambda: "after finish" in noted.read_text().splitlines()
    )  # we are told before its worker is
    seen = noted.read_text().splitlines()
    assert sorted(seen) == sorted(every_moment())
    assert sorted(name for name, _, _ in trip.world.done()) == sorted(EFFECTS.values())


@pytest.mark.report("RB50")
@pytest.mark.parametrize("moment", list(every_moment()))
async def test_R04_RB50_a_worker_killed_at_any_moment_changes_nothing(
    trip: Trip, serve: Callable[[], Worker], moment: str
) -> None:
    """Same result; every effect under one key, and once, except what its tool lets run again under that key.

    Off: end.lua that records nothing.
    """
    assert await trip.killed(moment) == -9
    passed = (trip.folder / "moments").read_text().splitlines()
    assert passed[-1] == moment
    serve()
    run = await trip.ended()
    assert (run.state, run.result) == (RunState.FINISHED, travel.SAID)
    for call_id, name in EFFECTS.items():
        keys = trip.world.keys(name)
        assert set(keys) == {f"{trip.run_id}:{call_id}"}
        sure = moment in (f"after the effect of {name}", UNKNOWN.get(name))
        # Calls of a turn run together: others may have had their effect and not yet been told that it is recorded.
        told = UNKNOWN.get(name, "").replace("before", "after", 1) in passed
        again = name in UNKNOWN and f"after the effect of {name}" in passed and not told
        assert len(keys) == 1 or (again and len(keys) == 2)
        assert len(keys) == 2 or not (sure and again)
    assert len(set(trip.tokens)) == 1
