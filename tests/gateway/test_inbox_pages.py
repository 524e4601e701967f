"""The other pages: history, dead letters, the fleet; and the streams that make pages live."""

import asyncio
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from broker import Approve, AsyncBroker, InterruptState, Principal
from broker.core.access import ApiRole
from broker.testing import RunningServer, await_until
from tests.browser.scenes import ask, refund

from .person import Person, person, told
from .site import Site


async def dead_run(broker: AsyncBroker, why: str = "no such booking") -> str:
    """A run that failed for good."""
    run_id = (await broker.start("shop", {"n": 1}, session="s_dead")).run_id
    async with broker.runs.take(run_id) as run:
        await run.fail("KeyError", why, final=True)
    return run_id


async def test_the_history_of_a_session_tells_who_did_what(site: Site) -> None:
    """P14: also of a session whose id has a slash in it."""
    interrupt_id = await ask(site.broker, refund(), "team/42")
    await site.broker.inbox.answer(interrupt_id, Approve(), by=Principal(id="carol"))
    async with person(site) as ada:
        words = told(await ada.see("/inbox/sessions/team%2F42"))
        for text in ("team/42", "carol", interrupt_id, "suspended"):
            assert text in words
        assert "Nothing is recorded" in await ada.see("/inbox/sessions/none")


async def test_F54_an_operator_sends_a_dead_run_back(site: Site) -> None:
    run_id = await dead_run(site.broker)
    async with person(site, "olga", ApiRole.OPERATOR) as olga, person(site) as ada:
        page = await ada.see("/inbox/dead")
        assert "no such booking" in page
        assert "An operator" in page
        assert "requeue" not in page
        fence = str((await site.broker.runs.get(run_id)).fence)
        path = f"/inbox/dead/{run_id}/requeue"
        stale = await olga.send(path, page="/inbox/dead", fence=str(int(fence) + 1))
        assert "was not sent back" in told(stale)
        assert "was sent back" in told(await olga.send(path, page="/inbox/dead", fence=fence))
        assert (await site.broker.runs.get(run_id)).state == "ready"


async def test_F50_the_fleet_shows_backlog_and_its_age(site: Site) -> None:
    await ask(site.broker, refund(), "s_1")
    await site.broker.start("shop", {}, session="s_2", queue="night")
    async with person(site) as ada:
        words = told(await ada.see("/inbox/fleet"))
        assert "Open questions 1" in words
        assert "Ready runs 1" in words
        assert "night shop any 1" in words


async def test_odd_conversations_are_shown_as_they_are(site: Site) -> None:
    """P10: entries that no framework of ours writes are shown, and long ones are cut from the front."""
    odd: list[Any] = [
        {"role": 7, "content": {"a": 1}},
        {"role": "user"},
        {"role": "user", "content": None},
        3,
        None,
        [],
        "x",
    ]
    state = InterruptState(
        context_snapshot=[{"role": "user", "content": f"turn {n}."} for n in range(100)] + odd
    )
    paused = await site.broker.suspend("shop", refund(), session="s_1", state=state)
    async with person(site) as ada:
        words = told(await ada.see(f"/inbox/i/{paused.interrupt_ids[0]}?conversation=1"))
        assert "The last 100 of 107 entries" in words
        assert "turn 6." not in words
        assert "turn 7." in words
        assert '"a": 1' in words


async def test_serve_says_where_the_inbox_is(server: RunningServer, namespace: str) -> None:
    """And how to get in, where nobody has a key yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    options = ["--url", server.url, "--namespace", namespace, "serve", "--port", port]
    serving = await asyncio.create_subprocess_exec(sys.executable, "-m", "broker", *options, stdout=PIPE)
    try:
        assert serving.stdout is not None
        said = [(await serving.stdout.readline()).decode().strip() for _ in range(3)]
    finally:
        serving.terminate()
        await serving.wait()
    assert said[1] == f"The inbox is on http://localhost:{port}/inbox"
    assert "broker keys create YOU" in said[2]


class Stream:
    """What a live page hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.is_over = False


@asynccontextmanager
async def listening(somebody: Person, path: str) -> AsyncGenerator[Stream]:
    """A stream that is read for the length of the block."""
    stream = Stream()

    async def read() -> None:
        async with somebody.client.stream("GET", path, timeout=httpx.Timeout(20, read=60)) as reply:
            assert reply.status_code == 200
            async for line in reply.aiter_lines():
                if line.startswith("event: "):
                    stream.heard.append(line.removeprefix("event: "))
        stream.is_over = True

    task = asyncio.create_task(read())
    try:
        await await_until(lambda: "hello" in stream.heard or task.done())
        yield stream
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_open_card_hears_of_its_end(site: Site) -> None:
    interrupt_id = await ask(site.broker, refund())
    async with person(site) as ada, listening(ada, f"/inbox/live?i={interrupt_id}") as stream:
        assert stream.heard == ["hello"]
        await site.broker.inbox.answer(interrupt_id, Approve(), by=Principal(id="bob"))
        await await_until(lambda: stream.heard == ["hello", "changed"], timeout=1)


async def test_an_open_list_hears_of_what_comes_and_goes(site: Site) -> None:
    async with person(site) as ada, listening(ada, "/inbox/live") as stream:
        await await_until(lambda: "changed" in stream.heard)
        for n in range(2):
            before = len(stream.heard)
            interrupt_id = await ask(site.broker, refund(), f"s_{n}")
            await await_until(lambda before=before: len(stream.heard) > before)  # type: ignore[misc]
            before = len(stream.heard)
            await site.broker.inbox.answer(interrupt_id, Approve(), by=Principal(id="bob"))
            await await_until(lambda before=before: len(stream.heard) > before)  # type: ignore[misc]


async def test_one_that_comes_while_another_goes_is_heard_of(site: Site) -> None:
    """How many are open is the same before and after."""
    ids = [await ask(site.broker, refund(), f"s_{n}") for n in range(3)]
    async with person(site) as ada, listening(ada, "/inbox/live") as stream:
        await await_until(lambda: "changed" in stream.heard)
        for n, one in enumerate(ids):
            before = len(stream.heard)
            await asyncio.gather(
                site.broker.inbox.answer(one, Approve(), by=Principal(id="bob")),
                ask(site.broker, refund(), f"t_{n}"),
            )
            await await_until(lambda before=before: len(stream.heard) > before, timeout=3)  # type: ignore[misc]


async def test_a_stream_ends_with_its_session(site: Site) -> None:
    """A revoked key hears nothing more."""
    async with person(site) as ada, listening(ada, "/inbox/live") as stream:
        (key,) = await site.broker.keys.list()
        await site.broker.keys.revoke(key.id)
        await ask(site.broker, refund())
        await await_until(lambda: stream.heard[-1:] == ["over"] and stream.is_over)
        assert (await ada.client.get("/inbox/live")).status_code == 303
