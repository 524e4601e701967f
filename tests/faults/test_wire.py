"""Calls that travel together: what happens to one of them is nobody else's business."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from broker import AsyncBroker, InterruptState, InvalidInput, Unavailable
from broker._async import _wire
from broker.store.commands import runs
from broker.store.commands.values import MOST_BYTES, MOST_ITEMS, Came, Read, header, packed
from broker.store.connect import Refusal
from broker.store.scripts import Rendering
from broker.testing import FaultProxy, RunningServer, ServerProcess, await_until

from .world import ADA, approval, told

MANY = 200


async def asked_together(broker: AsyncBroker, count: int, **more: Any) -> list[Any]:
    """The outcomes of so many pauses, made in one turn of the loop."""
    asking = [broker.suspend("a", approval(n), session=f"s{n}", key="k", **more) for n in range(count)]
    return await asyncio.gather(*asking, return_exceptions=True)


async def events(broker: AsyncBroker, count: int) -> list[list[str]]:
    found = await asyncio.gather(*[broker.history(f"s{n}") for n in range(count)])
    return [[one.event for one in entries] for entries in found]


def calls_of(server: ServerProcess, command: str) -> int:
    """How often the server was sent a command."""
    stats = server.call("INFO", "commandstats")
    assert isinstance(stats, bytes)
    rows = dict(line.split(":", 1) for line in stats.decode().split() if ":" in line)
    row = rows.get(f"cmdstat_{command}", "calls=0,")
    return int(row.partition("calls=")[2].partition(",")[0])


async def test_calls_of_one_turn_share_connection_write_and_script_call(own_server: ServerProcess) -> None:
    """Off: `_together`, when each call makes a pack of its own."""
    async with AsyncBroker(own_server.url, by=ADA) as broker:
        await asked_together(broker, 1)
        before = calls_of(own_server, "evalsha")
        outcomes = await asked_together(broker, MANY)
        sent = calls_of(own_server, "evalsha") - before
        assert [told(one) for one in outcomes] == ["replayed"] + ["accepted"] * (MANY - 1)
        assert MANY / MOST_ITEMS <= sent <= MANY / MOST_ITEMS * 2
        clients = own_server.call("CLIENT", "LIST")
        assert isinstance(clients, bytes)
        assert clients.count(b"name=broker") == 1


async def test_what_travels_together_is_bounded(
    own_server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits long behind a pack, whatever its calls weigh."""
    weights = []

    def weigh(calls: Any, *, whole: bool) -> Any:
        words = packed(calls, whole=whole)
        weights.append((len(calls), len(words), sum(one.size for one in calls)))
        return words

    monkeypatch.setattr("broker._async._wire.packed", weigh)
    heavy = InterruptState(framework="f", opaque=random.randbytes(60_000))
    async with AsyncBroker(own_server.url, by=ADA) as broker:
        await asked_together(broker, 64, state=heavy)
    assert max(count for count, _, _ in weights) <= MOST_ITEMS
    assert max(words for _, words, _ in weights) <= 3000
    assert all(size <= MOST_BYTES for count, _, size in weights if count > 1)


@pytest.mark.usefixtures("loaded")
async def test_a_line_cut_in_the_middle_of_a_shared_write(
    proxy: FaultProxy, server: RunningServer, namespace: str
) -> None:
    """All of them are sent again, and what had happened already does not happen twice."""
    async with (
        AsyncBroker(proxy.url, namespace=namespace, by=ADA) as far,
        AsyncBroker(server.url, namespace=namespace) as near,
    ):
        await far.open()
        for number in (1, 3, 5):
            proxy.drop_next_reply(b"EVALSHA", nth=number)
        outcomes = await asked_together(far, MANY)
        assert {told(one) for one in outcomes} <= {"accepted", "replayed"}
        assert proxy.dropped >= 1
        assert await events(near, MANY) == [["suspended"]] * MANY


async def test_a_slow_server_is_waited_for_by_all(proxy: FaultProxy, namespace: str) -> None:
    async with AsyncBroker(proxy.url, namespace=namespace, by=ADA) as broker:
        await broker.open()
        proxy.delay(0.1)
        assert [told(one) for one in await asked_together(broker, MANY)] == ["accepted"] * MANY


