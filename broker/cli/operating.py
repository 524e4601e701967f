"""`status`, `dead`, `requeue`, `move` and `withdraw`: the fleet, and runs that need an operator."""

import os
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from .. import embedded
from ..core.fleet import Fleet
from ..core.outcomes import Outcome
from ..core.records import RunRecord
from ..errors import OUTCOME_CODES, Unavailable
from .answering import tell
from .invocation import Invocation, check_url, without_secrets
from .records import stable
from .screen import BAD, DIM, GOOD, NAME, WAITS, ago, columns, count, lines, text

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run.", show_default=False)]


async def status(cli: Invocation) -> None:
    """Tells what waits, what is ready, what is dead, who works.

    It starts no server.
    """
    server = _server(cli)
    async with cli.broker() as broker:
        fleet = await cli.screen.busy("looking ...", broker.fleet())
    if cli.screen.as_json:
        told = stable(fleet)
        told["pools"] = [stable(pool) for pool in fleet.pools]
        told["workers"] = [stable(worker) for worker in fleet.workers]
        cli.screen.give(told | {"server": server})
    else:
        cli.screen.say(*_fleet(fleet, server))


def _server(cli: Invocation) -> str:
    url = cli.url or os.environ.get("BROKER_URL")
    if url:
        return without_secrets(check_url(url) or url)
    found = embedded.info()
    if found is None:
        raise Unavailable("the embedded server of this user does not run; `broker up` starts it")
    return f"{found.family} {found.version}, embedded, {found.address}"


def _fleet(fleet: Fleet, server: str) -> list[RenderableType]:
    ready = sum(pool.ready for pool in fleet.pools)
    held = sum(worker.holding for worker in fleet.workers if worker.alive)
    head = Text.assemble(
        (f"{fleet.open}", WAITS if fleet.open else DIM), " waiting for an answer   ",
        (f"{ready}", WAITS if ready else DIM), " ready   ",
        (f"{held}", GOOD if held else DIM), " running   ",
        (f"{fleet.dead}", BAD if fleet.dead else DIM), " dead",
    )  # fmt: skip
    parts: list[RenderableType] = [
        head,
        Text(f"namespace {fleet.namespace}", style=DIM),
        text(server, DIM),
        "",
    ]
    if fleet.pools:
        table = columns(("READY", "QUEUE", "AGENT", "BUILD", "NEXT SINCE"), right=("READY",))
        for pool in fleet.pools:
            build = pool.build or Text("any", style=DIM)
            table.add_row(
                str(pool.ready), pool.queue, pool.agent, build, ago(pool.since) if pool.since else ""
            )
        parts += [table, ""]
    if not fleet.workers:
        return [*parts, Text("No worker has said that it is there.", style=DIM)]
    table = columns(("WORKER", "QUEUE", "AGENTS", "RUNNING", "SEEN"), right=("RUNNING",), names="WORKER")
    for one in fleet.workers:
        seen = ago(one.seen_at) if one.seen_at else ""
        table.add_row(
            text(one.name), text(one.queue), text(", ".join(one.agents)), f"{one.holding}/{one.concurrency}",
            Text(seen if one.alive else f"gone, {seen}", style="" if one.alive else BAD),
        )  # fmt: skip
    return [*parts, table]


async def dead(
    cli: Invocation, *, limit: Annotated[int, typer.Option(help="At most so many, 1 to 500.")] = 50
) -> None:
    """Lists runs that failed too often, and their last failure."""
    async with cli.broker() as broker:
        found = await cli.screen.busy("looking ...", broker.dead.list(limit=limit))
    if cli.screen.as_json:
        cli.screen.give([stable(run) for run in found])
        return
    if not found:
        cli.screen.say("No run is dead.")
        return
    for run in found:
        cli.screen.say(*_dead(run))
    cli.screen.say(
        Text("broker requeue RUN sends one back, broker show RUN tells all its failures.", style=DIM)
    )


def _dead(run: RunRecord) -> list[RenderableType]:
    tried = count(len(run.errors), "failure")
    head = Text.assemble((run.agent, NAME), f"  queue {run.queue}  started {ago(run.created_at)}  {tried}")
    parts: list[RenderableType] = [head, text(run.id)]
    if run.errors:
        parts.append(lines(run.errors[-1], BAD))
    return [*parts, ""]


async def requeue(
    cli: Invocation,
    run: RunId,
    *,
    queue: Annotated[str | None, typer.Option(help="Send it to another queue.")] = None,
) -> int:
    """Sends a dead run back to its workers, or to others.

    Its questions and answers stay as they are.
    """
    async with cli.broker() as broker:
        outcome = await broker.dead.requeue(run, queue=queue)
    return _told(cli, outcome, "Sent back.")


async def move(
    cli: Invocation,
    run: RunId,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="Where it goes.", show_default=False)],
) -> int:
    """Takes a run with its questions to another queue."""
    async with cli.broker() as broker:
        outcome = await broker.runs.move(run, queue)
    return _told(cli, outcome, f"Moved to {queue}.")


async def withdraw(
    cli: Invocation,
    run: RunId,
    *,
    reason: Annotated[str, typer.Option("--reason", "--note", metavar="TEXT", help="Why.")] = "",
) -> int:
    """Takes a run's questions back and closes it.

    Whoever answers later is told so.
    """
    async with cli.broker() as broker:
        outcome = await broker.runs.withdraw(run, reason=reason)
    return _told(cli, outcome, "Withdrawn.")


def _told(cli: Invocation, outcome: Outcome, done: str) -> int:
    if cli.screen.as_json:
        cli.screen.give(outcome.to_json())
    else:
        cli.screen.say(*tell(outcome, done))
    return OUTCOME_CODES[outcome.code].exit_code
