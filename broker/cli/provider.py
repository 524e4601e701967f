"""The identity provider of a gateway, as options and environment name it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.access import ApiRole
from ..errors import InvalidInput

if TYPE_CHECKING:
    from ..gateway.identity import Identify

JwtIssuer = Annotated[
    str | None,
    typer.Option(metavar="URL", envvar="BROKER_JWT_ISSUER",
                 help="Whose tokens count beside API keys: the claim iss."),
]  # fmt: skip
JwtAudience = Annotated[
    str | None,
    typer.Option(metavar="TEXT", envvar="BROKER_JWT_AUDIENCE",
                 help="Whom they are made for: the claim aud."),
]  # fmt: skip
JwtKeys = Annotated[
    str | None,
    typer.Option(metavar="URL", envvar="BROKER_JWT_KEYS",
                 help="Where the provider publishes its keys (JWKS)."),
]  # fmt: skip
JwtRole = Annotated[
    list[str] | None,
    typer.Option(metavar="GROUP=ROLE", envvar="BROKER_JWT_ROLES",
                 help="What a group of theirs may do: approvers=reviewer; may be repeated."),
]  # fmt: skip
JwtClaim = Annotated[
    str,
    typer.Option(metavar="CLAIM", envvar="BROKER_JWT_CLAIM",
                 help="The claim that names the groups; dots lead into objects."),
]  # fmt: skip


def provider(
    issuer: str | None, audience: str | None, keys: str | None, roles: Sequence[str], claim: str
) -> "tuple[Identify, ...]":
    """What knows callers by the tokens of a provider; empty where none is named. Raises `InvalidInput`."""
    given = {"--jwt-issuer": issuer, "--jwt-audience": audience, "--jwt-keys": keys}
    missing = [name for name, value in given.items() if not value]
    if len(missing) == len(given) and not roles:
        return ()
    if missing or issuer is None or audience is None or keys is None:
        raise InvalidInput(missing[0], "is missing", "all of " + ", ".join(given))
    from ..gateway.oidc import jwt_of  # noqa: PLC0415 - needs the extra

    known = dict(_role(one) for one in roles)
    return (jwt_of(issuer=issuer, audience=audience, jwks_url=keys, roles=known, roles_claim=claim),)


def _role(given: str) -> tuple[str, ApiRole]:
    group, _, role = given.rpartition("=")
    if not group or role not in list(ApiRole):
        raise InvalidInput("--jwt-role", "is no group with its role", "GROUP=" + "|".join(ApiRole))
    return group, ApiRole(role)
