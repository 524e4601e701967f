"""A gateway inside somebody's application, and the fences between namespaces."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.applications import Starlette
from starlette.routing import Mount

from broker import AsyncBroker, Principal, Settlement
from broker.core.access import ApiRole, Scope
from broker.gateway import create_app
from broker.gateway.identity import Caller
from broker.testing import RunningServer

from .site import Site, serving
from .test_api import approval, post

YES = {"answer": {"kind": "approve"}}


def mounted(broker: AsyncBroker, kind: str, **options: Any) -> FastAPI | Starlette:
    inner = create_app(broker, **options)
    if kind == "starlette":
        return Starlette(routes=[Mount("/broker", app=inner)])
    outer = FastAPI()
    outer.mount("/broker", inner)
    return outer


@pytest.mark.parametrize("kind", ["fastapi", "starlette"])
async def test_a_gateway_is_mounted_in_an_application(broker: AsyncBroker, kind: str) -> None:
    """What it says of itself and of its next pages leads to where it is mounted. Off: `request.url.path`."""
    one = await approval(broker, "s1")
    await approval(broker, "s2")
    key = (await broker.keys.create(Principal(id="ada"), ApiRole.REVIEWER)).text
    transport = httpx.ASGITransport(mounted(broker, kind))
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://shop", headers=headers) as ada:
        assert (await ada.get("/broker/readyz")).json() == {"state": "ready"}
        page = await ada.get("/broker/v1/interrupts?limit=1")
        further = page.links["next"]["url"]
        assert further.startswith("/broker/v1/interrupts?")
        (last,) = (await ada.get(further)).json()["items"]
        assert last["session_id"] == "s2"
        told = (await ada.get("/broker/openapi.json")).json()
        assert told["servers"] == [{"url": "/broker"}]
        assert "/v1/interrupts" in told["paths"]
        refused = await ada.put("/broker/v1/keys")
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD, POST")
        answered = await post(ada, f"/broker/v1/interrupts/{one}/answer", YES)
        assert answered.json()["code"] == "accepted"


async def test_F09_who_is_signed_in_to_the_application_answers_as_themselves(broker: AsyncBroker) -> None:
    """By what its own sign-in says, and never by a name in the body."""

    async def identify(request: Request) -> Caller | None:
        if request.headers.get("x-signed-in") != "ada":
            return None
        return Caller(Principal(id="ada", verified=True), frozenset({Scope.READ, Scope.ANSWER}), "shop:ada")

    one = await approval(broker)
    transport = httpx.ASGITransport(mounted(broker, "fastapi", identify=[identify]))
    async with httpx.AsyncClient(transport=transport, base_url="http://shop/broker") as client:
        assert (await post(client, f"/v1/interrupts/{one}/answer", YES)).status_code == 401
        signed = {"x-signed-in": "ada"}
        forged = await post(client, f"/v1/interrupts/{one}/answer", YES | {"by": {"id": "boss"}}, **signed)
        assert (forged.status_code, forged.json()["field"]) == (422, "by")
        assert (await post(client, f"/v1/interrupts/{one}/answer", YES, **signed)).status_code == 200
        assert (await post(client, "/v1/runs", {"agent": "a", "session": "s"}, **signed)).status_code == 403
    resolution = (await broker.inbox.get(one)).resolution
    assert resolution is not None
    assert resolution.by is not None
    assert (resolution.by.id, resolution.by.verified) == ("ada", True)


@pytest.mark.report("RA20")
async def test_F45_RA20_what_is_of_another_namespace_is_unknown_here(
    site: Site, server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    """Keys, interrupts, runs, sessions, jobs: on one server, and neither read nor written across."""
    async with (
        AsyncBroker(server.url, namespace=new_namespace()) as other,
        serving(other) as there,
        site.client(await site.key("boss", ApiRole.OPERATOR)) as boss,
    ):
        one = await approval(other, "secret-session")
        run = (await other.inbox.get(one)).run_id
        foreign = await there.key("eve", ApiRole.OPERATOR)
        async with site.client(foreign) as eve:
            for path in ("/v1/interrupts", f"/v1/interrupts/{one}", "/v1/keys"):
                assert (await eve.get(path)).status_code == 401
        for path in (f"/v1/interrupts/{one}", f"/v1/runs/{run}", f"/v1/runs/{run}/why"):
            came = await boss.get(path)
            assert (came.status_code, came.json()["code"]) == (404, "unknown"), path
        answered = await post(boss, f"/v1/interrupts/{one}/answer", YES)
        assert (answered.status_code, answered.json()["code"]) == (404, "unknown")
        done = await post(boss, "/v1/completions", {"to": one, "value": 1})
        assert done.status_code == 404
        assert (await post(boss, f"/v1/runs/{run}/withdraw", {})).status_code == 404
        assert (await boss.get("/v1/interrupts")).json()["items"] == []
        assert (await boss.get("/v1/sessions/secret-session/history")).json()["items"] == []
        assert (await boss.get("/v1/sessions/secret-session/active")).json()["runs"] == {}
        key = (await other.keys.list())[0].id
        assert (await post(boss, f"/v1/keys/{key}/revoke", {})).status_code == 404
        assert (await other.inbox.get(one)).state is Settlement.OPEN
        assert (await other.keys.find(foreign)) is not None


async def test_a_session_may_have_a_name_with_slashes(site: Site) -> None:
    await approval(site.broker, "slack/C1/17")
    async with site.client(await site.key()) as ada:
        for name in ("slack%2FC1%2F17", "slack/C1/17"):
            active = await ada.get(f"/v1/sessions/{name}/active")
            assert active.json()["session_id"] == "slack/C1/17"
            assert len(active.json()["runs"]) == 1
            assert len((await ada.get(f"/v1/sessions/{name}/history")).json()["items"]) >= 1


async def test_readyz_says_so_when_the_server_is_gone() -> None:
    """Without waiting for as long as a caller would. Off: its own patience."""
    app = create_app(AsyncBroker("redis://127.0.0.1:1", patience=60))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        assert (await client.get("/livez")).status_code == 200
        came = await client.get("/readyz", timeout=10)
    assert (came.status_code, came.json()["state"]) == (503, "timeout")
