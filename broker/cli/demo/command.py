"""`broker demo`."""

from typing import Annotated

import typer
from rich.live import Live
from rich.text import Text

from ...errors import InvalidInput
from ..faults import UNEXPECTED
from ..invocation import Invocation, check_url
from ..screen import BAD, GOOD
from .stage import Stage
from .story import Counts
from .telling import Lines, Picture, intro, table

SLOWEST = 10.0


async def demo(
    cli: Invocation,
    *,
    pace: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long an agent or a person thinks.")
    ] = 0.4,
) -> int:
    """Shows agents that pause, are answered and go on elsewhere.

    It has a server of its own, and nothing is left behind. With --url it runs there, in a new
    namespace, whose records stay for a while.
    """
    if not 0 <= pace <= SLOWEST:
        raise InvalidInput("--pace", "is out of range", f"0 to {SLOWEST:g} seconds")
    stage = Stage(check_url(cli.url), cli.namespace, pace)
    await cli.screen.busy("starting the server and the workers ...", stage.__aenter__())
    try:
        counts = await _show(cli, stage)
    finally:
        await stage.__aexit__()
    if cli.screen.as_json:
        cli.screen.give(counts.to_json())
    else:
        if counts.mismatched:
            cli.screen.say(Text(f"{counts.mismatched} cases did not end as they should have.", style=BAD))
        cli.screen.say(Text(counts.last_line, style=GOOD if counts.ok else BAD))
    return 0 if counts.ok else UNEXPECTED


async def _show(cli: Invocation, stage: Stage) -> Counts:
    if cli.screen.as_json:
        return await stage.play(lambda _: None)
    cli.screen.say(intro(stage))
    if not cli.screen.out.is_terminal:
        return await stage.play(Lines(cli.screen))
    with Live(table(stage), console=cli.screen.out, refresh_per_second=10) as live:
        return await stage.play(Picture(live))
