"""`GET /v1/events`: what happens as server-sent events (F40)."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from broker import Approve, AsyncBroker, Principal
from broker.core.access import ApiRole
from broker.gateway import GatewaySettings
from broker.testing import await_until

from .site import Site, serving
from .test_events import ask, connections

ADA = Principal(id="ada")


class Reader:
    """A client of one stream, reading as a browser would."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()
        self.last_id: str | None = None

    async def next(self) -> dict[str, Any]:
        """The next event's data; keep-alives are passed over."""
        data, name = "", ""
        async with asyncio.timeout(20):
            async for line in self._lines:
                field, _, value = line.partition(": ")
                if field == "id":
                    self.last_id = value
                elif field == "event":
                    name = value
                elif field == "data":
                    data += value
                elif not line and data:
                    found: dict[str, Any] = json.loads(data)
                    assert found["type"] == name
                    assert found["cursor"] == self.last_id
                    return found
                elif not line and self.last_id is not None:
                    return {}
        raise EOFError

    async def drain(self) -> None:
        """Reads until the stream ends."""
        while True:
            await self.next()


@asynccontextmanager
async def reading(client: httpx.AsyncClient, **how: Any) -> AsyncIterator[Reader]:
    async with client.stream("GET", "/v1/events", **how) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        reader = Reader(response)
        assert await reader.next() == {}  # the cursor that it starts from
        yield reader


async def test_F40_events_come_as_they_happen_and_go_on_from_the_last_id(site: Site) -> None:
    """Whoever was away is told what has happened meanwhile, in its order, and nothing twice."""
    key = await site.key()
    async with site.client(key) as client:
        async with reading(client) as reader:
            one = await ask(site.broker, "one")
            opened = await reader.next()
            assert (opened["type"], opened["interrupt_id"]) == ("interrupt.opened", one)
            assert "4711" not in json.dumps(opened)
        await site.broker.inbox.answer(one, Approve(), by=ADA)
        two = await ask(site.broker, "two")
        async with reading(client, headers={"Last-Event-ID": opened["cursor"]}) as reader:
            told = [await reader.next(), await reader.next()]
    assert [(each["type"], each["interrupt_id"]) for each in told] == [
        ("interrupt.settled", one), ("interrupt.opened", two),
    ]  # fmt: skip
    assert told[0]["by"]["id"] == "ada"


async def test_only_what_was_asked_for(site: Site) -> None:
    async with site.client(await site.key()) as client:
        how = {"params": {"session": "mine", "type": ["interrupt.opened"]}}
        async with reading(client, **how) as reader:
            await ask(site.broker, "other")
            mine = await ask(site.broker, "mine")
            assert (await reader.next())["interrupt_id"] == mine


@pytest.mark.parametrize(
    ("how", "field"),
    [
        ({"headers": {"Last-Event-ID": "nonsense"}}, "after"),
        ({"params": {"after": "c1.1.1"}}, "after"),
        ({"params": {"type": "interrupt.sold"}}, "types"),
    ],
)
async def test_P12_what_cannot_be_followed_is_refused(site: Site, how: dict[str, Any], field: str) -> None:
    async with site.client(await site.key()) as client:
        refused = await client.get("/v1/events", **how)
    assert (refused.status_code, refused.json()["field"]) == (422, field)


async def test_nobody_follows_without_the_scope(site: Site) -> None:
    async with site.client() as client:
        assert (await client.get("/v1/events")).status_code == 401
    async with site.client(await site.key("job", ApiRole.SERVICE, kind="service")) as client:
        assert (await client.get("/v1/events")).status_code == 403


async def test_streams_of_a_caller_are_bounded(broker: AsyncBroker) -> None:
    settings = GatewaySettings(streams_per_caller=2)
    async with serving(broker, settings=settings) as site:
        key = await site.key()
        async with site.client(key) as client, site.client(await site.key("bob")) as other:
            async with reading(client), reading(client):
                refused = await client.get("/v1/events")
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
                async with reading(other):
                    pass

            async def let_in() -> bool:
                async with client.stream("GET", "/v1/events") as response:
                    return response.status_code == 200

            await await_until(let_in)


async def test_a_stream_ends_with_its_key(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.gateway.routes.events.KEEP_ALIVE_SECONDS", 0.1)
    key = await site.key()
    async with site.client(key) as client, reading(client) as reader:
        assert await reader.next() == {}
        (made,) = await site.broker.keys.list()
        await site.broker.keys.revoke(made.id)
        with pytest.raises(EOFError):
            await reader.drain()


async def test_streams_end_when_the_gateway_stops(broker: AsyncBroker) -> None:
    async with serving(broker) as site:
        client = site.client(await site.key())
        stream = reading(client)
        reader = await stream.__aenter__()
    with pytest.raises((EOFError, httpx.RemoteProtocolError)):
        await reader.drain()
    await stream.__aexit__(None, None, None)
    await client.aclose()

    async def quiet() -> bool:
        return await connections(broker) == 0

    await await_until(quiet)
