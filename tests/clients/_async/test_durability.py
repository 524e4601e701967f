"""What outcomes say of the class they reached, and what happens when it was not reached."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from broker import (
    AlreadyDecided,
    Approve,
    AsyncBroker,
    Durability,
    InvalidInput,
    NotDurable,
    Refused,
    Reject,
    Replayed,
    RunState,
    Settings,
    UnsuitableServer,
    WrongNamespace,
)
from broker.testing import ServerProcess
from tests.clients.asking import ADA, refund
from tests.durability.sources import waiting

MEMORY, FSYNCED = Durability.memory(), Durability.fsynced()
HASTY = Settings(durability=FSYNCED, confirm_within=timedelta(seconds=1))

Start = Callable[..., ServerProcess]


def waits(start_server: Start) -> ServerProcess:
    """A server that is asked to wait for its disk, and is told afterwards not to sync at all."""
    return start_server({"appendfsync": "everysec"}, program=waiting().binary)


def always(start_server: Start) -> ServerProcess:
    """A server whose replies follow the fsync, and is told afterwards not to."""
    return start_server({"appendfsync": "always"})


@pytest.mark.every_server
async def test_a_new_namespace_has_the_strongest_class_that_costs_no_wait(start_server: Start) -> None:
    for policy, wanted in (("always", FSYNCED), ("everysec", MEMORY), ("no", MEMORY)):
        server = start_server({"appendfsync": policy})
        async with AsyncBroker(server.url, by=ADA) as broker:
            told = await broker.suspend("airline", refund(), session="s_1")
            answered = await broker.inbox.answer(told.interrupt_ids[0], Approve())
            late = await broker.inbox.answer(told.interrupt_ids[0], Reject(reason="no"))
            assert [told.durability, answered.durability, late.durability] == [wanted] * 3
        assert server.call("HGET", "{default}:meta", "durability") == str(wanted).encode()


async def test_the_namespace_keeps_its_class(start_server: Start) -> None:
    server = always(start_server)
    async with AsyncBroker(server.url, settings=Settings(durability=MEMORY)) as broker:
        assert (await broker.start("airline", session="s_1")).durability == MEMORY
    async with AsyncBroker(server.url) as broker:
        assert (await broker.start("airline", session="s_1")).durability == MEMORY
    with pytest.raises(WrongNamespace, match="has durability memory and fsynced was asked for"):
        await AsyncBroker(server.url, settings=Settings(durability=FSYNCED)).open()
    server.call("HSET", "{default}:meta", "durability", "replicated(2)")
    with pytest.raises(WrongNamespace, match="not offered by this release"):
        await AsyncBroker(server.url).open()


async def test_a_class_that_nobody_keeps_yet_is_refused(start_server: Start) -> None:
    server = always(start_server)
    with pytest.raises(InvalidInput, match="not offered by this release"):
        await AsyncBroker(server.url, settings=Settings(durability=Durability.replicated(1))).open()
    assert server.call("KEYS", "*") == []


@pytest.mark.every_server
async def test_a_server_that_changed_its_ways_is_refused_with_the_remedy(start_server: Start) -> None:
    server = always(start_server)
    async with AsyncBroker(server.url) as broker:
        await broker.start("airline", session="s_1")
    for change, remedy in (
        (("no-appendfsync-on-rewrite", "yes"), "no-appendfsync-on-rewrite no"),
        (("appendfsync", "no"), "Set appendfsync always"),
        (("appendonly", "no"), "Set appendonly yes and appendfsync always"),
    ):
        server.call("CONFIG", "SET", *change)
        if change == ("no-appendfsync-on-rewrite", "yes") and server.binary == waiting().binary:
            continue  # it waits for its disk then
        with pytest.raises(UnsuitableServer, match=remedy):
            await AsyncBroker(server.url).open()


@pytest.mark.parametrize("serve", [waits, always])
async def test_what_did_not_reach_its_class_is_said_and_repeated(
    start_server: Start, serve: Callable[[Start], ServerProcess]
) -> None:
    server = serve(start_server)
    async with AsyncBroker(server.url, settings=HASTY, by=ADA) as broker:
        server.call("CONFIG", "SET", "appendfsync", "no")
        missed = NotDurable(wanted=FSYNCED, reached=MEMORY)
        with pytest.raises(Refused) as refused:
            await broker.suspend("airline", refund(), session="s_1", key="k")
        assert refused.value.outcome == missed
        interrupt = (await broker.inbox.list()).items[0].id
        assert await broker.inbox.answer(interrupt, Approve()) == missed
        assert await broker.inbox.answer(interrupt, Reject(reason="no")) == missed

        server.call("CONFIG", "SET", "appendfsync", "always")
        again = await broker.suspend("airline", refund(), session="s_1", key="k")
        assert isinstance(again, Replayed)
        answered = await broker.inbox.answer(interrupt, Approve())
        assert isinstance(answered, Replayed)
        late = await broker.inbox.answer(interrupt, Reject(reason="no"))
        assert isinstance(late, AlreadyDecided)
        assert [again.durability, answered.durability, late.durability] == [FSYNCED] * 3


@pytest.mark.parametrize("serve", [waits, always])
async def test_a_run_that_ends_unconfirmed_has_ended_and_is_confirmed_by_a_repeat(
    start_server: Start, serve: Callable[[Start], ServerProcess]
) -> None:
    server = serve(start_server)
    async with AsyncBroker(server.url, settings=HASTY, by=ADA) as broker:
        server.call("CONFIG", "SET", "appendfsync", "always")
        started = await broker.start("airline", session="s_1")
        async with broker.take(started.run_id) as run:
            server.call("CONFIG", "SET", "appendfsync", "no")
            with pytest.raises(Refused, match="not_durable"):
                await run.suspend(refund())
            assert not run.is_held
            server.call("CONFIG", "SET", "appendfsync", "always")
            paused = await run.suspend(refund())
            assert (type(paused), paused.durability) == (Replayed, FSYNCED)
        await broker.inbox.answer(paused.interrupt_ids[0], Approve())
        async with broker.take(started.run_id) as run:
            server.call("CONFIG", "SET", "appendfsync", "no")
            with pytest.raises(Refused, match="not_durable"):
                await run.finish("done")
            assert (await broker.runs.get(run.id)).state == RunState.FINISHED
            server.call("CONFIG", "SET", "appendfsync", "always")
            assert await run.finish("done") == RunState.FINISHED
