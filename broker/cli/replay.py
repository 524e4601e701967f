"""`broker replay`: recorded runs through real worker and approver processes."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from ..errors import BrokerError
from ..replay import Options, Report
from ..replay import Progress as Step
from ..replay.main import run
from ..replay.options import any_seed
from .faults import UNEXPECTED, fault_json
from .invocation import Invocation, check_url, complain
from .screen import BAD, DIM, GOOD, facts

NOTHING_LOST = ("lost", "mismatched", "reruns_unexplained", "doubled_answers", "missing")

Tools = Annotated[
    str | None,
    typer.Option(
        metavar="TOOL,...", help="Else what the TOML file beside the runs says.", show_default=False
    ),
]
KillWorker = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Kill a random worker so often, and start another.")
]
RestartServer = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Kill the replay's own server so often, and start it.")
]
MergeTurns = Annotated[
    int, typer.Option(help="Join consecutive turns of the record to turns of up to so many calls.")
]
Pace = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="How long each turn and each tool takes. Else 0, or 0.1 where something is killed.",
    ),
]
Seed = Annotated[int | None, typer.Option(metavar="NUMBER", help="Who is killed. Else chosen, and told.")]


async def replay(
    cli: Invocation,
    runs: Annotated[
        Path, typer.Argument(metavar="RUNS.jsonl", help="One recorded run a line.", show_default=False)
    ],
    *,
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 3,
    approvers: Annotated[int, typer.Option(help="Approver processes.")] = 2,
    confirm: Tools = None,
    long: Tools = None,
    history: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record every call of every process.")
    ] = None,
    effects: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep what the tools have left.")
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="Give up after so long.")] = 300.0,
    concurrency: Annotated[int, typer.Option(help="Runs at once in each worker.")] = 8,
    kill_worker_every: KillWorker = None,
    restart_server_every: RestartServer = None,
    merge_turns: MergeTurns = 1,
    pace: Pace = None,
    seed: Seed = None,
) -> int:
    """Replays recorded runs through real processes.

    Does each end as it did, and does each tool run once? Without --url it has a server of its own. Tools in --confirm
    wait for an approval, those in --long are completed out of band, all others just run. A call runs again only where
    its worker was killed before the result was recorded.
    """
    options = Options(
        runs=runs, workers=workers, approvers=approvers, confirm=_tools(confirm), long=_tools(long),
        url=check_url(cli.url), namespace=cli.namespace, history=history, effects=effects, timeout=timeout,
        concurrency=concurrency, kill_worker_every=kill_worker_every, restart_server_every=restart_server_every,
        merge_turns=merge_turns, pace=pace, seed=any_seed() if seed is None else seed,
    )  # fmt: skip
    report, trouble = await _watched(cli, options)
    if cli.screen.as_json:
        cli.screen.give(report.to_json())
    else:
        cli.screen.say(*_told(report))
    if trouble:
        fault = BrokerError(trouble)
        complain(cli.screen, fault, str(fault), fault_json(fault))
    return 0 if report.ok and trouble is None else UNEXPECTED


def _tools(given: str | None) -> frozenset[str] | None:
    return None if given is None else frozenset(name for name in given.replace(",", " ").split())


async def _watched(cli: Invocation, options: Options) -> tuple[Report, str | None]:
    if cli.screen.as_json or not cli.screen.err.is_terminal:
        return await run(options)
    parts = (TextColumn("{task.description}", style=DIM), BarColumn())
    with Progress(*parts, console=cli.screen.err, transient=True) as bar:
        task = bar.add_task("starting the processes ...", total=None)

        def tell(step: Step) -> None:
            words = f"{step.finished} of {step.runs} runs finished, {step.open} waiting, {step.ready} ready"
            bar.update(task, total=step.runs, completed=step.finished, description=words)

        return await run(options, tell)


def _told(report: Report) -> list[RenderableType]:
    counts = report.to_json()
    rows: list[tuple[str, RenderableType]] = [
        (
            name,
            Text(
                str(value) if isinstance(value, int) else f"{value:g}",
                style=BAD if name in NOTHING_LOST and value else "",
            ),
        )
        for name, value in counts.items()
    ]
    again = "only calls ran again whose worker had died" if report.reruns else "each tool ran once"
    good = f"Every run ended as it was recorded, and {again}."
    bad = "Not every run ended as it was recorded, or a tool ran twice."
    return [facts(rows), "", Text(good if report.ok else bad, style=GOOD if report.ok else BAD)]
