"""Callers that an identity provider knows: a real one in a process of its own, with keys that change."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from broker import AsyncBroker, InvalidInput, PrincipalKind, Settlement
from broker.core.access import ApiRole
from broker.gateway import oidc
from broker.gateway.oidc import jwt_of

from .issuer import AUDIENCE, Issuer, issuing
from .site import Site, serving
from .test_tokens import approval

ROLES = {"approvers": ApiRole.REVIEWER, "watchers": ApiRole.VIEWER}
YES = {"answer": {"kind": "approve"}}


@pytest.fixture
def issuer(tmp_path: Path) -> Generator[Issuer]:
    with issuing(tmp_path) as issuer:
        yield issuer


@pytest.fixture
async def site(broker: AsyncBroker, issuer: Issuer) -> AsyncGenerator[Site]:
    knows = jwt_of(issuer=issuer.url, audience=AUDIENCE, jwks_url=issuer.jwks_url, roles=ROLES, leeway=1)
    async with serving(broker, identify=[knows]) as site:
        yield site


async def status(site: Site, token: str) -> int:
    async with site.client(token) as client:
        return (await client.get("/v1/interrupts")).status_code


async def test_F43_who_decides_is_who_the_provider_says(site: Site, issuer: Issuer) -> None:
    one = await approval(site.broker)
    async with site.client(issuer.token(groups=["approvers", "sales"])) as ada:
        assert (await ada.post(f"/v1/interrupts/{one}/answer", json=YES)).status_code == 200
    ended = (await site.broker.inbox.get(one)).resolution
    assert ended is not None
    assert ended.by is not None
    assert (ended.by.id, ended.by.groups, ended.by.verified) == ("ada", ("approvers", "sales"), True)
    assert ended.by.claims == {"iss": issuer.url}


async def test_a_role_is_what_a_claim_maps_to_and_without_one_nothing_is_allowed(
    site: Site, issuer: Issuer
) -> None:
    one = await approval(site.broker)
    for groups, looks, answers in ((["watchers"], 200, 403), (["sales"], 403, 403), (None, 403, 403),
                                   ("watchers", 200, 403), ([7, {}], 403, 403)):  # fmt: skip
        async with site.client(issuer.token(groups=groups)) as client:
            assert (await client.get("/v1/interrupts")).status_code == looks
            assert (await client.post(f"/v1/interrupts/{one}/answer", json=YES)).status_code == answers
    assert (await site.broker.inbox.get(one)).state is Settlement.OPEN


async def test_F41_F42_tokens_that_do_not_count(site: Site, issuer: Issuer) -> None:
    """Expired, not yet good, of another issuer or audience, unsigned, signed with what is public, or nobody's."""
    public = issuer.keys["one"].public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )  # fmt: skip
    good = issuer.token(groups=["watchers"])
    claims = jwt.decode(good, options={"verify_signature": False})
    issuer.keys["theirs"] = another_key()
    head, body, sign = good.split(".")
    assert await status(site, good) == 200
    for bad in (
        issuer.token(groups=["watchers"], exp=claims["iat"] - 60),
        issuer.token(groups=["watchers"], exp=None),
        issuer.token(groups=["watchers"], nbf=claims["iat"] + 600),
        issuer.token(groups=["watchers"], iss="https://elsewhere.example"),
        issuer.token(groups=["watchers"], aud="another"),
        issuer.token(groups=["watchers"], aud=None),
        issuer.token(groups=["watchers"], sub=None),
        issuer.token(groups=["watchers"], sub="x" * 500),
        issuer.token("theirs", kid="one", groups=["watchers"]),
        jwt.encode(claims, "", algorithm="none", headers={"kid": "one"}),
        hmac_signed(claims, public),
        f"{head}.{body}.{sign[::-1]}",
        f"{head}.{body}.",
    ):
        assert await status(site, bad) == 401, jwt.get_unverified_header(bad)


def another_key() -> object:
    return rsa.generate_private_key(65537, 2048)


