"""`broker serve` as a process: what it logs, and how it ends."""

import asyncio
import json
import logging
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import pytest

from broker import Action, AsyncBroker, Interrupt, Settlement
from broker.gateway.logs import Line
from broker.testing import RunningServer, await_until

from .commands import Gateway, started
from .site import Site
from .test_answering import asked

CANARY = "canary-4711"
TRACE = "0af7651916cd43dd8448eb211c80319c"


class Sending:
    """A request whose body is on its way for as long as one likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rest: bytes) -> None:
        self._reader, self._writer, self._rest = reader, writer, rest

    @classmethod
    async def answer(cls, gateway: Gateway, interrupt_id: str, key: str) -> "Sending":
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        body = json.dumps({"answer": {"kind": "approve"}}).encode()
        head = (
            f"POST /v1/interrupts/{interrupt_id}/answer HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body[:5])
        await writer.drain()
        return cls(reader, writer, body[5:])

    async def finish(self) -> bytes:
        self._writer.write(self._rest)
        await self._writer.drain()
        said = await self._reader.read()
        await self.close()
        return said

    async def close(self) -> None:
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)


def serve(server: RunningServer, namespace: str, folder: Path, *words: str) -> Any:
    return started(server.url, namespace, folder, "-m", "broker", "serve", *words)


async def in_flight(gateway: Gateway) -> bool:
    """Whether a request is open beside the scrape that asks."""
    async with httpx.AsyncClient(base_url=gateway.url, timeout=5) as anybody:
        return "broker_http_requests_in_flight 2.0" in (await anybody.get("/metrics")).text


async def test_a_gateway_drains_in_order(
    server: RunningServer, namespace: str, tmp_path: Path, broker: AsyncBroker
) -> None:
    """It says so, takes requests for a moment, lets those that are open end, and has ended well."""
    interrupt_id, key = await asked(broker), await Site(broker, "").key()
    words = ("--notice", "1.5", "--drain", "20", "--public-metrics")
    async with serve(server, namespace, tmp_path, *words) as gateway:
        sending = await Sending.answer(gateway, interrupt_id, key)
        await await_until(lambda: in_flight(gateway), what="an open request")
        gateway.terminate()
        await await_until(lambda: _is(gateway, "draining"), what="a gateway that says that it drains")
        async with httpx.AsyncClient(base_url=gateway.url) as anybody:
            assert (await anybody.get("/livez")).status_code == 200
        await await_until(lambda: _is(gateway, "gone"), what="a gateway that takes nothing any more")
        assert gateway.process.returncode is None
        assert b"200 OK" in (await sending.finish()).splitlines()[0]
        assert await gateway.ended(10) == 0
    assert (await broker.inbox.get(interrupt_id)).state is Settlement.RESOLVED


async def _is(gateway: Gateway, state: str) -> bool:
    return await gateway.state() == state


async def test_streams_of_events_end_with_their_gateway(
    server: RunningServer, namespace: str, tmp_path: Path
) -> None:
    async with started(server.url, namespace, tmp_path, "-m", "tests.gateway.streaming") as gateway:
        async with (
            httpx.AsyncClient(base_url=gateway.url, timeout=20) as anybody,
            anybody.stream("GET", "/endless") as stream,
        ):
            lines = stream.aiter_lines()
            assert await anext(lines) == "data: begun"
            at = gateway.terminate()
            rest = []
            with suppress(
                httpx.RemoteProtocolError
            ):  # cut in the middle, as clients of streams know it: they come back
                rest = [line async for line in lines]
        assert await gateway.ended(10) == 0
        assert monotonic() - at < 15, "it did not wait for the 30 seconds that requests have"
        assert [line for line in rest if line] == []


async def test_a_request_that_does_not_end_holds_nobody_up(
    server: RunningServer, namespace: str, tmp_path: Path, broker: AsyncBroker
) -> None:
    interrupt_id, key = await asked(broker), await Site(broker, "").key()
    words = ("--notice", "0", "--drain", "1", "--public-metrics")
    async with serve(server, namespace, tmp_path, *words) as gateway:
        sending = await Sending.answer(gateway, interrupt_id, key)
        await await_until(lambda: in_flight(gateway), what="an open request")
        gateway.terminate()
        assert await gateway.ended(10) == 0
        await sending.close()
    assert (await broker.inbox.get(interrupt_id)).state is Settlement.OPEN


async def test_P13_the_log_says_who_did_what_and_never_what_was_said(
    server: RunningServer, namespace: str, tmp_path: Path, broker: AsyncBroker
) -> None:
    question = Interrupt.approval(Action(tool="refund", arguments={"to": CANARY}), "c", message=CANARY)
    interrupt_id = (await broker.suspend("shop", question, session="s", input=CANARY)).interrupt_ids[0]
    key = await Site(broker, "").key("ada")
    async with serve(server, namespace, tmp_path, "--log", "json") as gateway:
        shown = {"Authorization": f"Bearer {key}", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
        async with httpx.AsyncClient(base_url=gateway.url, headers=shown, timeout=20) as ada:
            path = f"/v1/interrupts/{interrupt_id}"
            assert CANARY in (await ada.get(path)).text
            await ada.get(f"/v1/interrupts?tool={CANARY}&token={key}")
            await ada.get(f"/nowhere/{CANARY}")
            await ada.post(f"{path}/answer", json={"answer": {"kind": "respond", "value": CANARY}})
            await ada.post(f"{path}/answer", content=CANARY, headers={"Content-Type": "application/json"})
            await ada.get(path, headers={"Authorization": f"Bearer brk_{CANARY}"})
            done = await ada.post(f"{path}/answer", json={"answer": {"kind": "reject", "reason": CANARY}})
            assert done.status_code == 200
        gateway.terminate()
        assert await gateway.ended(30) == 0
        lines = gateway.lines()
    told = [json.loads(line) for line in lines]
    requests = [one for one in told if one["logger"] == "broker.gateway.requests"]
    (answered,) = [one for one in requests if one["route"].endswith("/answer") and one["code"] == 200]
    assert answered["route"] == "/v1/interrupts/{interrupt_id}/answer"
    assert (answered["caller"], answered["method"], answered["trace_id"]) == ("ada", "POST", TRACE)
    assert answered["credential"].startswith("key:")
    assert answered["seconds"] > 0
    assert {one["code"] for one in requests if one["route"] == "none"} == {404}
    assert [one["caller"] for one in requests if one["code"] == 401] == [None]
    text = "\n".join(lines)
    assert CANARY not in text
    assert key not in text
    assert key.rpartition("_")[2] not in text


@pytest.mark.parametrize("as_json", [True, False])
def test_P13_a_fault_is_told_by_its_sort_and_place_on_one_line(*, as_json: bool) -> None:
    with pytest.raises(ValueError, match=CANARY) as caught:
        raise ValueError(f"{CANARY}\nGET /forged 200")
    fault = (caught.type, caught.value, caught.tb)
    record = logging.LogRecord("broker", logging.ERROR, "here.py", 1, "it\nbroke", (), fault)
    line = Line(as_json=as_json).format(record)
    assert "ValueError" in line
    assert "test_serving.py:" in line
    assert CANARY not in line
    assert "\n" not in line


async def test_P8_deadlines_pass_where_a_gateway_is_all_there_is(
    server: RunningServer, namespace: str, tmp_path: Path, broker: AsyncBroker
) -> None:
    """No worker, no sweeper but the gateway's: the question ends by itself. Off: `_sweeping` of `broker serve`."""
    brief = Interrupt(expires_in=timedelta(milliseconds=1))
    paused = await broker.suspend("a", brief, session="s")
    async with serve(server, namespace, tmp_path):
        settled = await broker.inbox.wait(paused.interrupt_ids[0], 20)
    assert settled.state is Settlement.EXPIRED
