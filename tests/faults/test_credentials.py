"""Credentials that stop being good while everybody is at work: fatal at once, and said; never tried for ever."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
import redis

from broker import AsyncBroker, Broker, NotPermitted, Sweeper, Worker
from broker.testing import ServerProcess, await_until

from .fleet import asks, both_readers
from .world import ADA, QUICK

RIGHTS = ("on", ">pw", "~*", "&*", "+@all")


def forget_user(server: ServerProcess) -> None:
    server.call("ACL", "DELUSER", "ann")


def change_password(server: ServerProcess) -> None:
    server.call("ACL", "SETUSER", "ann", "resetpass", ">other")
    server.call("CLIENT", "KILL", "USER", "ann")


def take_scripts_and_streams(server: ServerProcess) -> None:
    server.call("ACL", "SETUSER", "ann", "-@scripting", "-xreadgroup")


LOSSES: dict[str, Callable[[ServerProcess], None]] = {
    "WRONGPASS, the user is gone": forget_user,
    "WRONGPASS": change_password,
    "NOPERM": take_scripts_and_streams,
}


@pytest.mark.parametrize("how", LOSSES)
async def test_a_credential_that_is_good_no_more_ends_whoever_uses_it(
    own_server: ServerProcess, own_client: redis.Redis, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Off: `NotPermitted` is passed over by a reader, or `WRONGPASS` taken for a lost connection."""
    monkeypatch.setattr("broker.worker.bells.LOOK_SECONDS", 1.0)
    own_server.call("ACL", "SETUSER", "ann", *RIGHTS)
    url = f"unix://ann:pw@{own_server.socket}"
    worker = Worker(url, settings=QUICK)
    worker.add("asks", asks)
    serving = asyncio.create_task(worker.serve())
    async with AsyncBroker(url, settings=QUICK, by=ADA) as broker:
        following = asyncio.create_task(follow(broker))
        await await_until(lambda: both_readers(own_client))
        with Broker(url, settings=QUICK, by=ADA) as blocking:
            await asyncio.to_thread(blocking.fleet)
            LOSSES[how](own_server)
            with pytest.raises(NotPermitted):
                await broker.start("asks", 1, session="s")
            with pytest.raises(NotPermitted):
                await asyncio.to_thread(blocking.start, "asks", 1, session="s")
        for ends in (serving, following):
            with pytest.raises(NotPermitted) as fault:
                await asyncio.wait_for(ends, 20)
            assert "pw" not in str(fault.value)


async def follow(broker: AsyncBroker) -> None:
    async with aclosing(broker.inbox.follow("approvals")) as deliveries:
        async for _ in deliveries:
            pass


async def test_NOAUTH_is_fatal_at_once(own_server: ServerProcess) -> None:
    """A password is asked for from now on. Off: `NOAUTH` is taken for a lost connection."""
    async with AsyncBroker(own_server.url, settings=QUICK) as broker:
        sweeper: Any = Sweeper(broker)
        assert await sweeper.sweep(broker._link.space.partition(0))
        own_server.call("CONFIG", "SET", "requirepass", "new")
        own_server.config["requirepass"] = "new"
        own_server.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(NotPermitted):
            await broker.start("a", session="s")
        with pytest.raises(NotPermitted):
            await sweeper.sweep(broker._link.space.partition(0))
