"""R12: several processes ask for new work until the server is full, and go on; what is under way is not harmed."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from broker import Approve, AsyncBroker, OutOfMemory, RunState
from broker.testing import ServerProcess, await_until
from tests.worker.fleet import Agents, run_when

from .fleet import working
from .world import ADA, approval, told

MIB = 1024 * 1024


@pytest.fixture
def flood(own_server: ServerProcess) -> Generator[Callable[[], Agents]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Agents(own_server.url, "default", program="flooding")))


async def test_R12_a_flood_of_new_work_is_refused_and_the_rest_goes_on(
    own_server: ServerProcess, flood: Callable[[], Agents]
) -> None:
    """Off: `scripts.CREATES` is empty (nobody is refused), or a script of an answer is in it."""
    used = own_server.call("INFO", "memory")
    assert isinstance(used, bytes)
    now = int(used.partition(b"used_memory:")[2].split()[0])
    async with AsyncBroker(own_server.url, by=ADA) as broker:
        asked = [await broker.suspend("asks", approval(n), session=f"s{n}") for n in range(9)]
        ready = [await broker.start("asks", n, session=f"r{n}") for n in range(9)]
        own_server.call("CONFIG", "SET", "maxmemory", now + 3 * MIB)
        floods = [flood() for _ in range(3)]
        assert [one.says("refused") for one in floods] == ["refused full"] * 3
        async with working(own_server.url, queue="agents"):
            for one in asked[:3]:
                assert told(await broker.cancel(one.interrupt_ids[0])) == "accepted"
            for one in asked[3:6]:
                assert told(await broker.runs.withdraw(one.run_id)) == "accepted"
            for one in asked[6:]:
                assert told(await broker.inbox.answer(one.interrupt_ids[0], Approve())) in ENDED
            for run in ready:
                assert (await run_when(broker, run.run_id, RunState.FINISHED)).result == "approve"
            with pytest.raises(OutOfMemory):
                await refused(broker)
        assert [one.says("refused") for one in floods] == ["refused full"] * 3
        own_server.call("CONFIG", "SET", "maxmemory", 0)
        assert told(await broker.start("none", session="later")) == "accepted"


ENDED = ("accepted", "replayed", "already_decided")
"""The approver at work may be first, and says the same as the same party."""


async def refused(broker: AsyncBroker) -> Any:
    """New work, until it is refused: what ended meanwhile may have made room for some."""

    async def one() -> None:
        await broker.start("flood", "x" * (MIB // 2), session="more", queue="flood")

    return await await_until(one)
