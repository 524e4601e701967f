"""`serve`: the HTTP gateway of a namespace. `keys`: who may use it. `signing`: what its tokens are signed with."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from .._async.client import AsyncBroker
from ..core.access import ApiKey, ApiRole
from ..core.answers import Principal, PrincipalKind
from ..core.fields import to_ms
from ..core.limits import JSON
from ..core.signing import SigningKey
from ..telemetry import Observer
from ..worker.sweeper import Sweeper
from .given import read_span
from .hooks import Allow, sending
from .invocation import Invocation
from .provider import JwtAudience, JwtClaim, JwtIssuer, JwtKeys, JwtRole, provider
from .screen import DIM, GOOD, columns, text, when

Who = Annotated[
    str, typer.Argument(metavar="WHO", help="Whose key it is: an id of yours.", show_default=False)
]


class Form(StrEnum):
    """How the log of a gateway is written."""

    TEXT = "text"
    JSON = "json"


Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(help="The port to listen on.")]
MaxBody = Annotated[int, typer.Option(help="The largest body of a request, in bytes.")]
RequestSeconds = Annotated[float, typer.Option(help="How long a request may take, in seconds.")]
RequestsPerMinute = Annotated[
    int,
    typer.Option(help="How many requests one credential may send, at all gateways together; 0: any number."),
]
Webhooks = Annotated[bool, typer.Option("--webhooks", help="Sends the namespace's webhooks, too.")]
Log = Annotated[Form, typer.Option(help="How the log is written, to standard error.")]
PublicMetrics = Annotated[
    bool, typer.Option("--public-metrics", help="/metrics is for everybody; else for keys that may read.")
]
Notice = Annotated[
    float, typer.Option(help="Seconds between SIGTERM and the end of new requests; /readyz says 503 in them.")
]
Drain = Annotated[float, typer.Option(help="Seconds that open requests then have to end.")]
Telemetry = Annotated[
    bool, typer.Option("--telemetry", help="Traces and counts for OpenTelemetry, by the process's providers.")
]
Key = Annotated[str, typer.Argument(metavar="KEY", help="A key's id, as listed.", show_default=False)]


async def serve(
    cli: Invocation,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8700,
    max_body: MaxBody = 1024 * 1024,
    request_seconds: RequestSeconds = 30.0,
    requests_per_minute: RequestsPerMinute = 1200,
    log: Log = Form.TEXT,
    public_metrics: PublicMetrics = False,
    notice: Notice = 2.0,
    drain: Drain = 20.0,
    telemetry: Telemetry = False,
    jwt_issuer: JwtIssuer = None,
    jwt_audience: JwtAudience = None,
    jwt_keys: JwtKeys = None,
    jwt_role: JwtRole = None,
    jwt_claim: JwtClaim = "groups",
    webhooks: Webhooks = False,
    webhooks_allow: Allow = None,
) -> None:
    """Serves the HTTP gateway with its inbox."""
    from ..gateway import GatewaySettings, create_app, logs, server  # noqa: PLC0415 - needs the extra

    numbers = GatewaySettings(
        max_body, request_seconds, requests_per_minute, public_metrics=public_metrics,
        notice_seconds=notice, drain_seconds=drain,
    )  # fmt: skip
    known = provider(jwt_issuer, jwt_audience, jwt_keys, jwt_role or (), jwt_claim)
    observer = _observer() if telemetry else None
    with logs.written(as_json=log is Form.JSON):
        async with cli.broker(create=True, observer=observer) as broker:
            app = create_app(broker, settings=numbers, identify=known)
            cli.screen.say(Text(f"Serving namespace {broker.namespace} on http://{host}:{port}", style=GOOD))
            cli.screen.say(*_inbox(host, port, has_keys=bool(await broker.keys.list())))
            async with _sweeping(broker), sending(broker, webhooks_allow) if webhooks else _nothing():
                await server.serve(app, host, port)


_nothing = contextlib.nullcontext


@contextlib.asynccontextmanager
async def _sweeping(broker: AsyncBroker) -> AsyncIterator[None]:
    """Deadlines pass where no worker is, too: somebody has to see to it, and one does at a time."""
    task = asyncio.create_task(Sweeper(broker).run(), name="sweeper")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _observer() -> Observer:
    from ..telemetry.otel import OpenTelemetry  # noqa: PLC0415 - needs the extra

    return OpenTelemetry()


def _inbox(host: str, port: int, *, has_keys: bool) -> list[Text]:
    """Where people decide, and how the first of them gets in."""
    here = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::", "::1") else host  # noqa: S104 - compared only
    told = [Text(f"The inbox is on http://{here}:{port}/inbox")]
    if not has_keys:
        told.append(Text("Nobody has a key to it yet: broker keys create YOU makes one", style=DIM))
    return told


async def keys_create(
    cli: Invocation,
    who: Who,
    *,
    role: Annotated[ApiRole, typer.Option(help="What it may do.")] = ApiRole.REVIEWER,
    kind: Annotated[str, typer.Option(help="person, service or agent; an agent never decides.")] = "person",
    group: Annotated[list[str] | None, typer.Option(help="A group of theirs; may be repeated.")] = None,
    expires_in: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Until when it counts: 12h, 90d. Else for good.")
    ] = None,
    note: Annotated[str | None, typer.Option(help="What it is for.")] = None,
) -> None:
    """Makes an API key and shows it, once."""
    principal = Principal(id=who, kind=PrincipalKind.read(kind), groups=tuple(group or ()))
    async with cli.broker(create=True) as broker:
        new = await broker.keys.create(
            principal, role, expires_in=read_span("--expires-in", expires_in), note=note
        )
    if cli.screen.as_json:
        cli.screen.give(new.to_json())
        return
    cli.screen.say(Text(f"A key for {who} ({role}). It is shown this once:", style=GOOD))
    cli.screen.out.print(Text(new.text), soft_wrap=True)


async def keys_list(cli: Invocation) -> None:
    """Lists who may use the gateway."""
    async with cli.broker() as broker:
        found = await broker.keys.list()
    if cli.screen.as_json:
        cli.screen.give([one.to_json() for one in found])
        return
    table = columns(("KEY", "WHO", "KIND", "ROLE", "MADE", "STATE"))
    for key in found:
        state, style = _state(key)
        table.add_row(
            text(key.id), text(key.principal.id), key.principal.kind, key.role, when(key.created_at),
            Text(state, style=style),
        )  # fmt: skip
    cli.screen.say(table if found else "There is no key yet: broker keys create WHO")


def _state(key: ApiKey) -> tuple[str, str]:
    if key.revoked_at:
        return "revoked", DIM
    if key.retires_at:
        return f"replaced, until {when(key.retires_at)}", DIM
    return f"until {when(key.expires_at)}" if key.expires_at else "good", GOOD


async def keys_rotate(
    cli: Invocation,
    key: Key,
    *,
    overlap: Annotated[
        str, typer.Option(metavar="SPAN", help="How long the old key counts beside the new one: 0, 1h, 7d.")
    ] = "1d",
) -> None:
    """Puts a new API key in the place of an old one, and shows it, once."""
    async with cli.broker() as broker:
        new = await broker.keys.rotate(key, overlap=read_span("--overlap", overlap) or timedelta())
    if cli.screen.as_json:
        cli.screen.give(new.to_json())
        return
    cli.screen.say(
        Text(f"A new key for {new.key.principal.id} ({new.key.role}). It is shown this once:", style=GOOD)
    )
    cli.screen.out.print(Text(new.text), soft_wrap=True)


async def keys_revoke(cli: Invocation, key: Key) -> None:
    """Takes an API key back, at once."""
    async with cli.broker() as broker:
        revoked = await broker.keys.revoke(key)
    if cli.screen.as_json:
        cli.screen.give(revoked.to_json())
    else:
        cli.screen.say(f"The key {revoked.id} of {revoked.principal.id} counts no more.")


async def signing_rotate(cli: Invocation) -> None:
    """Makes a new signing key: it signs from now on, the old ones go on verifying."""
    async with cli.broker() as broker:
        key = await broker.signing.rotate()
    if cli.screen.as_json:
        cli.screen.give(_told(key))
    else:
        cli.screen.say(Text(f"Signing key {key.number} signs from now on.", style=GOOD))


async def signing_list(cli: Invocation) -> None:
    """Lists the signing keys, without their secrets: the last one signs."""
    async with cli.broker() as broker:
        found = await broker.signing.keys()
    if cli.screen.as_json:
        cli.screen.give([_told(one) for one in found])
        return
    table = columns(("KEY", "MADE", "STATE"))
    for key in found:
        table.add_row(str(key.number), when(key.created_at), "signs" if key == found[-1] else "verifies")
    cli.screen.say(table if found else "There is no signing key yet: the first token or session makes one.")


async def signing_drop(
    cli: Invocation,
    number: Annotated[int, typer.Argument(metavar="KEY", help="Its number, as listed.", show_default=False)],
) -> None:
    """Drops an old signing key: what it has signed counts no more, at once."""
    async with cli.broker() as broker:
        key = await broker.signing.drop(number)
    if cli.screen.as_json:
        cli.screen.give(_told(key))
    else:
        cli.screen.say(f"What signing key {key.number} has signed counts no more.")


def _told(key: SigningKey) -> JSON:
    """A signing key as it may be shown."""
    return {"number": key.number, "created_at_ms": to_ms(key.created_at)}
