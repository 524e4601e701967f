"""Foreign and broken bytes in Redis: reported with the key, counted active, and the rest goes on."""

import logging
from collections.abc import AsyncIterator, Awaitable

import pytest

from broker import AsyncBroker, Sweeper
from broker.core.answers import Approve, Cancel
from broker.core.kinds import UnknownKind
from broker.core.models import Interrupt
from broker.core.outcomes import Outcome
from broker.core.states import Settlement
from broker.errors import BrokerError, Corrupt
from broker.store.commands import reads
from broker.testing import RunningServer
from tests.records import poke

from .snapshot import changed
from .world import ANN, SESSION, World, approval

CANARY = b"canary-77"

# What may lie where a question's bytes should be.
BROKEN = {
    "nothing": b"",
    "one byte": b"\x01",
    "a later version": b"\x07\x00\x80",
    "an unknown codec": b"\x01\x40\x80",
    "sealed": b"\x01\x02\x80",
    "no map": b"\x01\x00\xc0",
    "text of a stranger": b"hello " + CANARY,
    "cut off": b"\x01\x00\x82\xa4kind",
    "broken compression": b"\x01\x01not zlib " + CANARY,
    "keys that are no text": b"\x01\x00\x81\x01\x02",
    "a kind that is none": b"\x01\x00\x81\xa4kind\x05",
}


async def code_of(call: Awaitable[Outcome]) -> str:
    """What a caller is told, as an outcome or as an error."""
    try:
        return (await call).code
    except BrokerError as error:
        return error.code


@pytest.fixture
async def broker(server: RunningServer, namespace: str) -> AsyncIterator[AsyncBroker]:
    """A client of the namespace, as Ann."""
    async with AsyncBroker(server.url, namespace=namespace, by=ANN, patience=1) as made:
        yield made


