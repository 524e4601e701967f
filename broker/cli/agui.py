"""`broker agui check`: holds a recorded stream of AG-UI events against the protocol's rules."""

from typing import Annotated

import typer

from .invocation import Invocation

DOES_NOT_CONFORM = 1

StreamFile = Annotated[
    str, typer.Argument(metavar="FILE", help="A recorded stream, - for standard input.", show_default=False)
]


async def check(cli: Invocation, file: StreamFile) -> int:
    """Holds a stream of AG-UI events against its rules.

    The stream is one event of JSON a line, or server-sent events. Each rule that is broken is named, with the number
    of the event. The exit code is 0 where the stream conforms: warnings are for what a consumer passes over.
    """
    from .streams import checked, tell  # noqa: PLC0415 - what no other command needs takes a while to load

    found = checked(file)
    if cli.screen.as_json:
        told = [one.to_json() for one in found.violations]
        cli.screen.give({"conforms": found.conforms, "events": found.events, "violations": told})
    else:
        tell(cli.screen, found)
    return 0 if found.conforms else DOES_NOT_CONFORM
