"""Threads in a fleet: durable before announced, listed by a fresh process, claimed by one, tenants apart, on record."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import redis

from broker import (
    AlreadyLeased,
    Approve,
    AsyncBroker,
    Corrupt,
    Custom,
    Interrupt,
    InvalidInput,
    OutOfMemory,
    Phase,
    Principal,
    Reject,
    ScheduledPause,
    Settlement,
    Unavailable,
)
from broker.core.kinds import ApprovalPending
from broker.core.wire import decode
from broker.interop import entelix
from broker.interop.entelix import ApproveTool, send
from broker.store.keys import Keyspace
from broker.testing import FaultProxy, RunningServer, ServerProcess
from tests.clients.asking import ADA, refund

Connect = Callable[..., Any]
THREAD = "th_2"
APPROVAL = entelix.Interrupted(
    ApprovalPending(tool_use_id="tu_81"),
    entelix.approval_payload("run_5", "tu_81", "wire_transfer", {"amount": 40}),
)


def bells(url: str, namespace: str) -> int:
    """How many entries the stream of interrupts has."""
    with redis.Redis.from_url(url) as client:
        length: int = client.xlen(Keyspace(namespace, 1).partition(0).key("interrupts"))
    return length


def cli(url: str, namespace: str, *words: str) -> str:
    """What a fresh process prints."""
    command = [sys.executable, "-m", "broker", *words, "--url", url, "--namespace", namespace]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.report("RB10")
@pytest.mark.row("E2", "E16")
async def test_E16_a_fresh_process_lists_what_waits_with_kind_and_payload(
    broker: AsyncBroker, server: RunningServer, namespace: str
) -> None:
    """E2 too: kind and payload lie together. A process that knows nothing but server and namespace reads them."""
    before = ScheduledPause(phase=Phase.BEFORE, node="quote")
    custom = [entelix.Interrupted(Custom(), payload) for payload in (False, {"a": [None, 0, ""]})]
    raised = [APPROVAL, *custom, entelix.Interrupted(before)]
    for n, one in enumerate(raised):
        await broker.suspend("support", one.question(), session=f"th_{n}")
    items = json.loads(cli(server.url, namespace, "ls", "--json"))["items"]
    listed = {
        item["session_id"]: {name: item["interrupt"][name] for name in ("kind", "payload")} for item in items
    }
    assert listed == {f"th_{n}": one.to_json() for n, one in enumerate(raised)}
    found = [await entelix.open_interrupts(broker, f"th_{n}") for n in range(len(raised))]
    assert [entelix.Interrupted.of(record) for (record,) in found] == raised


async def test_paused_before_a_node_is_shown_without_the_payload(
    broker: AsyncBroker, server: RunningServer, namespace: str
) -> None:
    """By the list, the record and the history."""
    for phase in Phase:
        pause = entelix.Interrupted(ScheduledPause(phase=phase, node="quote"), {"secret": "x"})
        paused = await broker.suspend("support", pause.question(), session=f"th_{phase}")
        label = f"paused {phase} quote"
        assert label in cli(server.url, namespace, "ls")
        assert label in cli(server.url, namespace, "show", paused.interrupt_ids[0])
        history = cli(server.url, namespace, "history", f"th_{phase}")
        assert label in history
        assert "secret" not in history


@pytest.mark.row("E15")
async def test_E15_where_the_write_fails_nothing_is_announced(
    server: RunningServer, namespace: str, proxy: FaultProxy, broker: AsyncBroker
) -> None:
    """The store cannot be reached: an error with a code, and no bell."""
    await broker.suspend("support", refund(), session="other")
    before = bells(server.url, namespace)
    async with AsyncBroker(proxy.url, namespace=namespace, by=ADA, patience=0.2) as cut:
        proxy.refuse()
        proxy.cut()
        with pytest.raises(Unavailable) as told:
            await cut.suspend("support", APPROVAL.question(), session=THREAD)
        assert told.value.code == "unavailable"
    assert bells(server.url, namespace) == before
    assert await entelix.open_interrupts(broker, THREAD) == ()
    assert await broker.active(THREAD) == {}


@pytest.mark.row("E15")
async def test_E15_where_there_is_no_room_nothing_is_announced(own_server: ServerProcess) -> None:
    async with AsyncBroker(own_server.url, namespace="full", by=ADA) as broker:
        await broker.suspend("support", refund(), session="other")
        before = bells(own_server.url, "full")
        with redis.Redis.from_url(own_server.url) as client:
            client.config_set("maxmemory", 1)
        with pytest.raises(OutOfMemory):
            await broker.suspend("support", APPROVAL.question(), session=THREAD)
        assert bells(own_server.url, "full") == before
        assert await broker.active(THREAD) == {}


@pytest.mark.row("E15")
async def test_E15_what_is_announced_is_there(broker: AsyncBroker, connect: Connect) -> None:
    """Whoever hears the bell finds the whole of it, in another process."""
    other = await connect()
    await broker.suspend("support", APPROVAL.question(), session=THREAD)
    async for delivery in other.inbox.follow("approvals"):
        assert entelix.Interrupted.of(delivery.record) == APPROVAL
        break


@pytest.mark.row("E17")
async def test_E17_one_thread_under_two_tenants_never_meets(
    server: RunningServer, new_namespace: Callable[[], str]
) -> None:
    async with (
        AsyncBroker(server.url, namespace=new_namespace(), by=ADA) as acme,
        AsyncBroker(server.url, namespace=new_namespace(), by=ADA) as beta,
    ):
        ids = [
            (await one.suspend("support", APPROVAL.question(), session=THREAD, key="k")).interrupt_ids[0]
            for one in (acme, beta)
        ]
        assert ids[0] != ids[1]
        sent = await send(acme, THREAD, ApproveTool(tool_use_id="tu_81", decision=Approve()))
        assert sent.ok
        assert (await acme.inbox.get(ids[0])).state is Settlement.RESOLVED
        assert (await beta.inbox.get(ids[1])).state is Settlement.OPEN
        assert {one.tenant for one in await entelix.audit(beta, THREAD)} == {beta.namespace}
        assert [one.event for one in await entelix.audit(beta, THREAD)] == ["paused"]
        assert (await beta.inbox.answer(ids[0], Approve())).code == "unknown"


@pytest.mark.row("E17")
@pytest.mark.parametrize("tenant", ["", " ", "acme:beta", "{acme}"])
async def test_E17_an_empty_or_ambiguous_tenant_is_refused(server: RunningServer, tenant: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        AsyncBroker(server.url, namespace=tenant)
    assert refused.value.field == "namespace"


RACER = """
import asyncio, sys
from broker import AlreadyLeased, AsyncBroker

