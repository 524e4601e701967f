"""What a request may cost, and how one that cannot be read, or costs too much, is refused."""

import contextlib
from typing import Any

import httpx
import pytest

from broker import AsyncBroker
from broker.core.access import ApiRole
from broker.gateway import GatewaySettings, create_app

from .site import Site, serving
from .test_api import post


async def test_F46_who_asks_too_often_is_told_when_to_come_back(broker: AsyncBroker) -> None:
    """Two gateways count together. Off: `_spend`."""
    few = GatewaySettings(requests_per_minute=3)
    async with serving(broker, settings=few) as one, serving(broker, settings=few) as two:
        key = await one.key()
        async with one.client(key) as here, two.client(key) as there, one.client(await one.key("bob")) as bob:
            came = [await client.get("/v1/fleet") for client in (here, there, here, there, here, there, here)]
            assert [one.status_code for one in came][-1] == 429
            assert 1 <= int(came[-1].headers["Retry-After"]) <= 60
            assert (await bob.get("/v1/fleet")).status_code == 200


async def test_a_body_that_is_too_large_is_refused_however_it_is_sent(broker: AsyncBroker) -> None:
    async def parts() -> Any:
        for _ in range(10):
            yield b"x" * 500

    small = GatewaySettings(max_body=1000)
    async with (
        serving(broker, settings=small) as site,
        site.client(await site.key("bot", ApiRole.AGENT)) as bot,
    ):
        told = await post(bot, "/v1/runs", {"agent": "a", "session": "s", "input": "x" * 2000})
        streamed = await bot.post("/v1/runs", content=parts(), headers={"Content-Type": "application/json"})
    assert [(one.status_code, one.json()["code"]) for one in (told, streamed)] == [(413, "too_large")] * 2


async def test_what_is_no_JSON_is_refused_and_only_after_the_caller_is_known(site: Site) -> None:
    body = {"content": b'{"an', "headers": {"Content-Type": "application/json"}}
    async with site.client(await site.key("bot", ApiRole.AGENT)) as bot, site.client() as nobody:
        assert (await bot.post("/v1/runs", **body)).status_code == 400  # type: ignore[arg-type]
        assert (await nobody.post("/v1/runs", **body)).status_code == 401  # type: ignore[arg-type]
        assert (await bot.post("/v1/runs", data={"agent": "a"})).status_code == 415
        deep = b"[" * 100_000
        headers = {"Content-Type": "application/json"}
        assert (await bot.post("/v1/runs", content=deep, headers=headers)).status_code == 400


async def test_another_site_is_told_nothing_about_sharing(site: Site) -> None:
    """CORS is off: a page of another origin cannot read what the gateway says."""
    async with site.client(await site.key()) as ada:
        origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        for came in (
            await ada.get("/v1/fleet", headers=origin),
            await ada.options("/v1/fleet", headers=origin),
        ):
            assert [name for name in came.headers if name.startswith("access-control")] == []


async def test_a_request_that_takes_too_long_ends(broker: AsyncBroker) -> None:
    short = GatewaySettings(request_seconds=0.000001)
    async with serving(broker, settings=short) as site, site.client(await site.key()) as ada:
        came = await ada.get("/v1/fleet")
    assert (came.status_code, came.json()["code"]) == (504, "timeout")


async def test_headers_have_their_length(site: Site) -> None:
    """By the HTTP server: it answers, or hangs up, before a route is asked, and goes on serving."""
    async with site.client(await site.key()) as ada:
        codes = []
        with contextlib.suppress(httpx.NetworkError, httpx.RemoteProtocolError):
            codes.append((await ada.get("/v1/fleet", headers={"X-Long": "x" * 2**20})).status_code)
        assert codes in ([], [400], [431])
        assert (await ada.get("/v1/fleet")).status_code == 200


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"agent": "a", "session": "s", "by": {"id": "eve"}}, "by"),
        ({"agent": "a", "session": "{s}"}, "session"),
        ({"agent": "a"}, "session"),
        ({"agent": "a", "session": "s", "priority": "high"}, "priority"),
        ([], "body"),
    ],
    ids=["who", "id", "missing", "type", "list"],
)
async def test_a_body_that_does_not_fit_is_refused_by_the_name_of_its_field(
    site: Site, sent: Any, field: str
) -> None:
    async with site.client(await site.key("bot", ApiRole.AGENT, kind="agent")) as bot:
        came = await post(bot, "/v1/runs", sent)
    assert (came.status_code, came.json()["field"]) == (422, field)
    assert {"problem", "allowed"} <= came.json().keys()


async def test_a_span_beyond_all_time_is_refused(site: Site) -> None:
    body = {"principal": {"id": "eve"}, "role": "viewer", "expires_in_ms": 2**64}
    async with site.client(await site.key("boss", ApiRole.OPERATOR)) as boss:
        came = await post(boss, "/v1/keys", body)
        assert (came.status_code, came.json()["field"]) == (422, "expires_in_ms")
        plain = await boss.post(f"/v1/keys/{(await boss.get('/v1/keys')).json()['items'][0]['id']}/revoke")
    assert plain.status_code == 415


async def test_a_fault_of_the_gateway_is_a_problem_without_a_traceback(broker: AsyncBroker) -> None:
    """Whatever it is: the caller reads a sentence. Off: the handler of `Exception`."""

    async def broken(_: Any) -> None:
        raise RuntimeError("a secret")

    app = create_app(broker, identify=[broken])
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        came = await client.get("/v1/fleet")
    assert (came.status_code, came.json()["code"]) == (500, "broker_error")
    assert came.headers["content-type"] == "application/problem+json"
    assert "secret" not in came.text
