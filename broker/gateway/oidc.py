"""People and services of an identity provider: JSON Web Tokens as bearer, checked against its published keys.

Only asymmetric signatures count. The keys are fetched when they are needed and kept; a token under a key that is not
known has them fetched again, though not more often than `PAUSE` allows, so that made-up tokens cost the provider
nothing.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
from fastapi import HTTPException, Request

from ..core.access import SCOPES, ApiRole, Scope
from ..core.answers import Principal, PrincipalKind
from ..core.limits import LIMITS
from ..errors import InvalidInput
from .identity import Caller, Identify, bearer, unauthenticated

log: logging.Logger = logging.getLogger("broker.gateway")

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
KEPT: Final = 300.0
"""For how many seconds fetched keys are used before they are fetched again."""
MOST_KEPT: Final = 24 * 3600.0
"""For how many seconds they are used where the provider cannot be reached."""
PAUSE: Final = 10.0
"""How many seconds lie between two fetches, whatever tokens come."""
FETCH_SECONDS: Final = 5.0
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Issuer:
    """An identity provider, and how what it says of somebody is read."""

    issuer: str
    audience: str
    jwks_url: str
    roles: Mapping[str, ApiRole]
    """What a value of the claim gives: `{"refund-approvers": ApiRole.REVIEWER}`. Without one, nothing is allowed."""
    roles_claim: str = "groups"
    """The claim that roles and groups are read from: a text, or a list of texts. Dots lead into objects."""
    id_claim: str = "sub"
    kind: PrincipalKind = PrincipalKind.PERSON
    leeway: float = 30.0
    """How many seconds the clocks may differ."""

    def caller(self, claims: Mapping[str, Any]) -> Caller:
        """Who a token's claims are about, and what they may do."""
        name = claims.get(self.id_claim)
        if not isinstance(name, str) or not 0 < len(name) <= LIMITS.id_chars:
            raise unauthenticated(f"This token names nobody: its claim {self.id_claim} is missing or no text")
        groups = tuple(_texts(claims, self.roles_claim))
        scopes: frozenset[Scope] = frozenset().union(
            *(SCOPES[self.roles[one]] for one in groups if one in self.roles)
        )
        try:
            who = Principal(
                id=name,
                kind=self.kind,
                groups=groups[: LIMITS.labels],
                claims={"iss": self.issuer},
                verified=True,
            )
        except InvalidInput as fault:
            raise unauthenticated(f"This token cannot be used: {fault}") from None
        return Caller(who, scopes, f"jwt:{self.issuer}:{name}")


def jwt_of(
    *,
    issuer: str,
    audience: str,
    jwks_url: str,
    roles: Mapping[str, ApiRole],
    roles_claim: str = "groups",
    id_claim: str = "sub",
    kind: PrincipalKind = PrincipalKind.PERSON,
    leeway: float = 30.0,
) -> Identify:
    """Knows callers by the tokens of an identity provider (OpenID Connect): `Authorization: Bearer <JWT>`.

    `jwks_url` is where it publishes its keys; `roles` says what a value of the claim `roles_claim` allows, and whoever
    has none of them may do nothing. Several issuers may stand side by side. Raises `InvalidInput` for an address
    without encryption, except on this machine.
    """
    place = urlsplit(jwks_url)
    if place.scheme != "https" and not (place.scheme == "http" and place.hostname in _LOOPBACK):
        raise InvalidInput("jwks_url", "is not https", "https://..., or http:// on this machine")
    known = Issuer(issuer, audience, jwks_url, dict(roles), roles_claim, id_claim, kind, leeway)
    keys = KeySet(jwks_url)

    async def identify(request: Request) -> Caller | None:
        shown = bearer(request)
        if not shown or _issuer(shown) != issuer:
            return None
        return known.caller(await _verified(shown, known, keys))

    return identify


class KeySet:
    """The keys of an issuer, as published, by their ids."""

    def __init__(self, url: str) -> None:
        self._client = jwt.PyJWKClient(url, cache_jwk_set=False, timeout=FETCH_SECONDS)
        self._lock = asyncio.Lock()
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched = -KEPT
        self._tried = -KEPT

    async def find(self, name: str | None) -> jwt.PyJWK | None:
        """The key of that id; of an issuer with one key, that one where none is named.

        Where the issuer cannot be reached the keys that are known go on counting for a day; without any it is a 503.
        """
        if self._is_due(name):
            async with self._lock:
                if self._is_due(name):
                    await self._fetch()
        if not self._keys:
            raise HTTPException(503, "The keys of the identity provider cannot be had now")
        if name is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(name)

    def _is_due(self, name: str | None) -> bool:
        now = monotonic()
        wanted = now - self._fetched > KEPT or name not in self._keys
        return wanted and now - self._tried > PAUSE

    async def _fetch(self) -> None:
        self._tried = monotonic()
        try:
            found = await asyncio.to_thread(self._client.get_jwk_set, refresh=True)
        except jwt.PyJWTError as error:
            log.warning("the keys of an identity provider cannot be fetched: %s", type(error).__name__)
            if self._tried - self._fetched > MOST_KEPT:
                self._keys = {}
            return
        self._keys = {key.key_id: key for key in found.keys}
        self._fetched = self._tried


async def _verified(text: str, known: Issuer, keys: KeySet) -> dict[str, Any]:
    try:
        key = await keys.find(jwt.get_unverified_header(text).get("kid"))
        if key is None:
            raise unauthenticated("This token does not count: its key is not known")
        claims: dict[str, Any] = jwt.decode(
            text, key, algorithms=list(ALGORITHMS), audience=known.audience, issuer=known.issuer,
            leeway=known.leeway, options={"require": ["exp", "iss", "aud", known.id_claim]},
        )  # fmt: skip
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        said = type(error).__name__.removesuffix("Error")
        raise unauthenticated(f"This token does not count: {said}") from None
    return claims


def _issuer(text: str) -> str | None:
    """The issuer that a token names, before anything is known of it; None for what is no token."""
    try:
        claims = jwt.decode(text, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    name = claims.get("iss")
    return name if isinstance(name, str) else None


def _texts(claims: Mapping[str, Any], path: str) -> list[str]:
    found: Any = claims
    for part in (path,) if path in claims else path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    listed = [found] if isinstance(found, str) else found
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