async def main(url, namespace, run_id, name):
    async with AsyncBroker(url, namespace=namespace) as broker:
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            async with broker.take(run_id, holder=name) as run:
                print("claimed by", name, flush=True)
                sys.stdin.readline()
                await run.finish(name)
        except AlreadyLeased as told:
            print(told.code, "by", told.holder, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def racer(*arguments: str) -> subprocess.Popen[str]:
    """A process that waits for a line and then takes the run."""
    command = [sys.executable, "-c", RACER, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.row("E18")
async def test_E18_two_processes_resume_and_one_gets_the_claim(
    broker: AsyncBroker, server: RunningServer, namespace: str
) -> None:
    """The other is told who has it."""
    paused = await broker.suspend("support", APPROVAL.question(), session=THREAD)
    await send(broker, THREAD, ApproveTool(tool_use_id="tu_81", decision=Approve()))
    names = ("worker-1", "worker-2")
    racers = [racer(server.url, namespace, paused.run_id, name) for name in names]
    told = []
    try:
        for one in racers:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in racers:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        told = [one.stdout.readline().strip() for one in racers if one.stdout]
        for one in racers:
            one.communicate("\n", timeout=20)
    finally:
        for one in racers:
            one.kill()
            one.wait()
    winner = next(name for name, line in zip(names, told, strict=True) if line == f"claimed by {name}")
    assert sorted(told) == sorted([f"claimed by {winner}", f"already_leased by {winner}"])
    assert (await broker.runs.get(paused.run_id)).result == winner


async def test_a_claim_names_its_owner_and_what_is_not_ready_has_none(broker: AsyncBroker) -> None:
    started = await broker.start("support", session=THREAD)
    async with broker.take(started.run_id, holder="worker-1"):
        with pytest.raises(AlreadyLeased) as told:
            async with broker.take(started.run_id, holder="worker-2"):
                pass
        assert told.value.holder == "worker-1"


@pytest.mark.row("E19")
@pytest.mark.parametrize("version", [0, 2, 99])
async def test_E19_a_record_of_another_version_is_told_and_counts_as_active(
    broker: AsyncBroker, server: RunningServer, namespace: str, version: int
) -> None:
    """Too old and too new: never read as something else."""
    paused = await broker.suspend("support", APPROVAL.question(), session=THREAD)
    (found,) = paused.interrupt_ids
    key = Keyspace(namespace, 1).partition(0).key("question", found)
    with redis.Redis.from_url(server.url) as client:
        stored: Any = client.get(key)
        assert stored[0] == 1
        client.set(key, bytes((version,)) + stored[1:])
        with pytest.raises(Corrupt):
            decode(client.get(key), key=key)
    (listed,) = (await broker.inbox.list()).items
    assert listed.problem is not None
    assert f"version {version}" in listed.problem
    assert list(await broker.active(THREAD)) == [paused.run_id]


@pytest.mark.row("E20")
async def test_E20_the_audit_has_pause_decision_and_resume(broker: AsyncBroker, namespace: str) -> None:
    """Off: what was said not in the history, or the call not in what was asked."""
    paused = await broker.suspend("support", APPROVAL.question(), Interrupt(), session=THREAD)
    kim = Principal(id="kim")
    wire = {"decisions": {"tu_81": {"reject": {"reason": "over budget: twice, this week"}}}}
    assert (await send(broker, THREAD, entelix.parse_command(wire), by=kim)).ok
    async with broker.take(paused.run_id) as run:
        assert run.resolution("tu_81").answer == Reject(reason="over budget: twice, this week")
        await run.finish()
    told = [
        (one.event, one.about, one.tool_use_id, one.reason, one.by)
        for one in await entelix.audit(broker, THREAD)
    ]
    assert told == [
        ("paused", "approval_pending", "tu_81", None, None),
        ("paused", "custom", None, None, None),
        ("denied", "approval_pending", "tu_81", "over budget: twice, this week", kim),
        ("approved", "custom", None, None, kim),
        ("resumed", None, None, None, None),
        ("finished", None, None, None, ADA),
    ]
    events = await entelix.audit(broker, THREAD)
    assert {(one.tenant, one.thread, one.run_id) for one in events} == {(namespace, THREAD, paused.run_id)}
    denied = events[2].to_json()
    assert denied.items() >= {
        "event": "denied", "tenant": namespace, "run_id": paused.run_id, "tool_use_id": "tu_81",
        "reason": "over budget: twice, this week",
    }.items()  # fmt: skip


@pytest.mark.row("E20")
async def test_E20_a_decision_that_came_early_has_its_reason(broker: AsyncBroker) -> None:
    command = ApproveTool(tool_use_id="tu_81", decision=Reject(reason="never"))
    await send(broker, THREAD, command)
    await broker.suspend("support", APPROVAL.question(), session=THREAD)
    told = [(one.event, one.tool_use_id, one.reason) for one in await entelix.audit(broker, THREAD)]
    assert told == [("parked", "tu_81", None), ("paused", "tu_81", None), ("denied", "tu_81", "never")]


async def test_an_audit_of_many_pages_is_whole(broker: AsyncBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entelix.auditing, "PAGE", 2)
    for n in range(5):
        await broker.suspend("support", Interrupt(payload=n), session=THREAD)
    assert [one.event for one in await entelix.audit(broker, THREAD)] == ["paused"] * 5
    assert await entelix.audit(broker, "nobody") == ()
