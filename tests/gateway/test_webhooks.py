"""Webhooks out (F38): signed, at least once, from a followed cursor, to public addresses only."""

import asyncio
import ipaddress
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from broker import Approve, AsyncBroker, InvalidInput, Principal, UnknownId
from broker.core.events import EventType
from broker.gateway.webhooks import NotAllowed, WebhookSender, WebhookSettings
from broker.gateway.webhooks.target import PinnedTransport
from broker.testing import RunningServer, await_until

from .receiver import Receiver, receiving
from .test_events import ask

ADA = Principal(id="ada")
HERE = (ipaddress.ip_network("127.0.0.0/8"),)
SOON = timedelta(milliseconds=50)


def settings(**rest: Any) -> WebhookSettings:
    how: dict[str, Any] = {"allowed": HERE, "pauses": (SOON,) * 3, "lease": timedelta(seconds=1), **rest}
    return WebhookSettings(**how)


@asynccontextmanager
async def sending(broker: AsyncBroker, **rest: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(WebhookSender(broker, settings(**rest)).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def test_F38_what_happens_is_told_signed_and_without_arguments(
    broker: AsyncBroker, receiver: Receiver
) -> None:
    new = await broker.hooks.create(f"{receiver.url}/in")
    assert new.secret not in repr(new)
    assert new.secret not in str((await broker.hooks.list())[0].to_json())
    async with sending(broker):
        one = await ask(broker)
        await broker.inbox.answer(one, Approve(), by=ADA)
        await await_until(lambda: len(receiver.received) == 2)
    told = {each.json["type"]: each for each in receiver.received}
    assert set(told) == {"interrupt.opened", "interrupt.settled"}
    for each in receiver.received:
        assert each.is_signed_with(new.secret)
        assert each.json["data"]["interrupt_id"] == one
        assert b"4711" not in each.body
    assert told["interrupt.settled"].json["data"]["by"]["id"] == "ada"
    tampered = receiver.received[0]
    tampered.body = tampered.body.replace(b"interrupt", b"Interrupt")
    assert not tampered.is_signed_with(new.secret)


async def test_what_happened_while_no_sender_ran_is_told(broker: AsyncBroker, receiver: Receiver) -> None:
    await ask(broker, "before the hook")
    await broker.hooks.create(receiver.url, types=["interrupt.opened"])
    ids = [await ask(broker, f"s{n}") for n in range(3)]
    async with sending(broker):
        await await_until(lambda: len(receiver.received) == 3)
    assert sorted(one.json["data"]["interrupt_id"] for one in receiver.received) == sorted(ids)


async def test_F38_a_failed_post_comes_again_with_the_same_id(
    broker: AsyncBroker, receiver: Receiver
) -> None:
    await broker.hooks.create(receiver.url, types=["interrupt.opened"])
    receiver.answer = lambda _: 500 if len(receiver.received) < 3 else 204
    async with sending(broker):
        await ask(broker)
        await await_until(lambda: len(receiver.received) == 3)
        (hook,) = await broker.hooks.list()

        async def empty() -> bool:
            outbox = broker.hooks.outbox()
            return not await outbox.read(hook, receiver.ids()[:1])

        await await_until(empty)
    assert len(set(receiver.ids())) == 1


async def test_F38_after_too_many_failures_it_is_a_dead_letter_and_may_be_replayed(
    broker: AsyncBroker, receiver: Receiver
) -> None:
    new = await broker.hooks.create(receiver.url, types=["interrupt.opened"])
    receiver.answer = lambda _: 503
    async with sending(broker):
        await ask(broker)

        async def lost() -> bool:
            return bool(await broker.hooks.lost(new.hook.id))

        await await_until(lost)
        (post,) = await broker.hooks.lost(new.hook.id)
        assert (post.tries, post.error) == (4, "answered 503")
        assert len(receiver.received) == 4
        receiver.answer = lambda _: 200
        assert await broker.hooks.replay(new.hook.id) == 1
        await await_until(lambda: len(receiver.received) == 5)
        assert await broker.hooks.lost(new.hook.id) == ()
        assert await broker.hooks.replay(new.hook.id) == 0
    assert len(set(receiver.ids())) == 1


async def test_redirects_are_never_followed(broker: AsyncBroker, receiver: Receiver) -> None:
    await broker.hooks.create(f"{receiver.url}/in", types=["interrupt.opened"])
    receiver.answer = lambda _: (307, {"location": f"{receiver.url}/elsewhere"})
    async with sending(broker, pauses=()):
        await ask(broker)
        (hook,) = await broker.hooks.list()

        async def lost() -> bool:
            return bool(await broker.hooks.lost(hook.id))

        await await_until(lost)
    assert [one.path for one in receiver.received] == ["/in"]


async def test_an_address_that_is_gone_is_told_nothing_more(broker: AsyncBroker, receiver: Receiver) -> None:
    new = await broker.hooks.create(receiver.url, types=["interrupt.opened"])
    receiver.answer = lambda _: 410
    async with sending(broker):
        await ask(broker)

        async def disabled() -> bool:
            return (await broker.hooks.get(new.hook.id)).disabled_at is not None

        await await_until(disabled)
        await ask(broker, "later")
        receiver.answer = lambda _: 200
        await broker.hooks.enable(new.hook.id)
        last = await ask(broker, "last")
        await await_until(lambda: len(receiver.received) == 2)
    assert receiver.received[-1].json["data"]["interrupt_id"] == last


async def test_a_slow_address_holds_up_nobody(broker: AsyncBroker, receiver: Receiver) -> None:
    async with receiving() as slow:
        slow.held = asyncio.Event()
        await broker.hooks.create(slow.url, types=["interrupt.opened"])
        await broker.hooks.create(receiver.url, types=["interrupt.opened"])
        async with sending(broker):
            for n in range(30):
                await ask(broker, f"s{n}")
            await await_until(lambda: len(receiver.received) == 30)
            assert 0 < len(slow.received) <= WebhookSettings().at_once_each


async def test_a_secret_is_rotated_with_an_overlap(broker: AsyncBroker, receiver: Receiver) -> None:
    old = await broker.hooks.create(receiver.url, types=["interrupt.opened"])
    new = await broker.hooks.rotate(old.hook.id, overlap=timedelta(hours=1))
    async with sending(broker):
        await ask(broker, "both")
        await await_until(lambda: len(receiver.received) == 1)
        assert receiver.received[0].is_signed_with(old.secret)
        assert receiver.received[0].is_signed_with(new.secret)
        last = await broker.hooks.rotate(old.hook.id, overlap=timedelta())
        await ask(broker, "one")
        await await_until(lambda: len(receiver.received) == 2)
    assert [receiver.received[1].is_signed_with(one.secret) for one in (old, new, last)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.9", "169.254.169.254", "100.64.0.1", "0.0.0.1", "[::1]", "[fe80::1]",
     "[fd00::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "224.0.0.1", "localhost", "2130706433", "0x7f.1"],
)  # fmt: skip
async def test_nothing_is_sent_to_addresses_that_are_not_public(address: str) -> None:
    async with httpx.AsyncClient(transport=PinnedTransport()) as http:
        with pytest.raises(NotAllowed, match="is not a public address"):
            await http.post(f"http://{address}:9/", content=b"x")


async def test_a_private_address_is_refused_unless_allowed(broker: AsyncBroker, receiver: Receiver) -> None:
    new = await broker.hooks.create(receiver.url, types=["interrupt.opened"])
    async with sending(broker, allowed=(), pauses=()):
        await ask(broker)

        async def lost() -> bool:
            return bool(await broker.hooks.lost(new.hook.id))

        await await_until(lost)
    (post,) = await broker.hooks.lost(new.hook.id)
    assert post.error == "127.0.0.1 is not a public address"
    assert receiver.received == []


async def test_a_name_is_used_as_it_was_resolved(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means another address at its second look-up gains nothing: it is looked up once."""
    looked: list[str] = []
    port = int(receiver.url.rsplit(":", 1)[1])

    async def resolve(_: object, name: str, port: int, **__: object) -> list[tuple[Any, ...]]:
        looked.append(name)
        return [(2, 1, 6, "", ("127.0.0.1" if len(looked) == 1 else "10.0.0.1", port))]

    monkeypatch.setattr(type(asyncio.get_running_loop()), "getaddrinfo", resolve)
    async with httpx.AsyncClient(transport=PinnedTransport(HERE)) as http:
        assert (await http.post(f"http://hooks.example:{port}/", content=b"x")).status_code == 200
    assert receiver.received[0].headers["host"] == f"hooks.example:{port}"
    assert looked.count("hooks.example") == 1


@pytest.mark.parametrize(
    "url",
    ["", "ftp://a.example", "https://", "https://me:pw@a.example", "https://a.example/ x", "//a.example",
     "https://a.example:99999", "https://a.example/" + "x" * 3000],
)  # fmt: skip
async def test_P12_addresses_that_are_none(broker: AsyncBroker, url: str) -> None:
    with pytest.raises(InvalidInput, match="url"):
        await broker.hooks.create(url)
    assert await broker.hooks.list() == ()


async def test_P12_types_that_are_none(broker: AsyncBroker) -> None:
    for types in (["interrupt.sold"], []):
        with pytest.raises(InvalidInput, match="types"):
            await broker.hooks.create("https://a.example", types=types)
    with pytest.raises(UnknownId):
        await broker.hooks.rotate("hook_0")
    with pytest.raises(UnknownId):
        await broker.hooks.lost("hook_0")


async def test_a_deleted_hook_is_told_nothing(broker: AsyncBroker, receiver: Receiver) -> None:
    new = await broker.hooks.create(receiver.url, types=["interrupt.opened"])
    kept = await broker.hooks.create(f"{receiver.url}/kept", types=["interrupt.opened"])
    await broker.hooks.delete(new.hook.id)
    async with sending(broker):
        await ask(broker)
        await await_until(lambda: bool(receiver.received))
    assert [one.path for one in receiver.received] == ["/kept"]
    assert [one.id for one in await broker.hooks.list()] == [kept.hook.id]


async def test_one_sender_at_a_time_and_another_takes_over(broker: AsyncBroker, receiver: Receiver) -> None:
    await broker.hooks.create(receiver.url, types=["interrupt.opened"])
    hold = broker.events.hold
    assert await hold("webhooks", "one", timedelta(seconds=60))
    assert not await hold("webhooks", "two", timedelta(seconds=60))
    async with sending(broker):
        await ask(broker)
        assert await hold("webhooks", "one", timedelta(milliseconds=500))
        await await_until(lambda: bool(receiver.received))
        assert not await hold("webhooks", "one", timedelta(seconds=60))


SENDER = """
import asyncio, ipaddress, sys
from datetime import timedelta
from broker import AsyncBroker
from broker.gateway.webhooks import WebhookSender, WebhookSettings

async def main():
    async with AsyncBroker(sys.argv[1], namespace=sys.argv[2]) as broker:
        how = WebhookSettings(
            allowed=(ipaddress.ip_network("127.0.0.0/8"),), lease=timedelta(seconds=1),
            pauses=(timedelta(milliseconds=50),) * 20,
        )
        await WebhookSender(broker, how).run()

asyncio.run(main())
"""


async def test_F38_nothing_is_lost_when_senders_are_killed(
    server: RunningServer, namespace: str, broker: AsyncBroker, receiver: Receiver, tmp_path: Path
) -> None:
    """Killed with SIGKILL again and again, in the middle of its posts: everything arrives, with few repeats."""
    script = tmp_path / "sender.py"
    script.write_text(SENDER)
    await broker.hooks.create(receiver.url, types=[EventType.OPENED])

    async def start() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(sys.executable, str(script), server.url, namespace)

    asked: list[str] = []
    process = await start()
    try:
        for round_ in range(4):
            before = len(receiver.received)
            asked += [await ask(broker, f"s{round_}-{n}") for n in range(25)]
            await await_until(lambda before=before: len(receiver.received) > before + 3, timeout=30)  # type: ignore[misc]
            os.kill(process.pid, signal.SIGKILL)
            await process.wait()
            process = await start()
        await await_until(lambda: set(asked) <= told(receiver), timeout=30)
    finally:
        process.kill()
        await process.wait()
    assert told(receiver) == set(asked)
    ids = receiver.ids()
    assert len(set(ids)) == len(asked)
    assert len(ids) < len(asked) * 2


def told(receiver: Receiver) -> set[str]:
    return {one.json["data"]["interrupt_id"] for one in receiver.received}