async def test_callers_wait_while_the_network_takes_no_more(
    proxy: FaultProxy, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Off: `full`, when whatever is asked for is written at once, however much waits for the network already."""
    monkeypatch.setattr(_wire, "HIGH_WATER", 64 * 1024)
    async with AsyncBroker(proxy.url, namespace=namespace, by=ADA) as broker:
        await broker.open()
        proxy.hang()
        big = {"text": random.randbytes(100_000).hex()}
        calls = [asyncio.create_task(broker.start("a", big, session=f"s{n}", key="k")) for n in range(100)]
        line = broker._link.wire._line
        assert line is not None
        await await_until(lambda: line.full)
        waiting = line._stream.transport.get_write_buffer_size()
        more = [asyncio.create_task(broker.start("a", big, session=f"t{n}", key="k")) for n in range(100)]
        await asyncio.wait(more, timeout=0.05)
        assert line._stream.transport.get_write_buffer_size() == waiting
        proxy.restore()
        assert {told(one) for one in await asyncio.gather(*calls, *more)} <= {"accepted", "replayed"}


async def test_cancelled_callers_take_nobody_along(
    proxy: FaultProxy, server: RunningServer, namespace: str
) -> None:
    """Their calls have happened or not, and may be made again; the neighbours are told what became of theirs."""
    async with (
        AsyncBroker(proxy.url, namespace=namespace, by=ADA) as far,
        AsyncBroker(server.url, namespace=namespace) as near,
    ):
        await far.open()
        proxy.delay(0.1)
        calls = [
            asyncio.create_task(far.suspend("a", approval(n), session=f"s{n}", key="k")) for n in range(MANY)
        ]
        sent = far._link.wire._line
        assert sent is not None
        await await_until(lambda: bool(sent._waiting))
        for call in calls[::3]:
            call.cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        for n, one in enumerate(outcomes):
            assert isinstance(one, asyncio.CancelledError) if n % 3 == 0 else told(one) == "accepted"
        proxy.delay(0)
        again = await asked_together(far, MANY)
        assert {told(one) for one in again} <= {"accepted", "replayed"}
        assert await events(near, MANY) == [["suspended"]] * MANY


async def test_one_call_that_breaks_the_script_fails_alone(own_server: ServerProcess) -> None:
    """Off: `alone`, when a pack that the script cannot carry fails as a whole."""
    async with AsyncBroker(own_server.url, by=ADA) as broker:
        link, script = broker._link, Rendering().script("release")
        for n in range(20):
            await broker.start("a", n, session=f"s{n}")
        leased = await broker.queue("agents").lease(("a",), limit=20)
        own_server.call("SCRIPT", "LOAD", script.text)
        head = header(link.settings)
        calls = [runs.release(run._leased).call(script, head) for run in leased]
        # It says of itself that it has `many` arguments, which the script cannot count.
        calls[3] = replace(calls[3], flat=["many", *calls[3].flat[1:]])
        outcomes = await asyncio.gather(*[link.wire.run(one) for one in calls], return_exceptions=True)
        assert isinstance(outcomes[3], Refusal)
        # Those before it had happened already, and are told so as whoever repeats a call is.
        found = [one.reply[0][0] for one in outcomes if isinstance(one, Came)]
        assert found == [b"stale_lease"] * 3 + [b"ok"] * 16
        first = outcomes[:MOST_ITEMS]
        assert all(one.again for one in first if isinstance(one, Came))
        assert not any(one.again for one in outcomes[MOST_ITEMS:] if isinstance(one, Came))
        assert len(await broker.runs.ready("agents")) == 19


async def test_what_cannot_be_written_fails_alone(own_server: ServerProcess) -> None:
    """Nobody is given the reply to another call. Off: `pack` in `_flush`, when it is done after who waits is noted."""
    async with AsyncBroker(own_server.url, by=ADA) as broker:
        await asked_together(broker, 20)
        link, p = broker._link, broker._link.space.partition(0)
        bad = Read((("GET", p.key("run", "caf\udce9")),), lambda replies: replies)
        reads = [link.fetch(bad if n == 7 else Read((("ECHO", str(n)),), list)) for n in range(20)]
        found = await asyncio.gather(*reads, return_exceptions=True)
        assert isinstance(found[7], InvalidInput)
        assert [one for one in found if isinstance(one, list)] == [
            [str(n).encode()] for n in range(20) if n != 7
        ]
        call = runs.release((await leased(broker))[0]._leased).call(
            Rendering().script("release"), header(link.settings)
        )
        many = [replace(call, flat=[*call.flat[:-1], "\udce9"]) if n == 3 else call for n in range(5)]
        outcomes = await asyncio.gather(
            *[link.wire.run(one, whole=True) for one in many], return_exceptions=True
        )
        assert [type(one) for one in outcomes].count(InvalidInput) == 1
        assert [type(one) for one in outcomes].count(Came) == 4
        assert await events(broker, 20) == [["suspended"]] * 20


async def leased(broker: AsyncBroker) -> Any:
    await broker.start("b", session="leased")
    return await broker.queue("agents").lease(("b",))


async def test_calls_under_way_when_it_closes_open_nothing(proxy: FaultProxy, namespace: str) -> None:
    """Off: `_closed`, when a call that failed by the closing is made again on a connection that nobody closes."""
    broker = AsyncBroker(proxy.url, namespace=namespace, by=ADA)
    await broker.open()
    proxy.delay(0.2)
    wire = broker._link.wire
    calls = [asyncio.create_task(broker.start("a", n, session=f"s{n}")) for n in range(40)]
    await await_until(lambda: wire._line is not None and bool(wire._line._waiting))
    await broker.aclose()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(one) for one in outcomes} == {Unavailable}
    assert all(one.unsure for one in outcomes if isinstance(one, Unavailable))
    assert broker._link._wire is None
    proxy.delay(0)
    assert (await broker.start("a", session="s")).ok  # it opens again
    await broker.aclose()