def hmac_signed(claims: dict[str, object], secret: bytes) -> str:
    """A token whose secret is the public key, which the library refuses to make."""

    def part(value: object) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    signed = part({"alg": "HS256", "kid": "one"}) + b"." + part(claims)
    mark = base64.urlsafe_b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).rstrip(b"=")
    return (signed + b"." + mark).decode()


async def test_leeway_covers_clocks_that_differ(broker: AsyncBroker, issuer: Issuer) -> None:
    knows = jwt_of(issuer=issuer.url, audience=AUDIENCE, jwks_url=issuer.jwks_url, roles=ROLES, leeway=120)
    now = jwt.decode(issuer.token(), options={"verify_signature": False})["iat"]
    async with serving(broker, identify=[knows]) as site:
        assert await status(site, issuer.token(groups="watchers", exp=now - 60)) == 200
        assert await status(site, issuer.token(groups="watchers", exp=now - 180)) == 401


async def test_keys_are_fetched_once_and_again_when_the_provider_rotates(
    site: Site, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "PAUSE", 0.0)
    tokens = [issuer.token(groups="watchers", sub=f"p{n}") for n in range(20)]
    assert await asyncio.gather(*[status(site, one) for one in tokens]) == [200] * 20
    assert issuer.looks == 1
    issuer.publish("one", "two", curve=True)
    assert await status(site, issuer.token("two", alg="ES256", groups="watchers")) == 200
    assert issuer.looks == 2
    assert await status(site, tokens[0]) == 200


async def test_made_up_keys_do_not_make_the_gateway_ask_again_and_again(site: Site, issuer: Issuer) -> None:
    assert await status(site, issuer.token(groups="watchers")) == 200
    bad = [issuer.token(groups="watchers", kid=f"made-up-{n}") for n in range(20)]
    assert await asyncio.gather(*[status(site, one) for one in bad]) == [401] * 20
    assert issuer.looks == 1


async def test_a_withdrawn_key_counts_no_more(
    site: Site, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "PAUSE", 0.0)
    old = issuer.token(groups="watchers")
    assert await status(site, old) == 200
    issuer.publish("two")
    monkeypatch.setattr(oidc, "KEPT", 0.0)
    assert await status(site, old) == 401


async def test_a_provider_that_is_away_is_a_503_until_its_keys_are_known(
    broker: AsyncBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "PAUSE", 0.0)
    with issuing(tmp_path) as issuer:
        token = issuer.token(groups="watchers")
        options = {"issuer": issuer.url, "audience": AUDIENCE, "jwks_url": issuer.jwks_url, "roles": ROLES}
        known, unknown = jwt_of(**options), jwt_of(**options)  # type: ignore[arg-type]
        async with serving(broker, identify=[known]) as site:
            assert await status(site, token) == 200
    monkeypatch.setattr(oidc, "KEPT", 0.0)
    async with serving(broker, identify=[known]) as site:
        assert await status(site, token) == 200
    async with serving(broker, identify=[unknown]) as site:
        assert await status(site, token) == 503


async def test_roles_may_lie_deeper_and_agents_of_a_provider_never_decide(
    broker: AsyncBroker, issuer: Issuer
) -> None:
    knows = jwt_of(
        issuer=issuer.url, audience=AUDIENCE, jwks_url=issuer.jwks_url, roles={"all": ApiRole.OPERATOR},
        roles_claim="realm_access.roles", kind=PrincipalKind.AGENT,
    )  # fmt: skip
    one = await approval(broker)
    async with serving(broker, identify=[knows]) as site:
        token = issuer.token(realm_access={"roles": ["all"]})
        assert await status(site, token) == 200
        async with site.client(token) as bot:
            assert (await bot.post(f"/v1/interrupts/{one}/answer", json=YES)).status_code == 403


def test_keys_are_fetched_with_encryption_only() -> None:
    for bad in ("http://id.example/jwks", "file:///etc/passwd", "ftp://127.0.0.1/x", ""):
        with pytest.raises(InvalidInput, match="jwks_url"):
            jwt_of(issuer="x", audience="y", jwks_url=bad, roles={})
