"""Texts that a namespace signs: only it can make them, any process verifies them, and keys may change."""

import asyncio
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta

import jwt
import pytest

from broker import AsyncBroker, InvalidInput, NotPermitted, UnknownId, Untrusted
from broker.core.signing import SigningKey
from broker.store.commands import credentials
from broker.store.roles import Role, acl_rules
from broker.testing import RunningServer, ServerProcess, await_until

HOUR = timedelta(hours=1)


async def refusal(broker: AsyncBroker, text: str, purpose: str = "session") -> str:
    with pytest.raises(Untrusted) as caught:
        await broker.signing.verify(purpose, text)
    return caught.value.reason


async def test_what_was_signed_is_read_by_every_process(broker: AsyncBroker, server: RunningServer) -> None:
    text = await broker.signing.sign("session", {"sub": "ada"}, HOUR)
    async with AsyncBroker(server.url, namespace=broker.namespace) as other:
        signed = await other.signing.verify("session", text)
    assert signed.claims == {"sub": "ada"}
    assert signed.expires_at - signed.issued_at == HOUR
    assert "ada" not in repr(signed)


@pytest.mark.report("RA44")
async def test_F42_RA44_old_texts_count_after_a_rotation_until_their_key_is_dropped(
    broker: AsyncBroker, server: RunningServer
) -> None:
    """Keys are the namespace's, not a deployment's: a new process verifies what one that is gone signed."""
    text = await broker.signing.sign("session", {"sub": "ada"}, HOUR)
    await broker.aclose()
    async with AsyncBroker(server.url, namespace=broker.namespace) as later:
        second = await later.signing.rotate()
        assert [key.number for key in await later.signing.keys()] == [1, 2]
        assert (await later.signing.verify("session", text)).key == 1
        newer = await later.signing.sign("session", {}, HOUR)
        assert (await later.signing.verify("session", newer)).key == second.number
        await later.signing.drop(1)
        assert "signing key" in await refusal(later, text)
        assert (await later.signing.verify("session", newer)).key == 2
        with pytest.raises(InvalidInput, match="signs"):
            await later.signing.drop(2)
        with pytest.raises(UnknownId):
            await later.signing.drop(1)


async def test_rotations_at_once_make_one_key(server: RunningServer, namespace: str) -> None:
    async with AsyncExitStack() as stack:
        brokers = [
            await stack.enter_async_context(AsyncBroker(server.url, namespace=namespace)) for _ in range(8)
        ]
        texts = await asyncio.gather(*[one.signing.sign("session", {}, HOUR) for one in brokers])
        assert len(await brokers[0].signing.keys()) == 1
        for one, text in zip(brokers, reversed(texts), strict=True):
            await one.signing.verify("session", text)


async def test_F41_a_text_counts_for_its_namespace_and_purpose_only(
    broker: AsyncBroker, server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    text = await broker.signing.sign("session", {"sub": "ada"}, HOUR)
    assert "another namespace or purpose" in await refusal(broker, text, "decide")
    async with AsyncBroker(server.url, namespace=new_namespace()) as other:
        await other.signing.sign("session", {}, HOUR)
        assert "forged" in await refusal(other, text)


async def test_the_same_key_in_another_namespace_changes_nothing(
    broker: AsyncBroker, server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    """As after a copy of a server's data under another name: the audience is held as well as the signature."""
    text = await broker.signing.sign("session", {}, HOUR)
    (key,) = await broker.signing.keys()
    async with AsyncBroker(server.url, namespace=new_namespace()) as other:
        await other._link.fetch(credentials.add_signing_key(other._link.space.partition(0), key))
        assert "another namespace or purpose" in await refusal(other, text)


def part(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


async def test_F41_forged_texts_are_refused(broker: AsyncBroker) -> None:
    """Other claims, another algorithm, none at all, a key of the forger's, and what is no token."""
    text = await broker.signing.sign("session", {"sub": "ada"}, HOUR)
    head, body, sign = text.split(".")
    claims = json.loads(urlsafe_b64decode(body + "=="))
    mine = SigningKey.new(1, (await broker.signing.verify("session", text)).issued_at).secret
    forged = (
        f"{head}.{part(claims | {'sub': 'mallory'})}.{sign}",
        f"{part({'alg': 'none', 'kid': '1'})}.{body}.",
        f"{part({'alg': 'HS512', 'kid': '1'})}.{body}.{sign}",
        jwt.encode(claims, mine, algorithm="HS256", headers={"kid": "1"}),
        jwt.encode(claims, mine, algorithm="HS256"),
        jwt.encode(claims, mine, algorithm="HS256", headers={"kid": "7"}),
        text[:-1], text + ".", head, "", "a.b.c", "é.ü.ß", "x" * 9000,
    )  # fmt: skip
    for one in forged:
        with pytest.raises(Untrusted):
            await broker.signing.verify("session", one)
    await broker.signing.verify("session", text)


async def test_F42_a_text_expires_by_the_servers_time(broker: AsyncBroker) -> None:
    text = await broker.signing.sign("session", {}, timedelta(seconds=1))

    async def expired() -> bool:
        try:
            await broker.signing.verify("session", text)
        except Untrusted as refused:
            return refused.reason == "it has expired"
        return False

    await await_until(expired)


async def test_bad_claims_are_refused_before_anything_is_written(broker: AsyncBroker) -> None:
    for purpose, claims, span in (
        ("session", {"exp": 1}, HOUR),
        ("session", {}, timedelta(0)),
        ("a/b", {}, HOUR),
        ("session", {"x": "y" * 9000}, HOUR),
    ):
        with pytest.raises(InvalidInput):
            await broker.signing.sign(purpose, claims, span)


async def test_P13_a_worker_reads_no_signing_key(
    start_server: Callable[..., ServerProcess], namespace: str
) -> None:
    own_server = start_server()
    async with AsyncBroker(own_server.url, namespace=namespace) as gateway:
        await gateway.signing.rotate()
    own_server.call("ACL", "SETUSER", "worker", "on", ">w", *acl_rules(namespace, Role.WORKER))
    async with AsyncBroker(f"unix://worker:w@{own_server.socket}", namespace=namespace) as worker:
        for attempt in (worker.signing.keys, worker.signing.rotate):
            with pytest.raises(NotPermitted):
                await attempt()
