"""Plain functions in the suite: jobs of Celery and of arq call `@gated` and `@long_running` ones.

Each process is a worker of the job system, and a dispatcher beside it. Celery's jobs block, those of arq do not.
"""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from threading import Thread
from typing import Any, Final

import arq
from arq.connections import RedisSettings, create_pool
from celery import Celery  # type: ignore[import-not-found, unused-ignore]

from broker import AsyncBroker, BlockingRun, Broker, CallFailed, Pending, Run, current_call
from broker.adapters.functions import (
    Dispatcher,
    gated,
    go_on,
    go_on_blocking,
    long_running,
    to_arq,
    to_celery,
)
from broker.adapters.functions.dispatching import Send
from broker.core.answers import AnswerKind
from tests.worker.fleet import QUICK, report

from ..cases import Alone, Handler
from ..world import World

PACKAGES = ("celery", "arq")
SYSTEMS: Mapping[str, tuple[str, ...] | None] = {
    "arq": None,
    "celery": ("approve", "reject", "external", "three_at_once", "duplicate", "race", "killed", "nested"),
}
"""The job systems, and the cases that are played on each: every one (None), or those that the system has a part in."""
CANNOT: Mapping[str, str] = {
    "unsupported_version": "it imports no package: what hands a run over is a function of yours",
    "new_input": "runs of a session know nothing of one another",
}
OWN = ("other_build",)
ALONE: Mapping[str, Alone] = {}

AGENT: Final = "payer"
AGAIN: Final = timedelta(seconds=1)
OFFERS: Final = (AnswerKind.APPROVE, AnswerKind.EDIT, AnswerKind.REJECT)
GIVEN: Final = 0
"""Stands for the amount of the run's input."""
TURNS: Final[dict[str, list[list[Any]]]] = {
    "in_a_row": [[GIVEN], [GIVEN]],
    "three": [[1, 2, 3]],
    "nested": [[1, 2]],
    "large": [["x" * 2_000_000]],
    "unserializable": [[print]],
    "unreadable": [["\ud800"]],
}
"""By scenario, the amounts that are paid in each turn."""


class Functions:
    """The functions of a scenario: plain ones, or async ones that do the same."""

    def __init__(self, world: World, kind: Callable[[Callable[..., Any]], Any]) -> None:
        self._world = world
        within = timedelta(seconds=world.options.get("seconds", 3600))
        self.pay = gated(expires_in=within, offers=OFFERS)(kind(_named("pay", self._pay)))
        self.render = long_running(kind(_named("render", self._render)))
        self.ask = gated(offers=(AnswerKind.RESPOND,))(kind(_named("ask", self._render)))

    def _pay(self, amount: int) -> str:
        self._world.effect("pay", amount, current_call().key)
        return f"paid {amount}"

    def _render(self, amount: int) -> Pending:
        return Pending(handle=f"job-{amount}")


