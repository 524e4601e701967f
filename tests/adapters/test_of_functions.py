"""Runs go on in the real workers of Celery and arq: processes that are killed, jobs that are lost or doubled."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import ExitStack
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import redis
from arq import create_pool
from arq.connections import RedisSettings
from celery import Celery  # type: ignore[import-not-found, unused-ignore]

from broker import Approve, AsyncBroker, JournalMismatch, Principal, RunState, Settlement
from broker.adapters.functions import Dispatcher, Job, to_arq, to_celery
from broker.testing import RunningServer, ServerProcess, await_until
from tests.dispatching.agents import effects
from tests.worker.fleet import QUICK, ROOT, ended, run_when

from .stage import Stage

COMMANDS = {
    "celery": ["celery", "-A", "tests.adapters.job_systems.of_celery", "worker", "--pool", "solo",
               "--loglevel", "ERROR", "--without-mingle", "--without-gossip"],
    "arq": ["arq", "tests.adapters.job_systems.of_arq.WorkerSettings"],
}  # fmt: skip
VERBS = {"celery": "paid", "arq": "refunded"}
AGAIN = timedelta(seconds=3)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # those of other packages


class System:
    """A job system on a Redis server of its own, and its workers as processes."""

    def __init__(self, name: str, url: str, given: dict[str, str], stack: ExitStack) -> None:
        self.name, self.url, self._stack = name, url, stack
        self._environ = os.environ | given | {"TEST_JOBS": url, "PYTHONPATH": str(ROOT)}
        self.pids: list[int] = []

    def worker(self) -> "subprocess.Popen[bytes]":
        """Starts a worker."""
        return self.start(["-m", *COMMANDS[self.name]], ROOT, {})

    def start(self, words: list[str], cwd: Path, environ: dict[str, str]) -> "subprocess.Popen[bytes]":
        """Starts a program in Python; it is killed at the end."""
        process = subprocess.Popen(
            [sys.executable, *words], cwd=cwd, env=self._environ | environ, stdout=subprocess.DEVNULL
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        self.pids.append(process.pid)
        return process

    def lose(self) -> None:
        """Every job that waits is lost."""
        with redis.Redis.from_url(self.url) as client:
            client.flushdb()

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        with redis.Redis.from_url(self.url) as client:
            return int(client.llen("celery") if self.name == "celery" else client.zcard("arq:queue"))


@pytest.fixture(params=list(COMMANDS))
def system(
    request: pytest.FixtureRequest, server: RunningServer, jobs_server: ServerProcess, namespace: str
) -> Generator[System]:
    with ExitStack() as stack:
        given = {"TEST_URL": server.url, "TEST_NAMESPACE": namespace}
        found = System(request.param, jobs_server.tcp_url, given, stack)
        found.lose()
        stack.callback(found.lose)
        yield found
    request.node.user_properties.append(("pids", found.pids))
    request.node.user_properties.append((found.name, version(found.name)))


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncGenerator[AsyncBroker]:
    async with AsyncBroker(
        server.url, namespace=namespace, settings=QUICK, by=Principal.local("me")
    ) as broker:
        yield broker


@pytest.fixture
async def to(system: System) -> AsyncGenerator[Callable[[Job], Any]]:
    """What hands a run to the system."""
    if system.name == "arq":
        pool = await create_pool(RedisSettings.from_dsn(system.url))
        yield to_arq(pool, "go_on_with")
        await pool.aclose()
        return
    app = Celery("sender", broker=system.url)
    yield to_celery(app.signature("go_on"))
    app.close()


@pytest.fixture
async def dispatcher(broker: AsyncBroker, to: Callable[[Job], Any]) -> AsyncGenerator[None]:
    task = asyncio.create_task(Dispatcher(broker, to=to, agents=["agent"], again=AGAIN).run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


Ask = Callable[[], Awaitable[tuple[str, str]]]


@pytest.fixture
def ask(broker: AsyncBroker, tmp_path: Path) -> Ask:
    """Starts a run and waits until it has asked: its id and its question's."""

    async def start() -> tuple[str, str]:
        given = {"folder": str(tmp_path), "amount": 5}
        started = await broker.start("agent", given, session="s")
        paused = await run_when(broker, started.run_id, RunState.WAITING)
        return started.run_id, paused.interrupt_ids[0]

    return start


@pytest.mark.usefixtures("dispatcher")
async def test_R03_a_worker_that_is_killed_in_the_middle(
    broker: AsyncBroker, system: System, ask: Ask, tmp_path: Path
) -> None:
    """After the effect, before the run is finished: another worker finishes it, and the effect is not made again."""
    first = system.worker()
    run_id, question = await ask()
    (tmp_path / "hold").touch()
    assert (await broker.inbox.answer(question, Approve())).ok
    await await_until((tmp_path / "held").exists, 30, what="it has the effect behind it")
    assert (tmp_path / "held").read_text() == str(first.pid)
    first.kill()
    second = system.worker()
    run = await ended(broker, run_id)
    assert run.result == {"said": f"{VERBS[system.name]} 5", "pid": second.pid}
    assert [line.split()[1] for line in effects(tmp_path)] == [str(first.pid)]


