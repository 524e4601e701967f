"""Who is let in, and to what: by key and by token; and that looking, however often, decides nothing."""

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request
from fastapi.routing import iter_route_contexts

from broker import AsyncBroker, Interrupt, Principal, PrincipalKind, Settlement
from broker.core.access import ApiRole, Scope
from broker.core.tokens import Purpose
from broker.gateway import create_app
from broker.gateway.identity import PUBLIC, Caller, CallerOf, bearer, guard, needed, needs
from broker.testing import RunningServer

from .site import Site, serving
from .test_tokens import approval, contents, job

ADA = Principal(id="ada")
YES = {"answer": {"kind": "approve"}}
UNGUARDED = {"/openapi.json", "/static"}
"""Routes that tell nothing of any namespace: what the interface is, and the files of its pages."""
ENDLESS = {"events", "live", "stream"}
"""Routes that go on until the caller leaves; they are read elsewhere."""


async def token(site: Site, to: str, purpose: str = "decide", **rest: Any) -> str:
    holder = ADA if purpose == "decide" else None
    return (await site.broker.tokens.create(to, purpose, for_=holder, **rest)).text


async def answer(site: Site, credential: str | None, interrupt_id: str, body: Any = YES) -> httpx.Response:
    async with site.client(credential) as client:
        return await client.post(f"/v1/interrupts/{interrupt_id}/answer", json=body)


async def state(site: Site, interrupt_id: str) -> Settlement:
    return (await site.broker.inbox.get(interrupt_id)).state


async def test_F41_a_token_answers_the_interrupt_it_is_for_and_no_other(site: Site) -> None:
    mine, other = await approval(site.broker, "s1"), await approval(site.broker, "s2")
    mark = await token(site, mine)
    async with site.client(mark) as client:
        assert (await client.get(f"/v1/interrupts/{mine}")).status_code == 200
        assert (await client.get(f"/v1/interrupts/{other}")).status_code == 403
        assert (await client.get("/v1/interrupts")).status_code == 403
    before = await answer(site, mark, other)
    assert (before.status_code, before.json()["code"]) == (403, "not_permitted")
    assert await state(site, other) is Settlement.OPEN
    assert (await answer(site, mark, mine)).status_code == 200
    settled = (await site.broker.inbox.get(mine)).resolution
    assert settled is not None
    assert settled.by is not None
    assert (settled.by.id, settled.by.verified) == ("ada", True)


