"""Runs go on in jobs, each a process of its own, without a worker: approved, denied, edited, completed, killed."""

import asyncio
import queue
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from broker import (
    Answer,
    Approve,
    AsyncBroker,
    Broker,
    BuildMismatch,
    Edit,
    InvalidInput,
    Reject,
    Run,
    RunState,
)
from broker.adapters.functions import Dispatcher, Job, go_on, go_on_blocking
from broker.testing import RunningServer
from tests.worker.fleet import ROOT, ended, run_when

from .agents import ASYNC, BLOCKING, effects

Start = Callable[..., Dispatcher]
Jobs = asyncio.Queue[Job]
AGAIN = timedelta(seconds=4)


class Processes:
    """A job system that starts a process for each job. Those of `steps` wait at a step, one after the other."""

    def __init__(self, url: str, namespace: str, stack: ExitStack) -> None:
        self._place, self._stack = (url, namespace), stack
        self.steps: list[str] = []
        self.pids: list[int] = []
        self._stopping: queue.Queue[tuple[str, subprocess.Popen[str]]] = queue.Queue()

    def start(self, job: Job) -> None:
        """Starts a process for a job."""
        step = [self.steps.pop(0)] if self.steps else []
        words = [sys.executable, "-m", "tests.dispatching.programs.job", *self._place, job.run_id, *step]
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self._stack.callback(self._end, process)
        self.pids.append(process.pid)
        if step:
            self._stopping.put((step[0], process))

    def kill(self) -> int:
        """Kills the next process that waits at its step; its id."""
        step, process = self._stopping.get(timeout=20)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == f"at {step}"
        process.kill()
        return process.pid

    @staticmethod
    def _end(process: "subprocess.Popen[str]") -> None:
        process.kill()
        process.communicate()


@pytest.fixture
def processes(server: RunningServer, namespace: str) -> Generator[Processes]:
    with ExitStack() as stack:
        yield Processes(server.url, namespace, stack)


@pytest.mark.parametrize("agent", ["refunder", "payer"])
@pytest.mark.parametrize(
    ("answer", "said", "done"),
    [
        (Approve(), "{verb} 5", ["{verb} 5"]),
        (Reject(reason="no"), "rejected", []),
        (Edit(arguments={"folder": "{folder}", "amount": 3}), "{verb} 3", ["{verb} 3"]),
    ],
    ids=["approve", "deny", "edit"],
)
async def test_a_pause_in_one_process_and_the_answer_in_another(
    broker: AsyncBroker, dispatch: Start, processes: Processes, tmp_path: Path,
    agent: str, answer: Answer, said: str, done: list[str],
) -> None:  # fmt: skip
    verb = {"refunder": "refunded", "payer": "paid"}[agent]
    if isinstance(answer, Edit):
        answer = Edit(arguments={"folder": str(tmp_path), "amount": 3})
    dispatch(to=processes.start, agents=[agent])
    started = await broker.start(agent, {"folder": str(tmp_path), "amount": 5}, session="s")
    paused = await run_when(broker, started.run_id, RunState.WAITING)
    assert effects(tmp_path) == []
    assert (await broker.inbox.answer(paused.interrupt_ids[0], answer)).ok
    run = await ended(broker, started.run_id)
    asked, resumed = processes.pids
    assert (run.result, asked == resumed) == ({"said": said.format(verb=verb), "pid": resumed}, False)
    did = [line.split(maxsplit=2)[1:] for line in effects(tmp_path)]
    assert did == [[str(resumed), one.format(verb=verb)] for one in done]


@pytest.mark.parametrize("agent", ["renderer", "transcoder"])
async def test_a_long_running_function_is_completed_by_its_token(
    broker: AsyncBroker, dispatch: Start, processes: Processes, tmp_path: Path, agent: str
) -> None:
    dispatch(to=processes.start, agents=[agent])
    started = await broker.start(agent, {"folder": str(tmp_path)}, session="s")
    await run_when(broker, started.run_id, RunState.WAITING)
    assert (await broker.complete((tmp_path / "token").read_text(), "cat.mp4")).ok
    run = await ended(broker, started.run_id)
    assert (run.result, len(set(processes.pids))) == ("cat.mp4", 2)


@pytest.mark.parametrize("step", ["start", "taken", "done"])
async def test_R03_a_job_that_is_killed_is_made_again_and_the_effect_is_not(
    broker: AsyncBroker, dispatch: Start, processes: Processes, tmp_path: Path, step: str
) -> None:
    """Before it has the run, when it has it, and after the effect."""
    dispatch(to=processes.start, agents=["refunder"], again=AGAIN)
    started = await broker.start("refunder", {"folder": str(tmp_path), "amount": 5}, session="s")
    paused = await run_when(broker, started.run_id, RunState.WAITING)
    processes.steps.append(step)
    assert (await broker.inbox.answer(paused.interrupt_ids[0], Approve())).ok
    killed = await asyncio.to_thread(processes.kill)
    run = await ended(broker, started.run_id)
    assert run.result["said"] == "refunded 5"
    assert len(effects(tmp_path)) == 1
    assert run.result["pid"] != killed
    assert run.errors == () if step == "start" else "lease_lost" in run.errors[0]


