"""P13: a worker works with a credential that cannot decide, and others do what it may not."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis

from broker import (
    Action,
    Approve,
    AsyncBroker,
    Interrupt,
    NotPermitted,
    OnExpiry,
    Principal,
    Reject,
    RunState,
    Settlement,
    Sweeper,
    Worker,
)
from broker.store.keys import Keyspace
from broker.store.roles import Role, acl_rules
from broker.testing import ServerProcess, await_until

from .fleet import QUICK, ended, run_when

Serve = Callable[..., Worker]
ME = Principal.local("me")


def approval(**more: Any) -> Interrupt:
    return Interrupt.approval(Action(tool="refund", arguments={}), "c", **more)


async def asks(run: Any) -> Any:
    if run.seq == 0:
        return await run.suspend(approval())
    return str(run.resolution("c").kind)


@pytest.fixture
def urls(start_server: Callable[..., ServerProcess], namespace: str) -> dict[Role, str]:
    """The URL of one server for each role."""
    server = start_server()
    found = {}
    for role in Role:
        server.call("ACL", "SETUSER", role, "on", f">{role}", *acl_rules(namespace, role))
        found[role] = f"unix://{role}:{role}@{server.socket}"
    server.call("ACL", "SETUSER", "default", "off")
    return found


@pytest.mark.every_server
async def test_each_role_does_its_part(urls: dict[Role, str], serve: Serve, namespace: str) -> None:
    async with (
        AsyncBroker(urls[Role.OPERATOR], namespace=namespace, settings=QUICK, by=ME) as operator,
        AsyncBroker(urls[Role.DECIDER], namespace=namespace, settings=QUICK, by=ME) as decider,
    ):
        serve(asks=asks, options={"url": urls[Role.WORKER]})
        started = await operator.start("asks", session="s")
        paused = await run_when(operator, started.run_id, RunState.WAITING)
        async for delivery in decider.inbox.follow("approvals"):
            assert delivery.record.id == paused.interrupt_ids[0]
            assert (await decider.inbox.answer(delivery.record.id, Reject(reason="no"))).ok
            break
        assert (await ended(operator, paused.id)).result == "reject"


@pytest.mark.every_server
async def test_a_worker_cannot_decide(urls: dict[Role, str], namespace: str) -> None:
    async with (
        AsyncBroker(urls[Role.WORKER], namespace=namespace, settings=QUICK, by=ME) as worker,
        AsyncBroker(urls[Role.OPERATOR], namespace=namespace, settings=QUICK, by=ME) as operator,
    ):
        started = await operator.start("asks", session="s")
        async with worker.take(started.run_id) as run:
            paused = await run.suspend(approval())
        one = paused.interrupt_ids[0]
        for attempt in (
            worker.inbox.answer(one, Approve()),
            worker.cancel(one),
            worker.inbox.answer_call("s", "c", Approve()),
            worker.inbox.answer_call("s", "never seen", Approve()),
        ):
            with pytest.raises(NotPermitted, match="answer"):
                await attempt
        verdict = Keyspace(namespace, 1).partition(0).key("verdict", one)
        with (
            redis.Redis.from_url(urls[Role.WORKER]) as client,
            pytest.raises(redis.exceptions.NoPermissionError),
        ):
            client.set(verdict, b"approve")
        assert (await operator.inbox.get(one)).state is Settlement.OPEN


@pytest.mark.every_server
async def test_others_sweep_what_a_worker_may_not(
    urls: dict[Role, str], serve: Serve, namespace: str
) -> None:
    soon = timedelta(milliseconds=20)
    async with AsyncBroker(urls[Role.OPERATOR], namespace=namespace, settings=QUICK, by=ME) as operator:
        waits = [
            (
                await operator.suspend(
                    "x", approval(expires_in=soon, on_expiry=OnExpiry.DEFAULT, default_answer=Reject(reason="late")),
                    session=f"d{n}",
                )
            ).interrupt_ids[0]
            for n in range(40)
        ]  # fmt: skip
        serve(asks=asks, options={"url": urls[Role.WORKER]})
        await await_until(lambda: sweeper_of(urls, namespace))
        # Forty that it may not end do not hold up what it may.
        plain = await operator.suspend("x", approval(expires_in=soon), session="p")
        await operator.wait(plain.interrupt_ids[0], 10)
        assert (await operator.inbox.get(waits[0])).state is Settlement.OPEN
        task = asyncio.create_task(Sweeper(operator, name="mine").run())
        for one in waits:
            found = await operator.wait(one, 20)
            assert found.state is Settlement.RESOLVED
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def sweeper_of(urls: dict[Role, str], namespace: str) -> bool:
    """Whether a worker's sweeper has the right."""
    with redis.Redis.from_url(urls[Role.OPERATOR]) as client:
        name = client.get(Keyspace(namespace, 1).partition(0).key("sweeper"))
    return name is not None and bytes(name).startswith(b"w ")