async def test_F41_F42_tokens_that_do_not_count_are_refused_and_on_record(
    site: Site, server: RunningServer, new_namespace: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    """Forged, revoked, used, of another purpose or namespace: nothing is written."""
    one = await approval(site.broker, "s1")
    done = await approval(site.broker, "s2")
    used = await token(site, done, single_use=True)
    assert (await answer(site, used, done)).status_code == 200
    revoked = await token(site, one)
    await site.broker.tokens.revoke(revoked)
    good = await token(site, one)
    head, body, sign = good.split(".")
    wrong_purpose = await token(site, await job(site.broker, "s3"), "complete")
    async with AsyncBroker(server.url, namespace=new_namespace()) as elsewhere:
        foreign = (await elsewhere.tokens.create(await approval(elsewhere, "s1"), "decide")).text
    held = contents(server, site.broker)
    with caplog.at_level(logging.WARNING, "broker.gateway"):
        for credential, target, code in (
            (f"{head}.{body}.{sign[::-1]}", one, 401),
            (f"{head}.{body}.", one, 401),
            (revoked, one, 401),
            (used, done, 401),
            (foreign, one, 401),
            (wrong_purpose, one, 403),
            ("tok_AAAA", one, 401),
            ("brk_" + "a" * 16 + "_" + "b" * 43, one, 401),
            ("eyJhbGciOiJub25lIn0.e30.", one, 401),
            (None, one, 401),
        ):
            refused = await answer(site, credential, target)
            assert refused.status_code == code, credential
            assert refused.headers["content-type"] == "application/problem+json"
            assert ("www-authenticate" in refused.headers) == (code == 401)
    assert contents(server, site.broker) == held
    lines = [one for one in caplog.records if one.name == "broker.gateway"]
    assert len(lines) == 10
    assert not any(part in caplog.text for part in (sign, revoked, used, foreign))
    assert await state(site, one) is Settlement.OPEN


async def test_refusals_are_counted(broker: AsyncBroker) -> None:
    app = create_app(broker)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        await client.get("/v1/interrupts")
        key = await broker.keys.create(ADA, ApiRole.SERVICE)
        await client.get("/v1/interrupts", headers={"Authorization": f"Bearer {key.text}"})
    assert app.state.refusals == {401: 1, 403: 1}


async def test_F43_an_agent_never_decides_whatever_says_who_it_is(broker: AsyncBroker) -> None:
    """Also where an `identify` of the deployment gives it every scope."""

    async def generous(request: Request) -> Caller | None:
        if bearer(request) != "let-me-in":
            return None
        return Caller(Principal(id="bot", kind=PrincipalKind.AGENT), frozenset(Scope), "own:bot")

    one = await approval(broker)
    async with serving(broker, identify=[generous]) as site:
        assert (await answer(site, "let-me-in", one)).status_code == 403
    assert (await broker.inbox.get(one)).state is Settlement.OPEN


async def test_a_route_that_says_nothing_is_denied_to_everybody(broker: AsyncBroker) -> None:
    """RA41: one that somebody forgot to mark is closed, and not open."""
    app = create_app(broker)

    @app.get("/v1/forgotten")
    async def forgotten() -> str:
        return "secret"

    operator = (await broker.keys.create(ADA, ApiRole.OPERATOR)).text
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        assert (await client.get("/v1/forgotten")).status_code == 401
        shown = {"Authorization": f"Bearer {operator}"}
        assert (await client.get("/v1/forgotten", headers=shown)).status_code == 403


async def test_a_token_of_a_call_reaches_only_what_acts_on_itself(broker: AsyncBroker) -> None:
    router = APIRouter()

    @router.post("/v1/own")
    @needs(Scope.COMPLETE, own=True)
    async def own(caller: CallerOf) -> str | None:
        assert caller.token is not None
        return caller.token.about.interrupt_id

    @router.post("/v1/any")
    @needs(Scope.COMPLETE)
    async def anything() -> None: ...

    app = create_app(broker)
    app.include_router(router)
    one = await job(broker)
    shown = {"Authorization": f"Bearer {(await broker.tokens.create(one, 'complete')).text}"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        assert (await client.post("/v1/own", headers=shown)).json() == one
        assert (await client.post("/v1/any", headers=shown)).status_code == 403


@dataclass
class Found:
    """A route, as the gateway serves it."""

    path: str
    route: Any

    @property
    def is_guarded(self) -> bool:
        """Whether it goes through the one check."""
        dependant = getattr(self.route, "dependant", None)
        return dependant is not None and any(one.call is guard for one in dependant.dependencies)

    @property
    def need(self) -> Scope | str | None:
        return needed(self.route.endpoint)

    def at(self, **given: str) -> str:
        """Its path with values in it."""
        return re.sub(r"{(\w+)[^}]*}", lambda found: given.get(found[1], "1"), self.path)


def routes(app: FastAPI) -> list[Found]:
    """Every route there is, those of mounted applications included."""
    found: list[Found] = []

    def walk(some: Any, prefix: str) -> None:
        for route in iter_route_contexts(some):
            path = prefix + (route.path or "")
            found.append(Found(path, route))
            inner = getattr(getattr(route.route, "app", None), "routes", None)
            if inner and path not in UNGUARDED:
                walk(inner, path)

    walk(app.routes, "")
    return found


@pytest.mark.report("RA41")
def test_RA41_every_route_is_guarded_or_known_to_tell_nothing(broker: AsyncBroker) -> None:
    """Endpoints go through the guard and say what they need; whatever else there is has to be listed here."""
    found = routes(create_app(broker))
    assert {one.path for one in found} >= {"/livez", "/readyz", "/v1/interrupts/{interrupt_id}/answer"}
    assert {one.path for one in found if not one.is_guarded} - UNGUARDED == set()
    assert [one.path for one in found if one.is_guarded and one.need is None] == []


@pytest.mark.report("RA41")
async def test_RA41_a_caller_without_credential_reaches_the_public_routes_only(site: Site) -> None:
    """Each route by each method, with a real server behind it: 401, or nothing there that could be used."""
    found = routes(create_app(site.broker))
    one = await approval(site.broker)
    public = {route.path for route in found if route.is_guarded and route.need == PUBLIC}
    reached = set()
    async with site.client() as nobody:
        for route in found:
            for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE"):
                came = await nobody.request(method, route.at(interrupt_id=one))
                # Pages send whoever is not known to where they sign in; a link that is none is forbidden.
                to_sign_in = came.headers.get("location", "").startswith("/inbox/sign-in")
                if came.status_code not in (401, 403, 404, 405) and not to_sign_in:
                    reached.add(route.path)
    assert reached - public - UNGUARDED == set()
    assert reached >= {"/livez", "/readyz"}


@pytest.mark.report("RA36")
async def test_F40_RA36_a_storm_of_looks_decides_nothing(site: Site, server: RunningServer) -> None:
    """A link scanner, a prefetching gateway and a curious client, with every sort of credential."""
    open_ones = [await approval(site.broker, f"s{n}") for n in range(3)]
    jobs = [await job(site.broker, f"j{n}") for n in range(3)]
    credentials: list[str | None] = [None, "brk_forged", "brt_a.b.c"]
    credentials += [await site.key(f"k-{role}", role) for role in ApiRole]
    credentials += [await token(site, one) for one in open_ones]
    credentials += [
        await token(site, one, purpose) for one in jobs for purpose in (Purpose.COMPLETE, Purpose.HEARTBEAT)
    ]
    held = contents(server, site.broker)
    found = routes(create_app(site.broker))
    looks = [one for one in found if not ENDLESS & set(one.path.split("/"))]
    assert any(one.path.endswith("/answer") for one in looks)

    async def look(credential: str | None) -> None:
        async with site.client(credential) as client:
            for route in looks:
                for one in (*open_ones, *jobs) if "{interrupt_id}" in route.path else ("",):
                    for method in ("GET", "HEAD", "OPTIONS"):
                        at = route.at(interrupt_id=one)
                        await client.request(method, at, params={"kind": "approve", "answer": "approve"})

    await asyncio.gather(*[look(credential) for credential in credentials])
    assert contents(server, site.broker) == held
    assert [await state(site, one) for one in (*open_ones, *jobs)] == [Settlement.OPEN] * 6


async def test_the_question_stays_answerable_after_a_wrong_answer_by_token(site: Site) -> None:
    asked = Interrupt.question("which", {"type": "object", "required": ["n"]})
    one = (await site.broker.suspend("shop", asked, session="s")).interrupt_ids[0]
    mark = await token(site, one, single_use=True, expires_in=timedelta(hours=1))
    bad = await answer(site, mark, one, {"answer": {"kind": "respond", "payload": {"banana": 1}}})
    assert (bad.status_code, bad.json()["outcome"]["field"]) == (422, "payload")
    assert (
        await answer(site, mark, one, {"answer": {"kind": "respond", "payload": {"n": 1}}})
    ).status_code == 200
