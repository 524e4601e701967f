"""Ready runs are handed to jobs of another system: each once, and again where a job was lost."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from broker import AsyncBroker, Cause, InvalidInput, Run, RunState
from broker.adapters.functions import Dispatcher, Job, go_on
from broker.testing import await_until
from tests.worker.fleet import run_when

Start = Callable[..., Dispatcher]
Jobs = asyncio.Queue[Job]
SOON = timedelta(milliseconds=200)
NEVER = timedelta(hours=1)


async def says_hello(run: Run[Any]) -> str:
    return f"hello {run.attempt}"


async def next_job(jobs: Jobs) -> Job:
    async with asyncio.timeout(20):
        return await jobs.get()


async def test_a_run_is_handed_out_and_its_job_finishes_it(
    broker: AsyncBroker, dispatch: Start, jobs: Jobs
) -> None:
    dispatch(to=jobs.put, agents=["greeter"])
    started = await broker.start("greeter", session="s")
    job = await next_job(jobs)
    assert (job.run_id, job.session_id, job.agent, job.times) == (started.run_id, "s", "greeter", 1)
    assert await go_on(broker, job.run_id, {"greeter": says_hello})
    done = await broker.runs.get(started.run_id)
    assert (done.state, done.result, done.tries) == (RunState.FINISHED, "hello 1", 1)


async def test_a_hundred_runs_and_four_dispatchers_make_a_hundred_jobs(
    broker: AsyncBroker, dispatch: Start, jobs: Jobs
) -> None:
    for _ in range(4):
        dispatch(to=jobs.put, agents=["greeter"], again=NEVER)
    starts = [broker.start("greeter", session=f"s{n}") for n in range(100)]
    ids = {one.run_id for one in await asyncio.gather(*starts)}
    found = [(await next_job(jobs)).run_id for _ in ids]
    assert (set(found), jobs.empty(), await broker.runs.ready("agents")) == (ids, True, ())


async def test_jobs_that_come_twice_or_late_find_nothing_to_do(
    broker: AsyncBroker, dispatch: Start, jobs: Jobs
) -> None:
    begun: list[str] = []
    go = asyncio.Event()

    async def slow(run: Run[Any]) -> None:
        begun.append(run.id)
        await go.wait()

    dispatch(to=jobs.put, agents=["slow"])
    await broker.start("slow", session="s")
    job = await next_job(jobs)
    first = asyncio.create_task(go_on(broker, job.run_id, {"slow": slow}))
    await await_until(lambda: begun, 20, what="it is at work")
    assert not await go_on(broker, job.run_id, {"slow": slow})
    go.set()
    assert await first
    assert not await go_on(broker, job.run_id, {"slow": slow})
    done = await broker.runs.get(job.run_id)
    assert (begun, done.fence, done.errors) == ([job.run_id], 1, ())


async def test_a_lost_job_is_made_again_and_counts_as_no_attempt(
    broker: AsyncBroker, dispatch: Start, jobs: Jobs
) -> None:
    dispatch(to=jobs.put, agents=["greeter"], again=SOON)
    started = await broker.start("greeter", session="s")
    lost, late = await next_job(jobs), await next_job(jobs)
    assert (lost.run_id, lost.times, late.run_id, late.times) == (started.run_id, 1, started.run_id, 2)
    assert lost.key != late.key
    assert await go_on(broker, lost.run_id, {"greeter": says_hello})  # it was only slow: whoever comes first
    assert not await go_on(broker, late.run_id, {"greeter": says_hello})
    done = await broker.runs.get(started.run_id)
    assert (done.result, done.tries, done.errors) == ("hello 1", 1, ())


async def test_a_system_that_takes_no_jobs_is_asked_again(
    broker: AsyncBroker, dispatch: Start, jobs: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[int] = []

    async def send(job: Job) -> None:
        asked.append(job.times)
        if len(asked) < 3:
            raise ConnectionError("the password is secret")
        await jobs.put(job)

    dispatch(to=send, agents=["greeter"], again=NEVER)
    await broker.start("greeter", session="s")
    job = await next_job(jobs)
    assert (asked, job.times) == ([1, 2, 3], 3)
    assert "ConnectionError" in caplog.text
    assert "secret" not in caplog.text


async def test_a_dispatcher_that_ends_gives_back_what_it_had_in_hand(
    broker: AsyncBroker, dispatch: Start, jobs: Jobs
) -> None:
    begun = asyncio.Event()

    async def hangs(_: Job) -> None:
        begun.set()
        await asyncio.Event().wait()

    await broker.start("greeter", session="s")
    task = asyncio.create_task(Dispatcher(broker, to=hangs, agents=["greeter"], again=NEVER).run())
    async with asyncio.timeout(20):
        await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    dispatch(to=jobs.put, agents=["greeter"])
    assert (await next_job(jobs)).times == 2


async def test_why_says_that_a_run_was_handed_out(broker: AsyncBroker, dispatch: Start, jobs: Jobs) -> None:
    dispatcher = dispatch(to=jobs.put, agents=["greeter"], again=NEVER)
    await broker.start("greeter", session="s")
    job = await next_job(jobs)
    why = await broker.runs.why(job.run_id)
    assert (why.cause, why.holder, why.timer) == (Cause.JOB, dispatcher.name, "it is handed out again")
    assert why.reason == f"{dispatcher.name} handed it to a job, which has not taken it yet."


async def test_runs_of_others_are_left_alone(broker: AsyncBroker, dispatch: Start, jobs: Jobs) -> None:
    """Another queue, another agent, another build."""
    other = [
        await broker.start("greeter", session="s", queue="gpu"),
        await broker.start("painter", session="s"),
        await broker.start("greeter", session="s", build="b2"),
    ]
    mine = [await broker.start("greeter", session="s", build=build) for build in ("b1", None)]
    dispatch(to=jobs.put, agents=["greeter"], build="b1", again=NEVER)
    found = {(await next_job(jobs)).run_id for _ in mine}
    assert found == {one.run_id for one in mine}
    states = {(await run_when(broker, one.run_id, RunState.READY)).holder for one in other}
    assert (jobs.empty(), states) == (True, {None})


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"agents": []}, "agents"),
        ({"agents": "greeter"}, "agents"),
        ({"agents": ["a b:c"]}, "agent"),
        ({"again": timedelta()}, "again"),
        ({"to": "celery"}, "to"),
        ({"queue": ""}, "queue"),
    ],
    ids=str,
)
def test_what_cannot_be_dispatched_is_refused(
    broker: AsyncBroker, options: dict[str, Any], field: str
) -> None:
    given: dict[str, Any] = {"to": print, "agents": ["greeter"]} | options
    with pytest.raises(InvalidInput) as refused:
        Dispatcher(broker, **given)
    assert refused.value.field == field
