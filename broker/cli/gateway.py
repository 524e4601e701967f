"""`serve`: the HTTP gateway of a namespace. `keys`: who may use it. `signing`: what its tokens are signed with."""

import contextlib
from datetime import timedelta
from typing import Annotated

import typer
from rich.text import Text

from ..core.access import ApiKey, ApiRole
from ..core.answers import Principal, PrincipalKind
from ..core.fields import to_ms
from ..core.limits import JSON
from ..core.signing import SigningKey
from .given import read_span
from .hooks import Allow, sending
from .invocation import Invocation
from .provider import JwtAudience, JwtClaim, JwtIssuer, JwtKeys, JwtRole, provider
from .screen import DIM, GOOD, columns, text, when

Who = Annotated[
    str, typer.Argument(metavar="WHO", help="Whose key it is: an id of yours.", show_default=False)
]


Key = Annotated[str, typer.Argument(metavar="KEY", help="A key's id, as listed.", show_default=False)]


async def serve(
    cli: Invocation,
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.")] = 8700,
    jwt_issuer: JwtIssuer = None,
    jwt_audience: JwtAudience = None,
    jwt_keys: JwtKeys = None,
    jwt_role: JwtRole = None,
    jwt_claim: JwtClaim = "groups",
    webhooks: Annotated[
        bool, typer.Option("--webhooks", help="Sends the namespace's webhooks, too.")
    ] = False,
    webhooks_allow: Allow = None,
) -> None:
    """Serves the HTTP gateway with its inbox."""
    import uvicorn  # noqa: PLC0415 - needs the extra

    from ..gateway import create_app  # noqa: PLC0415 - needs the extra

    known = provider(jwt_issuer, jwt_audience, jwt_keys, jwt_role or (), jwt_claim)
    async with cli.broker(create=True) as broker:
        config = uvicorn.Config(
            create_app(broker, identify=known), host=host, port=port, log_level="warning", server_header=False
        )
        cli.screen.say(Text(f"Serving namespace {broker.namespace} on http://{host}:{port}", style=GOOD))
        async with sending(broker, webhooks_allow) if webhooks else contextlib.nullcontext():
            await uvicorn.Server(config).serve()


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
