"""`replay`: recorded runs through real workers and approvers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from ..replay import Options, Progress, Report, run
from ..replay.crew import Broken
from .faults import fault_json
from .invocation import Invocation, check_url
from .screen import BAD, DIM, GOOD, Screen, columns, count

FAILED = 1

RunsFile = Annotated[
    Path, typer.Argument(metavar="RUNS.jsonl", help="Recorded runs, one a line: run_id, model, messages.")
]
Workers = Annotated[int, typer.Option(metavar="N", help="Worker processes.")]
Approvers = Annotated[int, typer.Option(metavar="N", help="Processes that approve and complete.")]
Confirm = Annotated[
    str | None,
    typer.Option(
        metavar="TOOL,...", help="Tools that need an approval; else `confirm` of the TOML file beside."
    ),
]
Long = Annotated[
    str | None,
    typer.Option(
        metavar="TOOL,...", help="Tools completed out of band; else `long` of the TOML file beside."
    ),
]
History = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write every call of any process to the broker, one a line."),
]
Effects = Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the keys of the calls that ran.")]
Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0, help="Give up what is not finished by then.")
]


async def replay(
    cli: Invocation, runs: RunsFile, *, workers: Workers = 3, approvers: Approvers = 2, confirm: Confirm = None,
    long: Long = None, history: History = None, effects: Effects = None, timeout: Timeout = 300.0,
) -> int:  # fmt: skip
    """Replays recorded agent runs through real workers and approvers, and counts what went wrong.

    Without --url on a server of its own, which is gone afterwards, in a new namespace each time. Ends with 1 when a
    run was lost or ended otherwise than recorded, a tool ran twice or an answer was taken twice.
    """
    options = Options(
        runs=runs, workers=workers, approvers=approvers, confirm=_tools(confirm), long=_tools(long),
        url=check_url(cli.url), namespace=cli.namespace, history=history, effects=effects, timeout=timeout,
    )  # fmt: skip
    with _bar(cli.screen) as tell:
        report, trouble = await run(options, tell)
    if trouble:
        _complain(cli.screen, trouble)
    if cli.screen.as_json:
        cli.screen.give(report.to_json())
    else:
        _show(cli.screen, report)
    return 0 if report.ok else FAILED


def _tools(given: str | None) -> frozenset[str] | None:
    return None if given is None else frozenset(name.strip() for name in given.split(",") if name.strip())


@contextmanager
def _bar(screen: Screen) -> Iterator[Callable[[Progress], None] | None]:
    """What to tell how far it is; None where nobody is at the terminal."""
    if not screen.err.is_terminal:
        yield None
        return
    parts = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Bar(*parts, TimeElapsedColumn(), console=screen.err, transient=True) as bar:
        task = bar.add_task("starting the processes", total=None)

        def tell(now: Progress) -> None:
            words = f"{now.open} waiting, {now.ready} ready"
            bar.update(task, description=words, completed=now.finished, total=now.runs)

        yield tell


def _complain(screen: Screen, trouble: str) -> None:
    if screen.as_json:
        screen.err.out(fault_json(Broken(trouble)))
    else:
        screen.complain(trouble)


def _show(screen: Screen, report: Report) -> None:
    table = columns(("", "COUNT"), right=("COUNT",))
    for name, value in report.to_json().items():
        table.add_row(Text(name.replace("_", " "), style=DIM), f"{value:,}")
    wrong = ", ".join(
        (
            count(report.lost, "run lost", "runs lost"),
            f"{report.mismatched} mismatched",
            count(report.reruns, "rerun"),
            count(report.doubled_answers, "doubled answer"),
        )
    )
    line = Text.assemble(
        f"{count(report.runs, 'run')}, {count(report.suspensions, 'pause')}, {report.resumed_elsewhere} gone on from "
        "elsewhere; ",
        (wrong, GOOD if report.ok else BAD),
    )
    screen.say(table, "", line)