def _named(name: str, method: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(amount: int) -> Any:
        return method(amount)

    function.__name__ = name
    return function


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def ordinary(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """The same as an async function."""

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def turns_of(scenario: str, world: World, given: Any) -> list[list[Any]]:
    """The amounts of each turn, with that of the input in its place; another version of the agent adds its fee."""
    fee = 1 if world.options.get("changed") else 0
    return [
        [given["amount"] + fee if amount is GIVEN else amount for amount in turn]
        for turn in TURNS.get(scenario, [[GIVEN]])
    ]


def told(failed: CallFailed) -> str:
    """What became of a call that was not made; one that could not even be asked about ends the attempt."""
    if failed.kind == "InvalidCall":
        raise failed
    return str(failed)


def asynchronous(scenario: str, world: World) -> Handler:
    """The agent of a job of arq."""
    known = Functions(world, ordinary)

    async def said(function: Any, amount: Any) -> Any:
        try:
            return await function(amount)
        except CallFailed as failed:
            return told(failed)

    async def agent(run: Run[Any]) -> list[Any]:
        if scenario in ("external", "question"):
            return [await said(known.render if scenario == "external" else known.ask, 10)]
        found: list[Any] = []
        for turn in turns_of(scenario, world, run.input):
            found += await asyncio.gather(*(said(known.pay, amount) for amount in turn))
        return found

    async def swallows(run: Run[Any]) -> list[Any]:
        try:
            return await agent(run)
        except BaseException:  # noqa: BLE001 - that is the case
            return ["swallowed"]

    return swallows if scenario == "swallow" else agent


def blocking(scenario: str, world: World) -> Handler:
    """The agent of a job of Celery."""
    known = Functions(world, plain)

    def said(function: Any, amount: Any) -> Any:
        try:
            return function(amount)
        except CallFailed as failed:
            return told(failed)

    def together(run: BlockingRun[Any], turn: list[Any]) -> list[Any]:
        """In parallel, which plain calls are not: as the calls of one turn of a model."""
        calls = [{"id": f"c{amount}", "name": "pay", "arguments": {"amount": amount}} for amount in turn]
        return [one["content"] for one in run.calls(calls, [known.pay])]

    def agent(run: BlockingRun[Any]) -> list[Any]:
        if scenario in ("external", "question"):
            return [said(known.render if scenario == "external" else known.ask, 10)]
        found: list[Any] = []
        for turn in turns_of(scenario, world, run.input):
            found += together(run, turn) if len(turn) > 1 else [said(known.pay, turn[0])]
        return found

    def swallows(run: BlockingRun[Any]) -> list[Any]:
        try:
            return agent(run)
        except BaseException:  # noqa: BLE001 - that is the case
            return ["swallowed"]

    return swallows if scenario == "swallow" else agent


def handler(scenario: str, world: World) -> Handler:
    """What a worker of the job system is given for the agent."""
    return (blocking if world.options["system"] == "celery" else asynchronous)(scenario, world)


# The workers of the job systems ----------------------------------------------------------------------------------


def serve(options: Mapping[str, Any], world: World) -> None:
    """A worker of the job system that the options name, with a dispatcher beside it, until it is killed."""
    agents = {AGENT: handler(options["scenario"], world)}
    if options["system"] == "celery":
        serve_celery(options, agents)
    else:
        asyncio.run(serve_arq(options, agents))


def queue_of(options: Mapping[str, Any]) -> str:
    """The job system's queue: jobs know nothing of builds, so each build has one."""
    return f"{options['system']}-{options['namespace']}-{options.get('build', '')}"


async def dispatch(broker: AsyncBroker, to: Send, options: Mapping[str, Any]) -> None:
    report("begins")
    await Dispatcher(broker, to=to, agents=[AGENT], again=AGAIN, build=options.get("build")).run()


async def serve_arq(options: Mapping[str, Any], agents: Mapping[str, Handler]) -> None:
    queue = queue_of(options)
    pool = await create_pool(RedisSettings.from_dsn(options["jobs"]), default_queue_name=queue)
    async with AsyncBroker(options["url"], namespace=options["namespace"], settings=QUICK) as broker:

        async def go_on_with(_: Any, run_id: str) -> None:
            await go_on(broker, run_id, agents, build=options.get("build"))

        worker = arq.Worker(
            [arq.func(go_on_with, name="go_on_with")],
            queue_name=queue,
            redis_pool=pool,
            handle_signals=False,
            poll_delay=0.05,
        )
        await asyncio.gather(worker.async_run(), dispatch(broker, to_arq(pool, "go_on_with"), options))


def serve_celery(options: Mapping[str, Any], agents: Mapping[str, Handler]) -> None:
    place = {"namespace": options["namespace"], "settings": QUICK}
    app = Celery("jobs", broker=options["jobs"])
    app.conf.update(task_default_queue=queue_of(options), task_ignore_result=True)

    def go_on_with(run_id: str) -> None:
        with Broker(options["url"], **place) as broker:
            go_on_blocking(broker, run_id, agents, build=options.get("build"))

    task = app.task(name="go_on")(go_on_with)

    async def beside() -> None:
        async with AsyncBroker(options["url"], **place) as broker:
            await dispatch(broker, to_celery(task), options)

    Thread(target=asyncio.run, args=(beside(),), daemon=True).start()
    logging.disable(logging.WARNING)
    app.worker_main(
        ["worker", "--pool", "solo", "--loglevel", "ERROR", "--without-mingle", "--without-gossip",
         "--without-heartbeat"]
    )  # fmt: skip


def alone(case: str, phase: str, world: World) -> str:
    """There is nothing: a plain function does not pause."""
    raise NotImplementedError((case, phase, world))
