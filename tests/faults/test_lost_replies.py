"""R05: the server does it and the reply is lost. The call is repeated by itself, and nothing happens twice."""

from collections.abc import Callable

import pytest

from broker import Approve, Broker
from broker.store.scripts import Rendering
from broker.testing import FaultProxy, RunningServer, await_until
from tests.clock import MOVABLE

from .calls import CALLS, NEW_EACH_TIME
from .calls_that_read import READS
from .world import ADA, SESSION, Call, World, approval, repeated, told, traces, undisturbed

SCRIPTS = Rendering()
ALL = CALLS | READS
IN_THREADS = {"register", "renew"}
"""Calls that are sent from a thread: they end when the server has it, which may be before the reply is lost."""


def drop(proxy: FaultProxy, call: Call) -> None:
    """Loses the reply to the call's next sending, whichever way it is sent; to any command where it only reads."""
    if not call.script:
        proxy.drop_next_reply()
        return
    for oom in (False, True):
        proxy.drop_next_reply(MOVABLE.script(call.script, oom=oom).sha.encode())


@pytest.mark.parametrize("name", ALL)
async def test_R05_a_lost_reply_is_asked_for_again(
    world: World, proxy: FaultProxy, loaded: RunningServer, new_namespace: Callable[[], str], name: str
) -> None:
    """Each fails without the field of its record that remembers the operation (`start_op`, `suspend_op`, `op`, ...)."""
    call = ALL[name]
    usual, expected = await undisturbed(call, loaded.url, new_namespace())
    assert usual == call.answers[0]
    await call.prepare(world)
    drop(proxy, call)
    assert told(await call.act(world)) in call.answers
    await await_until(lambda: proxy.dropped == 1 or name not in IN_THREADS)
    assert proxy.dropped == 1
    assert [*await traces(world), world.effects] == expected


@pytest.mark.parametrize("name", ALL)
async def test_R05_a_call_on_a_connection_that_is_gone_is_sent_again(
    world: World, proxy: FaultProxy, loaded: RunningServer, new_namespace: Callable[[], str], name: str
) -> None:
    """Off: `Gone` is not repeated in `Link._persist`."""
    call = ALL[name]
    usual, expected = await undisturbed(call, loaded.url, new_namespace())
    await call.prepare(world)
    proxy.cut()
    assert told(await call.act(world)) == usual
    assert [*await traces(world), world.effects] == expected


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
