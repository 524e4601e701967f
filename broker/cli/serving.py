"""`up` and `down`: the embedded server of this user."""

import asyncio
import os
from datetime import timedelta
from typing import Annotated

import typer
from rich.text import Text

from .. import embedded
from ..core.fields import to_ms
from ..errors import InvalidInput
from .given import read_span
from .invocation import Invocation
from .screen import GOOD, ago, facts, text, when


async def up(
    cli: Invocation,
    *,
    idle: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="Stop it after so long without clients; 0 for never. Else 15m."),
    ] = None,
    show_url: Annotated[
        bool, typer.Option("--show-url", help="Give the URL, with its password, and nothing else.")
    ] = False,
) -> None:
    """Starts the embedded server, or tells where it is."""
    _only_embedded(cli)
    after = read_span("--idle", idle)
    found = await cli.screen.busy("starting the server ...", asyncio.to_thread(_ensure, after))
    if show_url:
        if cli.screen.as_json:
            cli.screen.give({"url": found.url})
        else:
            cli.screen.out.print(Text(found.url), soft_wrap=True)
        return
    if cli.screen.as_json:
        cli.screen.give({
            "home": str(found.home), "address": found.address, "pid": found.pid, "family": found.family,
            "version": found.version, "since_ms": to_ms(found.since.astimezone()), "started": found.started,
        })  # fmt: skip
        return
    cli.screen.say(
        Text("The server is up." if found.started else "The server was up already.", style=GOOD),
        facts([
            ("server", f"{found.family} {found.version}, process {found.pid}"),
            ("address", text(found.address)),
            ("home", text(str(found.home))),
            ("since", f"{when(found.since)}, {ago(found.since.astimezone())}"),
        ]),
    )  # fmt: skip
    if os.environ.get("BROKER_URL"):
        cli.screen.note("BROKER_URL is set, so that other commands use the server it names.")


def _ensure(idle: timedelta | None) -> embedded.Embedded:
    return embedded.ensure(idle=idle)


async def down(cli: Invocation) -> None:
    """Stops the embedded server; its data stay."""
    _only_embedded(cli)
    stopped = await cli.screen.busy("stopping the server ...", asyncio.to_thread(embedded.down))
    if cli.screen.as_json:
        cli.screen.give({"stopped": stopped, "home": str(embedded.default_home())})
    else:
        cli.screen.say("The server is down; its data stay." if stopped else "The server was not up.")


def _only_embedded(cli: Invocation) -> None:
    if cli.url is not None:
        raise InvalidInput("--url", "names a server that is not ours to start or stop", "no --url here")
