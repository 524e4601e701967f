"""API keys: hashed, of one namespace and role, expiring, rotated with an overlap, revoked at once."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
import redis

from broker import AsyncBroker, InvalidInput, Principal, PrincipalKind, UnknownId
from broker.core.access import ApiRole
from broker.testing import RunningServer, await_until

from .site import Site

HOUR = timedelta(hours=1)
ADA = Principal(id="ada", groups=("refunds",))


async def status(site: Site, key: str) -> int:
    async with site.client(key) as client:
        return (await client.get("/v1/interrupts")).status_code


async def test_F42_a_rotated_key_and_the_new_one_count_together_until_the_old_one_retires(site: Site) -> None:
    old = await site.broker.keys.create(ADA, ApiRole.REVIEWER, note="desk")
    new = await site.broker.keys.rotate(old.key.id, overlap=timedelta(seconds=2))
    assert (new.key.principal, new.key.role, new.key.note) == (old.key.principal, ApiRole.REVIEWER, "desk")
    assert new.key.replaces == old.key.id
    assert [await status(site, one.text) for one in (old, new)] == [200, 200]

    async def retired() -> bool:
        return await status(site, old.text) == 401

    await await_until(retired)
    assert await status(site, new.text) == 200


async def test_a_rotation_without_overlap_ends_the_old_key_at_once(site: Site) -> None:
    old = await site.broker.keys.create(ADA, ApiRole.VIEWER, expires_in=HOUR)
    new = await site.broker.keys.rotate(old.key.id, overlap=timedelta())
    assert new.key.expires_at == old.key.expires_at
    assert [await status(site, one.text) for one in (old, new)] == [401, 200]


async def test_a_key_is_rotated_once_and_only_while_it_counts(broker: AsyncBroker) -> None:
    old = await broker.keys.create(ADA, ApiRole.VIEWER)
    new = await broker.keys.rotate(old.key.id)
    with pytest.raises(InvalidInput, match="rotated already"):
        await broker.keys.rotate(old.key.id)
    await broker.keys.revoke(new.key.id)
    with pytest.raises(InvalidInput, match="counts no more"):
        await broker.keys.rotate(new.key.id)
    with pytest.raises(InvalidInput, match="overlap"):
        await broker.keys.rotate(old.key.id, overlap=-HOUR)
    for nobody in ("0" * 16, f"{old.key.id} retires"):
        with pytest.raises(UnknownId):
            await broker.keys.rotate(nobody)


async def test_a_revocation_outlives_a_rotation_at_the_same_time(broker: AsyncBroker) -> None:
    for _ in range(20):
        old = await broker.keys.create(ADA, ApiRole.VIEWER)
        await asyncio.gather(
            broker.keys.revoke(old.key.id), broker.keys.rotate(old.key.id), return_exceptions=True
        )
        assert (await broker.keys.get(old.key.id)).revoked_at is not None
        assert await broker.keys.find(old.text) is None


async def test_F42_a_key_expires(site: Site) -> None:
    brief = await site.broker.keys.create(ADA, ApiRole.VIEWER, expires_in=timedelta(seconds=1))

    async def over() -> bool:
        return await status(site, brief.text) == 401

    await await_until(over)
    with pytest.raises(InvalidInput, match="expires_in"):
        await site.broker.keys.create(ADA, ApiRole.VIEWER, expires_in=timedelta())


async def test_F42_a_revoked_key_counts_no_more_in_any_process(site: Site, server: RunningServer) -> None:
    made = await site.broker.keys.create(ADA, ApiRole.VIEWER)
    assert await status(site, made.text) == 200
    async with AsyncBroker(server.url, namespace=site.broker.namespace) as other:
        first = await other.keys.revoke(made.key.id)
        assert (await other.keys.revoke(made.key.id)).revoked_at == first.revoked_at
    assert await status(site, made.text) == 401


async def test_F41_a_key_counts_in_its_namespace_only(
    site: Site, server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    made = await site.broker.keys.create(ADA, ApiRole.VIEWER)
    async with AsyncBroker(server.url, namespace=new_namespace()) as other:
        assert await other.keys.find(made.text) is None


async def test_P13_no_secret_is_stored_or_shown(broker: AsyncBroker, server: RunningServer) -> None:
    made = await broker.keys.create(ADA, ApiRole.VIEWER)
    secret = made.text.removeprefix(f"brk_{made.key.id}_")
    with redis.Redis.from_url(server.url) as client:
        held = b"".join(client.dump(key) for key in client.scan_iter(match=f"{{{broker.namespace}*"))
    assert made.key.id.encode() in held
    assert secret.encode() not in held
    assert secret not in f"{made!r} {await broker.keys.list()!r}"


@pytest.mark.parametrize("role", [ApiRole.REVIEWER, ApiRole.OPERATOR])
async def test_F43_an_agent_gets_no_key_that_decides(broker: AsyncBroker, role: ApiRole) -> None:
    with pytest.raises(InvalidInput, match="role"):
        await broker.keys.create(Principal(id="bot", kind=PrincipalKind.AGENT), role)
    assert await broker.keys.list() == ()
