"""What all adapters share, played by the smallest framework there can be: its state is JSON, its tools want a yes."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import timedelta

import pytest

from broker import (
    Action,
    Approve,
    AsyncBroker,
    BuildMismatch,
    Interrupt,
    InvalidInput,
    NotDurable,
    RunState,
    Settings,
    Unavailable,
)
from broker.adapters import Answered, Described, Finished, Parked, current_run, drive, effect_key
from broker.adapters._staying import stay
from broker.testing import ServerProcess, await_until
from tests.durability.calls import FSYNCED
from tests.durability.sources import waiting

from .stage import ME

HASTY = Settings(
    durability=FSYNCED, confirm_within=timedelta(seconds=1), lease=timedelta(seconds=2),
    backoff_first=timedelta(milliseconds=10), backoff_most=timedelta(milliseconds=20), tries=1000,
)  # fmt: skip
PATHS = (("desk",), ("desk", "refunds"))
"""Two agents, one in the other, whose models give the same id."""


class Small:
    """Asks for two payments of one id, and makes those that are approved."""

    def __init__(self, release: str = "1") -> None:
        self.described = Described("small", release, "1", "desk", "tools")
        self.paid: list[tuple[str, str]] = []

    async def start(self, given: object) -> Parked:
        return Parked(json.dumps(given).encode(), tuple(_asked(path) for path in PATHS))

    async def resume(self, state: bytes, answers: Sequence[Answered]) -> Finished:
        for one in answers:
            if isinstance(one.answer, Approve):
                self.paid.append((effect_key(one.id, one.path), one.key))
        return Finished(json.loads(state))

    async def read_back(self, parked: Parked) -> None:
        json.loads(parked.state)


def _asked(path: tuple[str, ...]) -> Interrupt:
    return Interrupt.approval(Action(tool="pay", arguments={"by": path[-1]}), "c1", agent_path=path)


async def paused(broker: AsyncBroker, small: Small) -> str:
    """A run that has parked, and whose questions were approved."""
    started = await broker.start("desk", {"amount": 10}, session="s_1")
    async with broker.take(started.run_id) as run:
        await drive(run, small)
    for one in (await broker.runs.get(started.run_id)).interrupt_ids:
        assert (await broker.inbox.answer(one, Approve(), by=ME)).ok
    return started.run_id


@pytest.mark.report("RB34", "RB37")
async def test_nested_agents_with_one_call_id_have_keys_of_their_own(broker: AsyncBroker) -> None:
    """The key is that of the agents and the id; by the id alone it cannot be told (P6, RB34, RB37)."""
    small = Small()
    run_id = await paused(broker, small)
    async with broker.take(run_id) as run:
        assert await drive(run, small) == {"amount": 10}
        assert [found for found, _ in small.paid] == [key for _, key in small.paid]
        assert len(set(small.paid)) == 2
        await run.release()
    async with broker.take(run_id) as again:
        other = Small()
        await drive(again, other)
        assert other.paid == small.paid  # the same at the next attempt
        await again.finish()


async def test_a_call_of_several_agents_that_names_none_is_refused(broker: AsyncBroker) -> None:
    class Careless(Small):
        async def resume(self, *_: object) -> Finished:
            assert effect_key("c2") == f"{current_run().id}:c2"  # one that nobody was asked about
            assert effect_key("c2", ("desk", "refunds")) == f"{current_run().id}:desk/refunds/c2"
            with pytest.raises(InvalidInput, match="path"):
                effect_key("c1")
            return Finished("refused")

    run_id = await paused(broker, Careless())
    async with broker.take(run_id) as run:
        assert await drive(run, Careless()) == "refused"
        await run.finish()


@pytest.mark.report("RB28")
async def test_a_worker_that_accepts_an_older_build_goes_on_with_its_pauses(broker: AsyncBroker) -> None:
    """Without `accepts` the state is refused before anything runs, and stays as it was (RB28)."""
    old, new = Small("1"), Small("2")
    run_id = await paused(broker, old)
    async with broker.take(run_id) as run:
        with pytest.raises(BuildMismatch):
            await drive(run, new)
        assert new.paid == []
        assert await drive(run, new, accepts=[old.described.build]) == {"amount": 10}
        assert len(new.paid) == 2
        await run.finish()


# P1 --------------------------------------------------------------------------------------------------------------


def sync(own: ServerProcess, policy: str) -> None:
    """From now on this is the server's way to its disk: with `no`, WAITAOF waits in vain."""
    own.call("CONFIG", "SET", "appendfsync", policy)


@pytest.fixture
def own(start_server: Callable[..., ServerProcess]) -> ServerProcess:
    """A server that can wait for its disk, and at present needs no wait."""
    return start_server({"appendfsync": "always"}, port=0, program=waiting().binary)


@pytest.fixture
async def durable(own: ServerProcess) -> AsyncGenerator[AsyncBroker]:
    """A broker whose confirmed calls wait by WAITAOF."""
    sync(own, "everysec")
    async with AsyncBroker(own.tcp_url, namespace="a", settings=HASTY, by=ME) as broker:
        sync(own, "always")
        yield broker


async def test_nothing_is_done_with_answers_that_may_be_lost_again(
    own: ServerProcess, durable: AsyncBroker
) -> None:
    """P1: the answers are confirmed before the framework sees them; else the attempt ends, and another is made."""
    small = Small()
    run_id = await paused(durable, small)
    async with durable.take(run_id) as run:
        sync(own, "no")
        with pytest.raises(Unavailable) as fault:
            await drive(run, small)
        assert fault.value.unsure
        assert small.paid == []
        sync(own, "always")
        assert await drive(run, small) == {"amount": 10}
        assert len(small.paid) == 2
        await run.finish()


async def test_a_wait_ends_with_answers_that_are_on_the_disk_only(
    own: ServerProcess, durable: AsyncBroker
) -> None:
    """P1: whoever approves is told that it may be lost, and the one that waited for it does nothing with it."""
    small = Small()
    started = await durable.start("desk", {"amount": 10}, session="s_1")
    async with durable.take(started.run_id) as run:
        staying = asyncio.create_task(stay(run, small, await small.start({"amount": 10}), 30))

        async def is_paused() -> bool:
            return (await durable.runs.get(run.id)).state is RunState.WAITING

        await await_until(is_paused, 30, what="it has paused")
        sync(own, "no")
        for one in (await durable.runs.get(run.id)).interrupt_ids:
            assert isinstance(await durable.inbox.answer(one, Approve(), by=ME), NotDurable)
        with pytest.raises(Unavailable):
            await staying
        sync(own, "always")
        await run.release()
    async with durable.take(started.run_id) as run:
        assert await drive(run, small) == {"amount": 10}
        assert len(small.paid) == 2
        await run.finish()


async def test_a_run_with_a_journal_or_without_renewal_is_not_waited_for(broker: AsyncBroker) -> None:
    """What its handler has recorded is of the lease that would end; nothing is parked by the wait then."""
    small = Small()
    started = await broker.start("desk", {"amount": 10}, session="s_1")
    (run,) = await broker.queue("agents").lease(("desk",))
    assert not await stay(run, small, await small.start(1), 30)
    assert run.is_held
    await run.release()
    async with broker.take(started.run_id) as run:
        await run.step(dict)
        assert not await stay(run, small, await small.start(1), 30)
        assert run.is_held
        await run.finish()
