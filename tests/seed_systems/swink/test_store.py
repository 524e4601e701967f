"""swink's store over a broker: the same promises, between processes and machines."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from broker import (
    Accepted,
    Approve,
    AsyncBroker,
    Conflict,
    Corrupt,
    Edit,
    Interrupt,
    InvalidInput,
    Refused,
    Reject,
    Replayed,
    RunState,
    Settlement,
    UnknownId,
)
from broker.interop.swink import BrokerStore, read_interrupt, write_interrupt
from broker.testing import RunningServer, await_until
from tests.worker.conftest import agents
from tests.worker.fleet import Agents, ended, run_when

from .files import FILE
from .test_files import numbered, readers

__all__ = ["agents"]

Connect = Callable[..., Any]
STATE = read_interrupt(FILE)


async def known(broker: AsyncBroker, session: str = "th_2") -> BrokerStore:
    """A store whose broker knows the session: something is on record of it."""
    await broker.start("chat", session=session)
    return BrokerStore(broker)


@pytest.mark.row("S1")
async def test_S1_a_file_comes_out_of_the_broker_byte_for_byte(broker: AsyncBroker, connect: Connect) -> None:
    for session, data in (("th_2", FILE), ("th_3", FILE + b"\n")):
        await BrokerStore(broker).import_file(session, data)
        state = await BrokerStore(await connect()).load(session)
        assert state is not None
        assert write_interrupt(state) == data


@pytest.mark.row("S1")
async def test_S1_an_imported_call_without_arguments_is_the_one_that_runs(broker: AsyncBroker) -> None:
    """Its `arguments` are null in the file, and none when it is made: what was approved is what runs.

    Off: the `{}` in `_questions`; the run was dead then, as one whose call differs from its record.
    """

    def shell(cmd: str) -> str:
        return cmd

    def now() -> str:
        return "noon"

    paused = await BrokerStore(broker).import_file("th_2", FILE)
    for one in paused.interrupt_ids:
        assert (await broker.inbox.answer(one, Approve())).ok
    async with broker.take(paused.run_id) as run:
        assert run.state is not None
        assert [call.arguments for call in run.state.pending_tool_calls] == [{"cmd": "make deploy"}, None]
        wanted = [
            {"id": call.tool_call_id, "name": call.tool_name, "arguments": call.arguments}
            for call in run.state.pending_tool_calls
        ]
        told: list[Any] = await run.calls(wanted, [shell, now])
        assert [one["content"] for one in told] == ["make deploy", "noon"]


@pytest.mark.row("S4", "S9")
async def test_S4_S9_a_key_is_an_active_interrupt_until_it_is_cleared(
    broker: AsyncBroker, connect: Connect, server: RunningServer
) -> None:
    store, other = await known(broker), BrokerStore(await connect())

    def marked() -> int:
        """What any process can see with one command."""
        command = ["-c", "import sys, redis; print(redis.Redis.from_url(sys.argv[1]).exists(sys.argv[2]))"]
        key = broker._link.space.of_session("th_2").key("active", "th_2")
        told = subprocess.run(
            [sys.executable, *command, server.url, key], capture_output=True, check=True, text=True
        )
        return int(told.stdout)

    assert (await other.is_active("th_2"), await other.load("th_2"), marked()) == (False, None, 0)
    await store.save("th_2", STATE)
    assert (await other.is_active("th_2"), await other.load("th_2"), marked()) == (True, STATE, 1)
    assert [await other.clear("th_2"), await store.clear("th_2")] == [True, False]
    assert (await store.is_active("th_2"), await store.load("th_2"), marked()) == (False, None, 0)
    await store.save("th_2", STATE)
    assert await other.is_active("th_2"), "what was cleared may be interrupted by the same again"


@pytest.mark.row("S5")
async def test_S5_a_save_replaces_the_interrupt_whole(broker: AsyncBroker, connect: Connect) -> None:
    store = await known(broker)
    await store.save("th_2", STATE)
    old = (await broker.inbox.list()).items
    await BrokerStore(await connect()).save("th_2", numbered(8))
    assert await store.load("th_2") == numbered(8)
    assert [(one.interrupt.call_id, one.seq) for one in (await broker.inbox.list()).items] == [("8", 2)]
    assert {(await broker.inbox.get(one.id)).state for one in old} == {Settlement.SUPERSEDED}
    assert list(await broker.active("th_2")) == [old[0].run_id]


@pytest.mark.row("S6", "S7")
async def test_S6_S7_without_its_session_nothing_is_saved_and_there_is_none(broker: AsyncBroker) -> None:
    store = BrokerStore(broker)
    with pytest.raises(UnknownId) as refused:
        await store.save("s_404", STATE)
    assert (refused.value.kind, refused.value.id) == ("session", "s_404")
    assert (await broker.fleet()).open == 0
    assert [await store.load("s_404"), await store.is_active("s_404"), await store.clear("s_404")] == [
        None, False, False,
    ]  # fmt: skip
    assert await (await known(broker)).load("th_2") is None


@pytest.mark.row("S8")
async def test_S8_a_state_that_cannot_be_read_stays_and_counts(broker: AsyncBroker, connect: Connect) -> None:
    store = await known(broker)
    await store.save("th_2", STATE)
    (run,) = await broker.active("th_2")
    p = broker._link.space.of_session("th_2")
    await broker._link.fetch(_written(p.key("state", run), b'{"interrupted_at":'))
    for other in (store, BrokerStore(await connect())):
        with pytest.raises(Corrupt) as broken:
            await other.load("th_2")
        assert broken.value.code == "corrupt"
        assert await other.is_active("th_2")
    assert await broker._link.fetch(_read(p.key("state", run))) == b'{"interrupted_at":'


def _written(key: str, value: bytes) -> Any:
    from broker.store.commands.values import Read  # noqa: PLC0415 - a hand in the records

    return Read((("SET", key, value),), lambda replies: replies[0])


def _read(key: str) -> Any:
    from broker.store.commands.values import Read  # noqa: PLC0415 - a hand in the records

    return Read((("GET", key),), lambda replies: replies[0])


@pytest.mark.row("S10")
async def test_S10_a_session_goes_with_its_interrupt_in_one_step(
    broker: AsyncBroker, connect: Connect
) -> None:
    store = await known(broker)
    await store.save("th_2", STATE)
    (run,) = await broker.active("th_2")
    other = await connect()
    seen: set[tuple[bool, bool]] = set()

    async def watch() -> None:
        while True:
            # The mark is looked at after the run: it may not outlive it by a moment.
            open_ = (await other.runs.get(run)).state is not RunState.WITHDRAWN
            seen.add((open_, run in await other.active("th_2")))

    watching = asyncio.create_task(watch())
    await await_until(lambda: (True, True) in seen, what="a look before")
    told = await broker.history("th_2")
    assert await store.delete("th_2") is True
    await await_until(lambda: (False, False) in seen, what="a look after")
    watching.cancel()
    assert (False, True) not in seen
    after = (await broker.history("th_2"))[len(told) :]
    assert {one.op for one in after} == {after[0].op}, "one operation"
    assert {one.event for one in after} == {"withdrawn"}
    assert [await store.load("th_2"), await store.delete("th_2")] == [None, False]
    assert {(await broker.inbox.get(one)).state for one in (await broker.runs.get(run)).interrupt_ids} == {
        Settlement.WITHDRAWN
    }


@pytest.mark.row("S11")
async def test_S11_readers_in_other_processes_see_one_interrupt_or_the_other(
    broker: AsyncBroker, server: RunningServer, namespace: str
) -> None:
    store = await known(broker)
    await store.save("th_2", numbered(1))
    reading = asyncio.create_task(readers(server.url, namespace, "th_2", 60))
    number = 1
    while not reading.done():
        number += 1
        await store.save("th_2", numbered(number))
    found = await reading
    assert [one["mixed"] for one in found] == [[]] * 8
    assert max(one["seen"] for one in found) > 1, "no reader met a change"


@pytest.mark.row("S12")
@pytest.mark.parametrize("bad", ["", "a/b", "..", "a:b", "a\\b", "a\n"])
async def test_S12_ids_that_swink_refuses_make_no_key(broker: AsyncBroker, bad: str) -> None:
    store = BrokerStore(broker)
    calls = [
        store.load(bad), store.save(bad, STATE), store.clear(bad), store.delete(bad), store.is_active(bad),
        store.sequence(bad), store.import_file(bad, FILE),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(InvalidInput, match=r"^session "):
            await call
    assert (await broker.fleet()).open == 0


@pytest.mark.row("S13")
async def test_S13_calls_keep_their_order_and_none_is_a_question_too(broker: AsyncBroker) -> None:
    store = await known(broker)
    await store.save("th_2", STATE)
    assert [one.interrupt.call_id for one in (await broker.inbox.list()).items] == ["tc_7", "tc_8"]
    empty = STATE.model_copy(update={"pending_tool_calls": ()})
    await store.save("th_2", empty)
    assert await store.load("th_2") == empty
    (asked,) = (await broker.inbox.list()).items
    assert (asked.interrupt.reason, asked.interrupt.call_id) == ("swink:interrupted", None)
    assert isinstance(await broker.inbox.answer(asked.id, Approve()), Accepted)


@pytest.mark.row("S14")
async def test_S14_a_crash_before_the_end_offers_the_interrupt_again(
    broker: AsyncBroker, agents: Callable[..., Agents]
) -> None:
    """Off: a lease that takes the mark away (`lease.lua`), as resuming before clearing would be the other way round."""
    store = BrokerStore(broker)
    paused = await store.import_file("th_2", FILE)
    first, second = paused.interrupt_ids
    await broker.inbox.answer(first, Edit(arguments={"cmd": "make deploy-staging"}))
    await broker.inbox.answer(second, Reject(reason="not now"))
    program = "tests.seed_systems.swink.resuming"
    one = agents(program=program, name="one")
    assert one.begins() == paused.run_id
    assert await store.is_active("th_2")
    one.kill()
    assert (await store.is_active("th_2"), await store.load("th_2")) == (True, STATE)
    agents(program=program, name="two")
    run = await ended(broker, paused.run_id)
    assert (run.holder, run.result) == (
        "two",
        {
            first: {"decision": "approved_with", "value": {"cmd": "make deploy-staging"}},
            second: {"decision": "rejected"},
            "attempt": 2,
        },
    )
    assert (await store.is_active("th_2"), await store.load("th_2")) == (False, None)


async def test_what_is_being_resumed_is_neither_replaced_nor_cleared(broker: AsyncBroker) -> None:
    store = BrokerStore(broker)
    paused = await store.import_file("th_2", FILE)
    for one in paused.interrupt_ids:
        await broker.inbox.answer(one, Approve())
    with pytest.raises(Refused) as answered:
        await store.save("th_2", STATE)
    assert isinstance(answered.value.outcome, Conflict)
    async with broker.take(paused.run_id) as run:
        for call in (store.save("th_2", STATE), store.clear("th_2"), store.delete("th_2")):
            with pytest.raises(Refused) as held:
                await call
            assert isinstance(held.value.outcome, Conflict)
        assert run.state == STATE
        await run.finish()
    assert await store.clear("th_2") is False


@pytest.mark.row("S24")
async def test_S24_a_write_that_is_out_of_date_is_refused(broker: AsyncBroker, connect: Connect) -> None:
    store, late = await known(broker), BrokerStore(await connect())
    await store.save("th_2", numbered(1), expected=0)
    seen = await late.sequence("th_2")
    for number in range(2, 6):
        await store.save("th_2", numbered(number), expected=number - 1)
    with pytest.raises(Refused, match=r"expected 1, found 5") as refused:
        await late.save("th_2", numbered(9), expected=seen)
    assert refused.value.code == "conflict"
    assert (await store.sequence("th_2"), await store.load("th_2")) == (5, numbered(5))
    await store.clear("th_2")
    with pytest.raises(Refused, match=r"expected 5, found 0"):
        await store.save("th_2", numbered(9), expected=5)


@pytest.mark.row("S24")
async def test_S24_of_many_writers_of_one_sequence_one_is_taken(
    broker: AsyncBroker, connect: Connect
) -> None:
    """Off: `expected` compared by the client only: all of them have read the same number."""
    await (await known(broker)).save("th_2", numbered(1))
    stores = [BrokerStore(await connect()) for _ in range(5)]
    told = await asyncio.gather(
        *(store.save("th_2", numbered(10 + n), expected=1) for n, store in enumerate(stores)),
        return_exceptions=True,
    )
    refused = [one for one in told if isinstance(one, Refused) and one.code == "conflict"]
    assert (told.count(None), len(refused)) == (1, 4)
    await asyncio.gather(*(store.save("th_2", numbered(20 + n)) for n, store in enumerate(stores)))
    assert await stores[0].sequence("th_2") == 7, "without a number, all of them count"


async def test_an_import_is_made_once(broker: AsyncBroker, connect: Connect) -> None:
    store = BrokerStore(broker, agent="deployer", queue="ops")
    first = await store.import_file("th_2", FILE)
    again = await BrokerStore(await connect(), agent="deployer", queue="ops").import_file("th_2", FILE)
    assert isinstance(again, Replayed)
    assert (again.run_id, again.interrupt_ids) == (first.run_id, first.interrupt_ids)
    with pytest.raises(Refused) as refused:
        await store.import_file("th_2", FILE + b"\n")
    assert isinstance(refused.value.outcome, Conflict)
    replaced = await store.import_file("th_2", FILE + b"\n", replace=True)
    assert replaced.run_id == first.run_id
    assert await store.sequence("th_2") == 2
    run = await run_when(broker, first.run_id, RunState.WAITING)
    assert (run.agent, run.queue) == ("deployer", "ops")


async def test_a_session_with_several_suspensions_needs_one_named(broker: AsyncBroker) -> None:
    store = await known(broker)
    await store.save("th_2", STATE)
    other = await broker.suspend("chat", Interrupt.question("Which one?"), session="th_2")
    for call in (store.load("th_2"), store.save("th_2", STATE), store.clear("th_2")):
        with pytest.raises(InvalidInput, match=r"^run_id is missing, and several runs wait") as refused:
            await call
        assert other.run_id in refused.value.allowed
    runs = sorted(await broker.active("th_2"))
    (mine,) = [one for one in runs if one != other.run_id]
    assert await store.load("th_2", run_id=mine) == STATE
    assert await store.load("th_2", run_id="run_of_none") is None
    assert await store.clear("th_2", run_id=mine) is True
    found = await store.load("th_2")
    assert found is not None
    with pytest.raises(InvalidInput, match=r"^model is missing"):
        write_interrupt(found)
