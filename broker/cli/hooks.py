"""`hooks`: who is told of what happens, by webhooks; and sending them, alone or beside the gateway."""

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.text import Text

from .._async.client import AsyncBroker
from ..core.hooks import Hook, NewHook
from ..errors import InvalidInput
from .given import read_span
from .invocation import Invocation
from .screen import BAD, DIM, GOOD, columns, text, when

HookId = Annotated[str, typer.Argument(metavar="HOOK", help="A webhook's id, as listed.", show_default=False)]
Allow = Annotated[
    list[str] | None,
    typer.Option(metavar="NETWORK", envvar="BROKER_WEBHOOKS_ALLOW",
                 help="A network that is not public and may be posted to: 10.1.0.0/16; may be repeated."),
]  # fmt: skip


async def create(
    cli: Invocation,
    address: Annotated[str, typer.Argument(metavar="URL", help="Where to post.", show_default=False)],
    *,
    type: Annotated[  # noqa: A002 - the option's name
        list[str] | None, typer.Option(help="An event it is told of: interrupt.opened; may be repeated.")
    ] = None,
    queue: Annotated[str | None, typer.Option(help="Only what concerns this queue.")] = None,
    note: Annotated[str | None, typer.Option(help="What it is for.")] = None,
) -> None:
    """Registers an address to be told of what happens, and shows its secret, once."""
    async with cli.broker(create=True) as broker:
        _show(cli, await broker.hooks.create(address, types=type, queue=queue, note=note))


def _show(cli: Invocation, new: NewHook) -> None:
    if cli.screen.as_json:
        cli.screen.give(new.to_json())
        return
    cli.screen.say(Text(f"{new.hook.id} posts to {new.hook.url}. Its secret is shown this once:", style=GOOD))
    cli.screen.out.print(Text(new.secret), soft_wrap=True)


async def list_(cli: Invocation) -> None:
    """Lists the webhooks, without their secrets."""
    async with cli.broker() as broker:
        found = await broker.hooks.list()
    if cli.screen.as_json:
        cli.screen.give([one.to_json() for one in found])
        return
    table = columns(("HOOK", "URL", "TYPES", "STATE"))
    for hook in found:
        table.add_row(text(hook.id), text(hook.url), text(", ".join(hook.types)), _state(hook))
    cli.screen.say(table if found else "There is no webhook yet: broker hooks create URL")


def _state(hook: Hook) -> Text:
    if hook.disabled_at:
        return Text(f"off since {when(hook.disabled_at)}: it said that it is gone", style=BAD)
    return Text("good", style=GOOD)


async def rotate(
    cli: Invocation,
    hook: HookId,
    *,
    overlap: Annotated[
        str, typer.Option(metavar="SPAN", help="How long the old secret signs beside the new one: 0, 1h, 7d.")
    ] = "1d",
) -> None:
    """Gives a webhook a new secret, and shows it, once."""
    async with cli.broker() as broker:
        _show(cli, await broker.hooks.rotate(hook, overlap=read_span("--overlap", overlap) or timedelta()))


async def delete(cli: Invocation, hook: HookId) -> None:
    """Deletes a webhook, with what waits for it."""
    async with cli.broker() as broker:
        await broker.hooks.delete(hook)
    _said(cli, {"deleted": hook}, f"{hook} is told nothing more.")


async def enable(cli: Invocation, hook: HookId) -> None:
    """Turns a webhook on again that had said that it is gone."""
    async with cli.broker() as broker:
        _said(
            cli, (await broker.hooks.enable(hook)).to_json(), f"{hook} is told of what happens from now on."
        )


async def lost(cli: Invocation, hook: HookId) -> None:
    """Lists what could not be told to a webhook, and why."""
    async with cli.broker() as broker:
        found = await broker.hooks.lost(hook)
    if cli.screen.as_json:
        cli.screen.give([one.to_json() for one in found])
        return
    table = columns(("POST", "EVENT", "ABOUT", "TRIES", "ERROR"))
    for post in found:
        about = post.event.interrupt_id or post.event.run_id or ""
        row = (post.id, post.event.type, about, str(post.tries), post.error or "")
        table.add_row(*map(text, row))
    cli.screen.say(table if found else Text("Nothing was given up.", style=DIM))


async def replay(cli: Invocation, hook: HookId) -> None:
    """Sends again what was given up."""
    async with cli.broker() as broker:
        count = await broker.hooks.replay(hook)
    _said(cli, {"replayed": count}, f"{count} posts are sent again.")


async def send(cli: Invocation, *, allow: Allow = None) -> None:
    """Sends the webhooks of the namespace until it is stopped; of several senders one is at work."""
    async with cli.broker(create=True) as broker, sending(broker, allow):
        cli.screen.say(Text(f"Sending the webhooks of namespace {broker.namespace}", style=GOOD))
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def sending(broker: AsyncBroker, allow: list[str] | None) -> AsyncGenerator[None, None]:
    """Sends the webhooks of a broker while the block runs."""
    from ..gateway.webhooks import WebhookSender, WebhookSettings  # noqa: PLC0415 - needs the extra

    settings = WebhookSettings(allowed=tuple(map(_network, allow or ())))
    task = asyncio.create_task(WebhookSender(broker, settings).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _network(named: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(named)
    except ValueError as fault:
        problem = str(fault)
    raise InvalidInput("--allow", f"cannot be read: {problem}", "a network: 10.1.0.0/16")


def _said(cli: Invocation, as_json: Any, words: str) -> None:
    if cli.screen.as_json:
        cli.screen.give(as_json)
    else:
        cli.screen.say(words)