async def test_an_error_of_a_handler_is_an_attempt_and_the_run_comes_back(
    broker: AsyncBroker, dispatch: Start
) -> None:
    jobs: Jobs = asyncio.Queue()

    async def fails(run: Run[Any]) -> str:
        if run.attempt < 3:
            raise ValueError("not yet")
        return "at last"

    dispatch(to=jobs.put, agents=["fails"])
    started = await broker.start("fails", session="s")
    for _ in range(2):
        with pytest.raises(ValueError, match="not yet"):
            await go_on(broker, (await jobs.get()).run_id, {"fails": fails})
    assert await go_on(broker, (await jobs.get()).run_id, {"fails": fails})
    assert (await broker.runs.get(started.run_id)).result == "at last"


async def test_a_job_that_is_cancelled_gives_its_run_back(broker: AsyncBroker, dispatch: Start) -> None:
    jobs: Jobs = asyncio.Queue()
    begun = asyncio.Event()

    async def hangs(_: Run[Any]) -> None:
        begun.set()
        await asyncio.Event().wait()

    dispatch(to=jobs.put, agents=["hangs"])
    await broker.start("hangs", session="s")
    task = asyncio.create_task(go_on(broker, (await jobs.get()).run_id, {"hangs": hangs}))
    async with asyncio.timeout(20):
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        again = await jobs.get()
    assert (await broker.runs.get(again.run_id)).errors == ()


async def test_a_job_without_a_handler_for_the_run_gives_it_back(
    broker: AsyncBroker, blocking: Broker
) -> None:
    started = await broker.start("painter", session="s")
    with pytest.raises(InvalidInput, match=r"agents\.painter is missing"):
        await go_on(broker, started.run_id, ASYNC)
    with pytest.raises(InvalidInput, match=r"agents\.painter is missing"):
        go_on_blocking(blocking, started.run_id, BLOCKING)
    run = await broker.runs.get(started.run_id)
    assert (run.state, run.tries, run.errors) == (RunState.READY, 0, ())
    assert await broker.runs.ready("agents") == (started.run_id,)


async def test_a_job_of_another_build_leaves_the_run_to_those_of_its_own(
    broker: AsyncBroker, blocking: Broker
) -> None:
    """One queue of jobs for two builds, and a job that is late. Off: the check of builds in `jobs.py`."""
    started = await broker.start("hello", session="s", build="one")
    before = await broker.runs.get(started.run_id)

    async def hello(_: Run[Any]) -> str:
        return "hello"

    class Newer:
        builds = ("two", "three")

        async def __call__(self, _: Run[Any]) -> str:
            raise AssertionError

    with pytest.raises(BuildMismatch, match="needs build 'one', and this process has no build"):
        await go_on(broker, started.run_id, {"hello": hello})
    with pytest.raises(BuildMismatch, match="has build 'two' or 'three'"):
        await go_on(broker, started.run_id, {"hello": Newer()}, build="two")
    with pytest.raises(BuildMismatch):
        go_on_blocking(blocking, started.run_id, {"hello": lambda _: "bad"}, build="two")
    assert await broker.runs.get(started.run_id) == before
    assert await broker.runs.ready("agents") == (started.run_id,)
    assert await go_on(broker, started.run_id, {"hello": hello}, build="one")
    assert not await go_on(broker, started.run_id, {"hello": hello}, build="two")
    assert (await broker.runs.get(started.run_id)).result == "hello"


async def test_a_job_goes_on_with_the_builds_that_its_handler_declares_and_with_runs_of_none(
    broker: AsyncBroker, blocking: Broker
) -> None:
    class Hello:
        builds = ("one",)

        async def __call__(self, _: Run[Any]) -> str:
            return "hello"

    for build in ("one", None):
        started = await broker.start("hello", session="s", build=build)
        assert await go_on(broker, started.run_id, {"hello": Hello()}, build="two")
    started = await broker.start("hello", session="s", build="one")
    assert go_on_blocking(blocking, started.run_id, {"hello": lambda _: "hello"}, build="one")


async def test_a_handler_of_the_other_kind_is_refused_before_the_run_is_taken(
    broker: AsyncBroker, blocking: Broker
) -> None:
    started = await broker.start("payer", session="s")
    with pytest.raises(InvalidInput, match=r"agents\.payer"):
        await go_on(broker, started.run_id, BLOCKING)
    with pytest.raises(InvalidInput, match=r"agents\.refunder"):
        go_on_blocking(blocking, started.run_id, ASYNC)
    assert (await broker.runs.get(started.run_id)).fence == 0


async def test_a_blocking_job_that_comes_twice_finds_nothing_to_do(
    broker: AsyncBroker, blocking: Broker
) -> None:
    started = await broker.start("hello", session="s")
    assert go_on_blocking(blocking, started.run_id, {"hello": lambda _: "hello"})
    assert not go_on_blocking(blocking, started.run_id, {"hello": lambda _: "hello"})
    assert (await broker.runs.get(started.run_id)).result == "hello"