def three(world: World) -> list[str]:
    """Three open interrupts of one session."""
    return [world.asked(approval(f"c{n}"), name=f"run-{n}")[1][0] for n in range(3)]


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
async def test_an_unreadable_question_is_reported_listed_and_active(
    world: World, broker: AsyncBroker, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """P7, P11: its key is named, it is open and active, it can be cancelled, the two others are as ever."""
    first, bad, last = three(world)
    key = world.key("question", bad)
    world.client.set(key, data)
    with caplog.at_level(logging.DEBUG):
        page = await broker.inbox.list()
        record = await broker.inbox.get(bad)
    assert [one.id for one in page.items] == [first, bad, last]
    assert [one.problem is None for one in page.items] == [True, False, True]
    assert record.problem is not None
    assert key in record.problem
    assert record.state is Settlement.OPEN
    assert len(await broker.active(SESSION)) == 3
    before = world.snapshot()
    assert (await broker.inbox.answer(bad, Approve())).code == "invalid"
    assert changed(before, world.snapshot()) == []
    assert (await broker.inbox.answer(bad, Cancel())).ok
    assert (await broker.inbox.answer(first, Approve())).ok
    shown = f"{page!r}{record!r}{record.problem}{caplog.text}"
    assert CANARY.decode() not in shown


HASHES = {
    "another type": None,
    "another program's record": {"name": "x"},
    "an unknown state": {"state": "escalated", "run": "run-x", "session": SESSION},
    "letters for numbers": {
        "state": "open",
        "run": "r",
        "session": SESSION,
        "seq": "one",
        "deadline": "soon",
    },
    "times beyond time": {"state": "open", "run": "r", "session": SESSION, "opened": "9" * 40},
}


@pytest.mark.parametrize("fields", HASHES.values(), ids=HASHES)
async def test_an_unreadable_record_is_reported_and_the_list_goes_on(
    world: World, broker: AsyncBroker, fields: dict[str, str] | None
) -> None:
    first, bad, last = three(world)
    key = world.key("interrupt", bad)
    world.client.delete(key)
    if fields is None:
        world.client.lpush(key, "x")
    else:
        poke(world.client, key, **fields)
    page = await broker.inbox.list()
    assert [one.id for one in page.items] == [first, bad, last]
    problem = page.items[1].problem
    assert problem is not None
    assert key in problem
    assert page.items[1].state is Settlement.OPEN
    before = world.snapshot()
    assert await code_of(broker.inbox.answer(bad, Cancel())) in {"corrupt", "invalid"}
    assert changed(before, world.snapshot()) == []
    assert (await broker.inbox.answer(last, Approve())).ok


def poison(world: World, number: int) -> None:
    """Records of every broken sort at the head of every list of what is due."""
    for n in range(number):
        one, run = f"int_0000{n:032x}", f"run_0000{n:026d}"
        for kind, name in (("interrupt", one), ("run", run)):
            key = world.key(kind, name)
            match n % 4:
                case 0:
                    world.client.lpush(key, "x")
                case 1:
                    world.client.set(key, "x")
                case 3:
                    pass
                case _:
                    poke(world.client, key, state="?", run=run, session=SESSION, ids=one)
        world.client.zadd(world.key("timers"), {f"i {one}": 1, f"r {run}": 1})
        world.client.zadd(
            world.key("retention"), {f"i {one}": 1, f"r {run}": 1, f"e {one} {SESSION}\x1fc x": 1}
        )
        world.client.zadd(world.key("unseen", "approvals"), {one: 1})
    world.client.zadd(world.key("retention"), {"nonsense": 1, "e nothing": 1, "": 1, b"r \xff": 1})
    world.client.zadd(world.key("timers"), {"nonsense": 1, "": 1, b"i \xff": 1})
    world.client.zadd(world.key("unseen", "approvals"), {b"\xff": 1, "": 1})


async def test_a_sweep_gets_past_whatever_it_cannot_read(
    world: World, server: RunningServer, namespace: str
) -> None:
    """P11: a hundred broken records before the good ones, in each list; within a few sweeps the good ones are done."""
    async with AsyncBroker(server.url, namespace=namespace, rendering=world.rendering) as broker:
        _place, (late,) = world.asked(approval("c1"), name="late")
        done, lease = world.started("done")
        world.finish(lease)
        lost, _lease = world.started("lost")
        world.client.execute_command("XGROUP", "CREATE", world.key("interrupts"), "approvals", "$")
        _place, (unrung,) = world.asked(approval("c2", expires_in=None), name="unrung")
        world.client.execute_command("XTRIM", world.key("interrupts"), "MAXLEN", 0)
        bell = world.field("interrupt", unrung, "bell")
        world.forward(hours=25)
        poison(world, 100)
        sweeper = Sweeper(broker)
        for _ in range(14):
            await sweeper.sweep(world.p)
        assert world.settled(late) == "expired"
        assert world.state(done) == ""
        assert world.state(lost) == "ready"
        assert world.field("interrupt", unrung, "bell") != bell
        await sweeper._give_up()


async def test_a_verdict_that_is_gone_or_changed_is_never_taken(world: World, broker: AsyncBroker) -> None:
    """P7, P13: the mark names the digest of the verdict; what does not fit is reported, and no run goes on from it."""
    place, (one,) = world.asked()
    world.answer(one)
    key = world.key("verdict", one)
    for data in (None, b"", b"\x01\x00\x80", CANARY):
        world.client.delete(key)
        if data is not None:
            world.client.set(key, data)
        record = await broker.inbox.get(one)
        assert record.problem is not None
        assert key in record.problem
        assert record.resolution is None
    with pytest.raises(Corrupt) as fault:
        async with broker.take(place.run):
            pass
    assert CANARY.decode() not in str(fault.value)


async def test_history_goes_on_around_what_cannot_be_read(world: World, broker: AsyncBroker) -> None:
    world.asked()
    key = world.key("history", SESSION)
    for data in (b"", b"x", b"0" * 16, b"0" * 16 + b"\xc1", b"0" * 16 + CANARY, b"9" * 60):
        world.client.rpush(key, data)
    _place, (_one,) = world.asked(approval("c2"), name="b")
    events = [entry.event for entry in await broker.history(SESSION)]
    assert events == ["started", "leased", "suspended", *["unreadable"] * 6, "started", "leased", "suspended"]


async def test_other_programs_entries_in_indexes_are_passed_over(world: World, broker: AsyncBroker) -> None:
    ids = three(world)
    world.client.sadd(world.key("pools"), "no pool at all", "a:b:c:d", b"\xff")
    (name,) = world.client.smembers(world.key("lists"))
    world.client.sadd(world.key("lists"), "no list at all", b"\xff")
    world.client.zadd(world.key("open", name.decode()), {"not an id": 1, b"\xff\xfe": 2})
    world.client.hset(world.key("workers"), mapping={"w1": "no time", "w2": b"1 \xff"})
    page = await broker.inbox.list()
    assert [one.id for one in page.items] == ids


@pytest.mark.parametrize(
    ("kind", "value"), [("errors", b"\xc1"), ("errors", b"hello"), ("errors", b"\x91\x01")]
)
async def test_a_runs_errors_are_shown_as_far_as_they_can_be(
    world: World, broker: AsyncBroker, kind: str, value: bytes
) -> None:
    place, lease = world.started()
    world.fail(lease)
    world.client.rpush(world.key(kind, place.run), value)
    assert len((await broker.runs.get(place.run)).errors) == 2


@pytest.mark.parametrize("field", ["seq", "fence", "tries", "created", "lease_until", "state", "mode"])
async def test_a_broken_run_names_its_key(world: World, broker: AsyncBroker, field: str) -> None:
    place, _lease = world.started()
    poke(world.client, world.key("run", place.run), **{field: "x"})
    with pytest.raises(Corrupt) as fault:
        await broker.runs.get(place.run)
    assert fault.value.key == world.key("run", place.run)


def test_a_mark_that_cannot_be_read_counts_as_active(world: World) -> None:
    """P7: whatever stands in the mark, the session is interrupted."""
    place, _ids = world.asked()
    world.client.hset(world.key("active", SESSION), mapping={place.run: "soon", "x": b"\xff"})
    assert world.read(reads.read_active(world.p, SESSION)) == {place.run: 0, "x": 0}


async def test_a_question_of_a_later_release_is_kept_and_only_cancelled(
    world: World, broker: AsyncBroker
) -> None:
    """P10: an unknown kind reaches the reader as such, with its fields, and no answer is guessed for it."""
    _place, (one,) = world.asked(Interrupt(kind=UnknownKind(raw={"type": "vote", "quorum": 3})))
    record = await broker.inbox.get(one)
    assert record.problem is None
    assert record.interrupt.kind.to_wire() == {"type": "vote", "quorum": 3}
    assert (await broker.inbox.answer(one, Approve())).code == "invalid"
    assert (await broker.inbox.answer(one, Cancel())).ok
