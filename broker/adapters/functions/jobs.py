"""What a job does with its run: it takes it under a lease, and goes on with it as a worker would."""

import contextlib
import logging
from collections.abc import Callable, Mapping

from ..._async.client import AsyncBroker
from ..._sync.client import Broker
from ...core.limits import check_name
from ...core.tools import is_async
from ...errors import AlreadyLeased, InvalidInput, UnknownId
from ...worker.handlers import Agent, Handler
from .calling import working_on

log: logging.Logger = logging.getLogger("broker")


async def go_on(
    broker: AsyncBroker,
    run_id: str,
    agents: Mapping[str, Handler],
    *,
    build: str | None = None,
    holder: str = "job",
) -> bool:
    """Whether this job went on with the run; False for one that came twice or too late, which changes nothing.

    `agents` are the handlers by the names of their agents: async functions of one `Run`, as workers have them. What a
    handler returns is the run's result; one that pauses is left without an error. One that raises has failed the
    attempt: that is recorded, the run comes back as another job after its back-off, and the error is raised. A job
    that is cancelled gives the run back. Safe to repeat, at the same time too.

    `build` is that of this process, as the dispatcher's. Raises `BuildMismatch` for a run that is pinned to another
    one, and `InvalidInput` where `agents` has no async function for it: the run stays as it was, for other jobs.
    """
    known = _known(agents, is_blocking=False)
    check = _check(run_id, known, build)
    async with contextlib.AsyncExitStack() as stack:
        try:
            run = await stack.enter_async_context(broker.take(run_id, holder=holder, check=check))
        except (AlreadyLeased, UnknownId) as nothing:
            log.info("this job has nothing to do: %s", nothing)
            return False
        with working_on(run):
            result = await known[run.agent].handler(known[run.agent].read(run))
        if run.is_held:
            await run.finish(result)
    return True


def go_on_blocking(
    broker: Broker,
    run_id: str,
    agents: Mapping[str, Handler],
    *,
    build: str | None = None,
    holder: str = "job",
) -> bool:
    """The same for jobs that block, such as those of Celery: the handlers are plain functions of a `BlockingRun`."""
    known = _known(agents, is_blocking=True)
    check = _check(run_id, known, build)
    with contextlib.ExitStack() as stack:
        try:
            run = stack.enter_context(broker.take(run_id, holder=holder, check=check))
        except (AlreadyLeased, UnknownId) as nothing:
            log.info("this job has nothing to do: %s", nothing)
            return False
        with working_on(run):
            result = known[run.agent].handler(known[run.agent].read(run))
        if run.is_held:
            run.finish(result)
    return True


def _known(agents: Mapping[str, Handler], *, is_blocking: bool) -> dict[str, Agent]:
    """The agents by name. Raises `InvalidInput` for a handler of the other kind, before any run is taken."""
    known = {name: Agent.of(name, handler) for name, handler in agents.items()}
    for name, agent in known.items():
        if is_async(agent.handler) is is_blocking:
            kinds = ("a plain function of a BlockingRun", "an async function of a Run")
            raise InvalidInput(
                f"agents.{name}", f"is no {kinds[not is_blocking][2:]}", kinds[not is_blocking]
            )
    return known


def _check(run_id: str, known: Mapping[str, Agent], build: str | None) -> Callable[[str, str | None], None]:
    """What is held against a run before it is taken: its agent, and the build it is pinned to."""
    own = check_name("build", build) if build else None

    def check(agent: str, pinned: str | None) -> None:
        if agent not in known:
            allowed = "a handler for each agent whose runs are dispatched"
            raise InvalidInput(f"agents.{agent}", "is missing", allowed)
        known[agent].check_build(run_id, pinned, own)

    return check
