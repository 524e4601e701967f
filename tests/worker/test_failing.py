"""P11: an attempt that fails comes back later; after a few it is dead with its reasons, and the others go on."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import redis

from broker import Action, Approve, AsyncBroker, Interrupt, Run, RunState, Worker
from broker.store.keys import Keyspace
from broker.testing import RunningServer, await_until
from tests.records import poke

from .fleet import QUICK, ended, run_when

Serve = Callable[..., Worker]


async def fine(run: Run[Any]) -> str:
    return f"fine after {run.attempt}"


async def test_a_run_that_fails_comes_back(broker: AsyncBroker, serve: Serve) -> None:
    async def support(run: Run[Any]) -> str:
        if run.attempt < 3:
            raise OSError(f"attempt {run.attempt}")
        return await fine(run)

    serve(support=support)
    started = await broker.start("support", session="s")
    run = await ended(broker, started.run_id)
    assert (run.state, run.result) == (RunState.FINISHED, "fine after 3")
    assert ["OSError: attempt 1" in run.errors[0], "OSError: attempt 2" in run.errors[1]] == [True, True]
    entries = [entry for entry in await broker.history("s") if entry.event in ("failed", "leased")]
    assert [entry.event for entry in entries] == ["leased", "failed", "leased", "failed", "leased"]
    waits = [(entries[n + 1].at - entries[n].at) for n in (1, 3)]
    assert waits[0] >= QUICK.backoff_first / 2
    assert waits[1] >= QUICK.backoff_first  # doubled, and half of it is jitter


class Odd(BaseException):
    """What is no Exception, as some libraries have it."""


def cancelled() -> None:
    raise asyncio.CancelledError


def exits() -> None:
    raise SystemExit(3)


def odd() -> None:
    raise Odd("odd")


def answers_nonsense() -> object:
    return object()


@pytest.mark.parametrize("poison", [cancelled, exits, odd, answers_nonsense])
async def test_poison_is_dead_in_the_end_and_the_others_go_on(
    broker: AsyncBroker, serve: Serve, poison: Callable[[], Any]
) -> None:
    async def support(run: Run[Any]) -> Any:
        return poison() if run.input == "poison" else await fine(run)

    serve(support=support, plain=lambda run: poison() if run.input == "poison" else "fine")
    bad = [(await broker.start(name, "poison", session="s")).run_id for name in ("support", "plain")]
    good = [
        (await broker.start(name, n, session=f"s{n}")).run_id
        for n in range(5)
        for name in ("support", "plain")
    ]
    for one in good:
        assert (await ended(broker, one)).state is RunState.FINISHED
    for one in bad:
        run = await ended(broker, one)
        assert (run.state, run.tries, len(run.errors)) == (RunState.DEAD, QUICK.tries, QUICK.tries)
    assert {run.id for run in await broker.dead.list()} == set(bad)


async def test_a_dead_run_is_sent_back_and_finishes(broker: AsyncBroker, serve: Serve) -> None:
    repaired = False

    async def support(run: Run[Any]) -> Any:
        if not repaired:
            raise ValueError("not yet")
        return run.fence

    serve(support=support)
    started = await broker.start("support", session="s")
    dead = await ended(broker, started.run_id)
    assert dead.state is RunState.DEAD
    assert all("ValueError: not yet" in error for error in dead.errors)
    repaired = True
    assert (await broker.dead.requeue(dead.id, fence=dead.fence)).ok
    run = await run_when(broker, dead.id, RunState.FINISHED)
    assert run.result == dead.fence + 1  # the fence only grows
    assert len(run.errors) == QUICK.tries  # its reasons stay


async def test_a_dead_run_keeps_its_mark_and_takes_answers(broker: AsyncBroker, serve: Serve) -> None:
    async def support(run: Run[Any]) -> Any:
        if run.seq == 0:
            await run.suspend(Interrupt.approval(Action(tool="t", arguments={}), "c"))
        elif run.attempt <= QUICK.tries and len((await broker.runs.get(run.id)).errors) < QUICK.tries:
            raise ValueError("not yet")
        return run.resolution("c").kind if run.seq else None

    serve(support=support)
    started = await broker.start("support", session="s")
    paused = await run_when(broker, started.run_id, RunState.WAITING)
    await broker.inbox.answer(paused.interrupt_ids[0], Approve())
    dead = await ended(broker, paused.id)
    assert dead.state is RunState.DEAD
    assert await broker.active("s") == {dead.id: 1}
    await broker.dead.requeue(dead.id)
    assert (await run_when(broker, dead.id, RunState.FINISHED)).result == "approve"
    assert await broker.active("s") == {}


@pytest.mark.parametrize("kind", ["state", "input", "question", "verdict"])
async def test_bytes_that_cannot_be_read_fail_their_run_only(
    broker: AsyncBroker, serve: Serve, server: RunningServer, namespace: str, kind: str
) -> None:
    async def support(run: Run[Any]) -> Any:
        if run.seq == 0:
            await run.suspend(Interrupt(payload=run.input))
        return run.resolutions[0].kind if run.seq else None

    ids = [(await broker.start("support", n, session=f"s{n}")).run_id for n in range(3)]
    first = serve(support=support)
    paused = [await run_when(broker, one, RunState.WAITING) for one in ids]
    first.stop()
    for run in paused:
        await broker.inbox.answer(run.interrupt_ids[0], Approve())
    broken = paused[1].id if kind in ("state", "input") else paused[1].interrupt_ids[0]
    with redis.Redis.from_url(server.url) as client:
        client.set(Keyspace(namespace, 1).partition(0).key(kind, broken), b"\x01\x00\xc1")
    serve(support=support)
    for n in (0, 2):
        assert (await ended(broker, ids[n])).result == "approve"
    await run_when_dead(broker, ids[1])
    (dead,) = await broker.dead.list()
    assert dead.id == ids[1]
    assert all("corrupt" in error and f":{kind}:" in error for error in dead.errors[-QUICK.tries :])
    assert await broker.active("s1") == {ids[1]: 1}  # what cannot be read counts as active


async def run_when_dead(broker: AsyncBroker, run_id: str) -> None:
    async def dead() -> bool:
        return [run.id for run in await broker.dead.list()] == [run_id]

    await await_until(dead, 20)


async def test_a_run_that_cannot_be_read_at_all_holds_up_nobody(
    broker: AsyncBroker, serve: Serve, server: RunningServer, namespace: str
) -> None:
    ids = [(await broker.start("support", n, session=f"s{n}")).run_id for n in range(6)]
    p = Keyspace(namespace, 1).partition(0)
    with redis.Redis.from_url(server.url) as client:
        client.delete(p.key("run", ids[0]))
        client.delete(p.key("run", ids[1]))
        client.set(p.key("run", ids[1]), "foreign")
        poke(client, p.key("run", ids[2]), state="of another version")
    serve(support=fine, options={"concurrency": 1})
    for one in ids[3:]:
        assert (await ended(broker, one)).state is RunState.FINISHED


async def test_an_error_whose_text_cannot_be_written_fails_its_run_only(
    broker: AsyncBroker, serve: Serve
) -> None:
    """A file name that is no text, in the words of an exception."""

    async def breaks(_: Any) -> None:
        raise ValueError("cannot open 'caf\udce9.txt'")

    bad = (await broker.start("breaks", session="bad")).run_id
    good = [(await broker.start("support", n, session=f"s{n}")).run_id for n in range(5)]
    serve(breaks=breaks, support=fine)
    for one in good:
        assert (await ended(broker, one)).state is RunState.FINISHED
    run = await ended(broker, bad)
    assert run.state is RunState.DEAD
    assert "caf\\udce9" in run.errors[0]
