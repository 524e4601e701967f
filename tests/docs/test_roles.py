"""The access rules on the page about workers: enough to work with, and not to decide with."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
import redis

from broker import (
    Action,
    Approve,
    AsyncBroker,
    Interrupt,
    NotPermitted,
    Principal,
    Run,
    RunRecord,
    RunState,
    Sweeper,
    Worker,
)
from broker.core.access import ApiRole
from broker.store.keys import SEGMENTS
from broker.testing import ServerProcess
from tests.docs.pages import text_of

PAGE = text_of("docs/howto/run-workers.md")
USERS = re.findall(r"^user (.+)$", PAGE, re.MULTILINE)
ALICE = Principal.local("alice")

Roles = Callable[[str], str]


@pytest.fixture
def roles(start_server: Callable[..., ServerProcess]) -> Roles:
    """The URL of the server for each role, set up as the page says."""
    server = start_server({"user": USERS}, port=0)
    place = server.tcp_url.partition("//")[2]
    return lambda role: f"redis://airline-{role}:{role}-password@{place}"


def test_the_page_names_the_users() -> None:
    assert [line.split()[0] for line in USERS] == [
        "airline-worker",
        "airline-decider",
        "airline-gateway",
        "default",
    ]


def test_the_pattern_leaves_out_verdicts_and_what_credentials_rest_on() -> None:
    left_out = {name for name, segment in SEGMENTS.items() if segment.startswith(":v")}
    assert left_out == {
        "verdict", "credentials", "signing", "revoked", "rates", "hooks", "posts", "due", "lost", "intakes", "seen",
    }  # fmt: skip


@pytest.mark.every_server
async def test_only_a_gateway_reads_and_makes_credentials(roles: Roles) -> None:
    """P13: whoever reads a signing key can sign, and whoever writes an API key may do anything."""
    ada = Principal(id="ada")
    async with AsyncBroker(roles("gateway"), namespace="airline") as gateway:
        await gateway.keys.create(ada, ApiRole.REVIEWER)
        await gateway.signing.rotate()
        asked = await gateway.suspend(
            "x", Interrupt.approval(Action(tool="pay", arguments={}), "c"), session="s"
        )
        token = await gateway.tokens.create(asked.interrupt_ids[0], "decide")
        await gateway.tokens.revoke(token.token.id)
    for role in ("worker", "decider"):
        async with AsyncBroker(roles(role), namespace="airline") as other:
            for attempt in (
                other.keys.list(),
                other.keys.create(ada, ApiRole.OPERATOR),
                other.signing.keys(),
                other.signing.rotate(),
                other.tokens.verify(token.text),
                other.tokens.revoke("x"),
            ):
                with pytest.raises(NotPermitted):
                    await attempt


FOREIGN = """
KEYS *|SCAN 0|RANDOMKEY|FLUSHALL|CONFIG GET *|PUBSUB CHANNELS|SCRIPT FLUSH|MONITOR|ACL LIST|CLIENT LIST|FUNCTION LIST
SHUTDOWN|GET {studio:0.0}:input:x|SUBSCRIBE {studio:0.0}:settled:x
"""


@pytest.mark.every_server
def test_neither_sees_others_or_changes_the_server(roles: Roles) -> None:
    for role in ("worker", "decider", "gateway"):
        with redis.Redis.from_url(roles(role)) as client:
            for command in FOREIGN.strip().replace("\n", "|").split("|"):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    client.execute_command(*command.split())


@asynccontextmanager
async def serving(worker: Worker) -> AsyncGenerator[None]:
    task = asyncio.create_task(worker.serve())
    try:
        yield
    finally:
        worker.stop()
        await task


@pytest.mark.every_server
async def test_a_worker_works_and_only_a_decider_decides(roles: Roles) -> None:
    worker = Worker(roles("worker"), namespace="airline")

    @worker.agent("airline")
    async def airline(run: Run[None]) -> str | None:
        if run.seq == 0:
            await run.suspend(Interrupt.approval(Action(tool="pay", arguments={}), "call_1"))
            return None
        return f"{run.resolution('call_1').kind}"

    async with AsyncBroker(roles("decider"), namespace="airline", by=ALICE) as decider, serving(worker):
        started = await decider.start("airline", session="s_1")
        async for delivery in decider.inbox.follow():
            with pytest.raises(NotPermitted):
                await worker.broker.inbox.answer(delivery.record.id, Approve(), by=ALICE)
            assert (await decider.inbox.answer(delivery.record.id, Approve())).ok
            break
        ended = await decider.wait(started.run_id or "", 10)
        assert isinstance(ended, RunRecord)
        assert (ended.state, ended.result) == (RunState.FINISHED, "approve")
        assert (await decider.fleet()).workers


@pytest.mark.every_server
async def test_neither_reaches_another_namespace(roles: Roles) -> None:
    for role in ("worker", "decider", "gateway"):
        other = AsyncBroker(roles(role), namespace="studio")
        with pytest.raises(NotPermitted):
            await other.open()
        await other.aclose()


@pytest.mark.every_server
async def test_a_sweeper_with_the_deciders_credential_sweeps(roles: Roles) -> None:
    async with AsyncBroker(roles("decider"), namespace="airline") as broker:
        await broker.start("airline", session="s_1")
        sweeper = Sweeper(broker)
        assert [await sweeper.sweep(partition) for partition in broker._link.space.all()] == [True]
