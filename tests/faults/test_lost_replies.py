"""R05: the server does it and the reply is lost. The call is repeated by itself, and nothing happens twice."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from broker import Approve, AsyncBroker, Broker, Settings, StaleLease
from broker.store.scripts import Rendering
from broker.testing import FaultProxy, RunningServer

from .calls import ADA, CALLS, SESSION, Call, World, approval, told

SCRIPTS = Rendering()
NEW_EACH_TIME = {"start", "suspend", "adopt", "take", "lease"}
"""Calls that, made again as a whole, are another one: without a key, or about what is there only once."""
FIELDS = ("state", "seq", "fence", "tries", "queue", "result")


@pytest.fixture
async def world(loaded: RunningServer, proxy: FaultProxy, namespace: str) -> AsyncGenerator[World]:
    async with (
        AsyncBroker(proxy.url, namespace=namespace, settings=Settings()) as faulty,
        AsyncBroker(loaded.url, namespace=namespace) as sound,
    ):
        yield World(faulty, sound)


async def traces(w: World) -> list[Any]:
    """What is to be seen afterwards, without times and names."""
    events = [(one.event, one.seq, one.state) for one in await w.sound.history(SESSION)]
    open_ones = [(one.seq, one.queue, one.interrupt.call_id) for one in (await w.sound.inbox.list()).items]
    runs = {one.run_id for one in await w.sound.history(SESSION) if one.run_id}
    records = [[getattr(await w.sound.runs.get(run), name) for name in FIELDS] for run in sorted(runs)]
    ready = [len(await w.sound.runs.ready(queue)) for queue in ("agents", "slow")]
    return [events, open_ones, records, ready, list((await w.sound.active(SESSION)).values())]


async def undisturbed(call: Call, server: RunningServer, namespace: str) -> tuple[str, list[Any]]:
    """What the call comes to, and what is to be seen, when nothing goes wrong."""
    async with AsyncBroker(server.url, namespace=namespace) as sound:
        w = World(sound, sound)
        await call.prepare(w)
        return told(await call.act(w)), await traces(w)


def drop(proxy: FaultProxy, call: Call) -> None:
    """Loses the reply to the call's next sending, whichever way it is sent."""
    for oom in (False, True):
        proxy.drop_next_reply(SCRIPTS.script(call.script, oom=oom).sha.encode())


@pytest.mark.parametrize("name", CALLS)
async def test_R05_a_lost_reply_is_asked_for_again(
    world: World, proxy: FaultProxy, loaded: RunningServer, new_namespace: Any, name: str
) -> None:
    """Each fails without the field of its record that remembers the operation (`start_op`, `suspend_op`, `op`, ...)."""
    call = CALLS[name]
    usual, expected = await undisturbed(call, loaded, new_namespace())
    assert usual == call.answers[0]
    await call.prepare(world)
    drop(proxy, call)
    assert told(await call.act(world)) in call.answers
    assert proxy.dropped == 1
    assert await traces(world) == expected


@pytest.mark.parametrize("name", CALLS)
async def test_R05_a_call_on_a_connection_that_is_gone_is_sent_again(
    world: World, proxy: FaultProxy, loaded: RunningServer, new_namespace: Any, name: str
) -> None:
    call = CALLS[name]
    usual, expected = await undisturbed(call, loaded, new_namespace())
    await call.prepare(world)
    proxy.cut()
    assert told(await call.act(world)) == usual
    assert await traces(world) == expected


@pytest.mark.parametrize("name", sorted(CALLS.keys() - NEW_EACH_TIME))
async def test_P3_the_whole_call_again_changes_nothing(world: World, name: str) -> None:
    """The process of a caller dies after the call, and its successor makes it once more."""
    call = CALLS[name]
    await call.prepare(world)
    first = told(await call.act(world))
    before = await traces(world)
    again = await repeated(call, world)
    assert again in ("stale_lease", "replayed", first)
    assert await traces(world) == before


async def repeated(call: Call, world: World) -> str:
    try:
        return told(await call.act(world))
    except StaleLease as refused:  # that lease has ended, whatever ended it
        return refused.code


@pytest.mark.usefixtures("loaded")
def test_R05_a_blocking_call_is_asked_for_again(proxy: FaultProxy, namespace: str) -> None:
    with Broker(proxy.url, namespace=namespace, by=ADA) as broker:
        for script in ("start", "suspend", "answer", "lease", "finish", "withdraw"):
            proxy.drop_next_reply(SCRIPTS.script(script, oom=False).sha.encode())
        started = broker.start("a", session=SESSION, key="k")
        paused = broker.suspend("b", approval(), session=SESSION)
        answered = broker.inbox.answer(paused.interrupt_ids[0], Approve())
        with broker.take(started.run_id) as run:
            assert (run.fence, run.attempt) == (1, 1)
            run.finish()
        withdrawn = broker.runs.withdraw(paused.run_id)
        assert [told(one) for one in (started, paused, answered, withdrawn)] == ["replayed"] * 4
        assert proxy.dropped == 6
        events = [entry.event for entry in broker.history(SESSION)]
        assert events == ["started", "suspended", "resolved", "leased", "finished", "withdrawn"]