@pytest.mark.usefixtures("dispatcher")
async def test_a_system_that_loses_its_jobs_gets_them_again(
    broker: AsyncBroker, system: System, ask: Ask, tmp_path: Path
) -> None:
    first = system.worker()
    run_id, question = await ask()
    first.kill()
    first.wait()
    assert (await broker.inbox.answer(question, Approve())).ok
    await await_until(lambda: system.waiting, 20, what="the job waits")
    system.lose()
    second = system.worker()
    run = await ended(broker, run_id)
    assert (run.result["pid"], run.errors, len(effects(tmp_path))) == (second.pid, (), 1)


async def test_jobs_that_are_sent_five_times_have_one_effect(
    broker: AsyncBroker, system: System, to: Callable[[Job], Any], tmp_path: Path
) -> None:
    """Without a dispatcher: jobs of one run under five keys, and two workers that race for them."""
    given = {"folder": str(tmp_path), "amount": 5}
    started = await broker.start("agent", given, session="s")
    jobs = [Job(started.run_id, "s", "agent", "agents", None, f"{started.run_id}-{n}", 1) for n in range(10)]

    async def send(some: list[Job]) -> None:
        for job in some:
            sent = to(job)
            if sent is not None:
                await sent

    system.worker()
    system.worker()
    await send(jobs[:5])
    paused = await run_when(broker, started.run_id, RunState.WAITING)
    assert (await broker.inbox.answer(paused.interrupt_ids[0], Approve())).ok
    await send(jobs[5:])
    run = await ended(broker, started.run_id)
    await await_until(lambda: not system.waiting, 20, what="every job was looked at")
    assert (run.result["said"], run.errors, run.fence) == (f"{VERBS[system.name]} 5", (), 2)
    assert len(effects(tmp_path)) == 1


PAGE = re.compile(r"<!-- file: (\S+) -->\n```python\n(.*?)```", re.DOTALL)


async def test_the_programs_of_the_page_run(
    system: System, server: RunningServer, used_namespaces: list[str], tmp_path: Path
) -> None:
    """As they stand in docs/howto/job-systems.md: a worker and a dispatcher.

    Celery's command takes BROKER_URL for its own server where it is not told of another.
    """
    used_namespaces.append("airline")
    for name, text in PAGE.findall((ROOT / "docs/howto/job-systems.md").read_text()):
        (tmp_path / name).write_text(text)
    module = f"{system.name}_jobs"
    commands = {
        "celery": ["-m", "celery", "--broker", system.url, "-A", module, "worker", "--pool", "solo"],
        "arq": ["-m", "arq", f"{module}.WorkerSettings"],
    }
    for words in (commands[system.name], [f"{module}.py"]):
        system.start(words, tmp_path, {"BROKER_URL": server.url, "JOBS_URL": system.url})
    async with AsyncBroker(server.url, namespace="airline", by=Principal.local("me")) as broker:
        started = await broker.start("airline", "R7", session="s_1")
        paused = await run_when(broker, started.run_id, RunState.WAITING)
        assert (await broker.inbox.answer(paused.interrupt_ids[0], Approve())).ok
        assert (await ended(broker, started.run_id)).result == "cancelled R7"


# Cases of the suite, in a way of their own ----------------------------------------------------------------------


async def test_other_build(stage: Stage) -> None:
    """A dispatcher of another build is given nothing of it; a job of another agent that gets it refuses."""
    run_id = await stage.start({"amount": 10}, build="one")
    first = stage.worker("pay", build="one")
    run = await stage.when(run_id, RunState.WAITING)
    first.kill()
    await stage.answer_all(run, [Approve()])
    other = stage.worker("pay", changed=True, build="two")
    probe = await stage.start({"amount": 10}, session="thread-2")
    await stage.when(probe, RunState.WAITING)
    assert (await stage.broker.runs.get(run_id)).state is RunState.READY
    other.kill()
    forced = stage.worker("pay", changed=True, build="one")
    dead = await stage.when(run_id, RunState.DEAD)
    assert JournalMismatch.code in dead.errors[0]
    assert stage.world.effects == []
    forced.kill()
    await stage.broker.dead.requeue(run_id)
    done = await stage.finished(run, "pay", build="one")
    assert (done.result, len(stage.world.effects)) == (["paid 10"], 1), done.errors


@pytest.mark.cannot("new_input")
async def test_runs_of_a_session_know_nothing_of_one_another(stage: Stage) -> None:
    run = await stage.paused("pay", {"amount": 10})
    (old,) = await stage.asked(run)
    newer = await stage.paused("pay", {"amount": 7})
    assert (await stage.broker.inbox.get(old.id)).state is Settlement.OPEN
    await stage.answer_all(run, [Approve()])
    await stage.answer_all(newer, [Approve()])
    stage.worker("pay")
    assert (await stage.ended(run)).result == ["paid 10"]
    assert (await stage.ended(newer)).result == ["paid 7"]


@pytest.mark.cannot("unsupported_version")
def test_no_package_of_a_job_system_is_imported() -> None:
    code = "import sys, broker.adapters.functions; print({'arq', 'celery', 'kombu'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
