"""Calls that are cancelled: at every place where they wait, with neighbours on the same connections."""

import asyncio
from collections.abc import Callable

import pytest

from broker.testing import RunningServer

from .calls import CALLS, NEW_EACH_TIME
from .calls_that_read import READS
from .cancelling import MOST_WAITS, CancelledAt, step
from .world import Call, World, new_world, repeated, traces, undisturbed

ALL = CALLS | READS


async def move_in(w: World) -> list[str]:
    """Ids of three other runs."""
    return [(await w.sound.start("b", session=f"n{n}", queue="n")).run_id for n in range(3)]


async def ask(w: World, ids: list[str]) -> None:
    """A call for each neighbour, at the same time. Raises where one gets another one's answer."""
    found = await asyncio.gather(*map(w.faulty.runs.get, ids))
    assert [(one.id, one.session_id) for one in found] == [(one, f"n{n}") for n, one in enumerate(ids)]


async def cancelled_at(call: Call, w: World, ids: list[str], at: int) -> bool:
    """Whether the call waits so often; it was cancelled there then."""
    stepping = CancelledAt(call.act(w), at)

    task = asyncio.create_task(step(stepping))
    await asyncio.gather(ask(w, ids), asyncio.wait([task]))
    if stepping.waits >= at:
        assert task.cancelled() or task.exception() is None
    return stepping.waits >= at


@pytest.mark.parametrize("name", ALL)
async def test_a_call_cancelled_wherever_it_waits_harms_nobody_and_may_be_made_again(
    server: RunningServer, new_namespace: Callable[[], str], name: str
) -> None:
    """Off: a connection goes back to its pool with a reply still to come; an operation is not remembered."""
    call = ALL[name]
    _, (*expected, _) = await undisturbed(call, server.url, new_namespace())
    for at in range(1, MOST_WAITS):
        async with new_world(server.url, new_namespace()) as w:
            ids = await move_in(w)
            await call.prepare(w)
            if not await cancelled_at(call, w, ids, at):
                return
            await ask(w, ids)
            if name not in NEW_EACH_TIME:
                assert await repeated(call, w) in ("stale_lease", *call.answers)
                assert await traces(w) == expected
