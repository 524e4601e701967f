"""A resume list is checked whole before anything changes: coverage, duplicates, unknown ids, expiry, thread and run."""

from datetime import timedelta
from typing import Any

import pytest

from broker import AsyncBroker, InvalidInput, RunState, Settlement
from broker.interop import agui
from tests.clock import Clock

from .making import EDITABLE, ask, entry, foreign, ids, request, transfer

YES, NO = {"approved": True}, {"approved": False}


async def states(broker: AsyncBroker, run: str) -> list[Settlement]:
    return [(await broker.inbox.get(one)).state for one in await ids(broker, run)]


async def two(broker: AsyncBroker) -> tuple[str, str, str]:
    run = await ask(broker, transfer("call_9"), transfer("call_8"))
    first, second = await ids(broker, run)
    return run, first, second


def refusal(came: agui.Plan | agui.Refusal) -> tuple[str, tuple[str, ...]]:
    assert isinstance(came, agui.Refusal)
    assert came.event().code == came.code
    return came.code.value, came.ids


@pytest.mark.report("RB20")
@pytest.mark.row("G10")
async def test_G10_a_list_with_a_gap_is_refused_naming_it_and_changes_nothing(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run, first, second = await two(broker)
    came = await threads.receive(request(entry(first, YES)))
    assert refusal(came) == ("PARTIAL_RESUME", (second,))
    assert await states(broker, run) == [Settlement.OPEN, Settlement.OPEN]
    came = await threads.receive(request(entry(second, status="cancelled"), entry(first, YES)))
    assert isinstance(came, agui.Plan)
    assert came.run_id == run
    assert await states(broker, run) == [Settlement.RESOLVED, Settlement.CANCELLED]
    assert (await broker.runs.get(run)).state is RunState.READY


@pytest.mark.row("G10")
async def test_G10_only_the_latest_interrupted_run_of_the_thread_is_meant(
    broker: AsyncBroker, threads: agui.AsyncThreads, clock: Clock
) -> None:
    old = await ask(broker, transfer("call_1"), run="run_3")
    clock.advance(timedelta(seconds=1))
    new = await ask(broker, transfer("call_2"), run="run_5")
    clock.advance(timedelta(seconds=1))
    await broker.suspend("cleaner", transfer("call_3"), session="th_2")  # another agent's, by no AG-UI run
    (mine,), (other,) = await ids(broker, new), await ids(broker, old)
    assert refusal(await threads.receive(request(entry(other, YES)))) == ("UNKNOWN_INTERRUPT_ID", (other,))
    came = await threads.receive(request(entry(mine, YES), entry(other, YES)))
    assert isinstance(came, agui.Plan)
    assert came.warnings == (f"interrupt {other!r} is not known; its entry was dropped",)
    assert await states(broker, old) == [Settlement.OPEN]
    assert await states(broker, new) == [Settlement.RESOLVED]


@pytest.mark.row("G11")
async def test_G11_an_id_twice_is_refused_and_nothing_changes(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run, first, second = await two(broker)
    listed = [entry(first, YES), entry(second, YES), entry(first, status="cancelled")]
    assert refusal(await threads.receive(request(*listed))) == ("DUPLICATE_INTERRUPT_ID", (first,))
    assert await states(broker, run) == [Settlement.OPEN, Settlement.OPEN]


@pytest.mark.row("G11")
@pytest.mark.parametrize("blank", ["", " ", None])
def test_G11_a_blank_id_is_refused(blank: Any) -> None:
    with pytest.raises(InvalidInput, match="interruptId"):
        request(entry(blank, YES))


@pytest.mark.row("G11", "G19")
async def test_G11_one_bad_entry_at_the_end_keeps_all_open(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run, first, second = await two(broker)
    came = await threads.receive(request(entry(first, YES), entry(second, {"approved": "yes"})))
    assert isinstance(came, agui.Refusal)
    assert (came.code, came.ids, came.path) == ("INVALID_PAYLOAD", (second,), "/approved")
    assert await states(broker, run) == [Settlement.OPEN, Settlement.OPEN]


@pytest.mark.row("G12")
async def test_G12_an_unknown_id_is_dropped_with_a_warning_or_refused(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, transfer())
    (mine,) = await ids(broker, run)
    listed = [entry(mine, YES), entry("int_zz", status="cancelled")]
    concept = agui.AsyncThreads(broker, agui.CONCEPT)
    assert refusal(await concept.receive(request(*listed))) == ("UNKNOWN_INTERRUPT_ID", ("int_zz",))
    assert await states(broker, run) == [Settlement.OPEN]
    came = await threads.receive(request(*listed))
    assert isinstance(came, agui.Plan)
    assert came.warnings == ("interrupt 'int_zz' is not known; its entry was dropped",)
    assert await states(broker, run) == [Settlement.RESOLVED]


@pytest.mark.row("G13")
async def test_G13_what_has_expired_can_be_cancelled_and_not_resolved(
    broker: AsyncBroker, threads: agui.AsyncThreads, clock: Clock
) -> None:
    run = await ask(broker, transfer(expires_in=timedelta(minutes=5)))
    (mine,) = await ids(broker, run)
    assert (await threads.read("th_2")).asked[0].deadline is not None
    clock.advance(timedelta(minutes=6))
    assert refusal(await threads.receive(request(entry(mine, YES)))) == ("INTERRUPT_EXPIRED", (mine,))
    concept = agui.AsyncThreads(broker, agui.CONCEPT)
    assert refusal(await concept.receive(request(entry(mine, status="cancelled"))))[0] == "INTERRUPT_EXPIRED"
    came = await threads.receive(request(entry(mine, status="cancelled")))
    assert isinstance(came, agui.Plan)
    assert await states(broker, run) == [Settlement.EXPIRED]
    assert await threads.receive(request(entry(mine, status="cancelled"))) == agui.Plan(run, replayed=True)
    assert refusal(await threads.receive(request(entry(mine, YES))))[0] == "INTERRUPT_EXPIRED"


@pytest.mark.row("G13")
@pytest.mark.parametrize(
    ("text", "expired"),
    [
        ("2020-01-01T00:00:00Z", True),
        ("2020-01-01T00:00:00+05:30", True),
        ("2020-01-01T00:00:00", True),
        ("2020-01-01", True),
        ("0001-01-01T00:00:00+23:59", False),
        ("2190-01-01T00:00:00Z", False),
        ("2190-01-01T00:00:00", False),
        ("soonish", False),
        ("", False),
    ],
)
async def test_G13_dates_of_other_agents(
    broker: AsyncBroker, threads: agui.AsyncThreads, text: str, *, expired: bool
) -> None:
    wire = {"id": "int_6", "reason": "confirmation", "expiresAt": text}
    await foreign(broker, wire)
    came = await threads.receive(request(entry("int_6", YES)))
    if expired:
        assert refusal(came) == ("INTERRUPT_EXPIRED", ("int_6",))
        assert isinstance(await threads.receive(request(entry("int_6", status="cancelled"))), agui.Plan)
        return
    assert isinstance(came, agui.Plan)
    unreadable = not text.startswith("2190")
    assert came.warnings == (("expiresAt of 'int_6' is no date; it does not expire",) if unreadable else ())


@pytest.mark.row("G13")
async def test_G13_an_expired_one_is_cancelled_even_where_cancel_is_not_offered(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, transfer(expires_in=timedelta(minutes=5), offers=EDITABLE[:3]))
    (mine,) = await ids(broker, run)
    abandoned = request(entry(mine, status="cancelled"))
    assert refusal(await threads.receive(abandoned)) == ("NOT_OFFERED", (mine,))
    thread = await threads.read("th_2")
    later = agui.Thread(thread.id, thread.now + timedelta(minutes=6), thread.run, thread.asked)
    assert agui.plan(abandoned, later) == agui.Plan(run)


@pytest.mark.row("G13")
async def test_G13_the_very_moment_is_too_late(broker: AsyncBroker, threads: agui.AsyncThreads) -> None:
    run = await ask(broker, transfer(expires_in=timedelta(minutes=5)))
    (mine,) = await ids(broker, run)
    thread = await threads.read("th_2")
    deadline = thread.asked[0].deadline
    assert deadline is not None
    for early, ok in ((timedelta(milliseconds=1), True), (timedelta(), False)):
        then = agui.Thread(thread.id, deadline - early, thread.run, thread.asked)
        assert agui.plan(request(entry(mine, YES)), then).ok is ok


@pytest.mark.report("RB64")
@pytest.mark.row("G21")
async def test_G21_input_without_a_list_is_refused_while_something_is_open(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run, first, second = await two(broker)
    assert refusal(await threads.receive(request())) == ("PENDING_INTERRUPTS", (first, second))
    assert refusal(await threads.receive(request(resume=[]))) == ("PENDING_INTERRUPTS", (first, second))
    assert await states(broker, run) == [Settlement.OPEN, Settlement.OPEN]
    assert await threads.receive(request(thread="th_9")) == agui.Plan()


@pytest.mark.row("G22")
async def test_G22_a_list_on_another_thread_is_refused(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, transfer())
    (mine,) = await ids(broker, run)
    assert refusal(await threads.receive(request(entry(mine, YES), thread="th_3"))) == (
        "WRONG_THREAD",
        (mine,),
    )
    await foreign(broker, {"id": "int_4", "reason": "confirmation"}, thread="th_4")
    elsewhere = await threads.receive(request(entry("int_4"), thread="th_3"))
    assert refusal(elsewhere) == ("UNKNOWN_INTERRUPT_ID", ("int_4",))
    assert await states(broker, run) == [Settlement.OPEN]


@pytest.mark.row("G22")
async def test_G22_a_resume_needs_a_run_id_of_its_own(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    run = await ask(broker, transfer(), run="run_5")
    (mine,) = await ids(broker, run)
    came = await threads.receive(request(entry(mine, YES), run="run_5"))
    assert refusal(came) == ("RUN_ID_REUSED", ("run_5",))
    assert await states(broker, run) == [Settlement.OPEN]
    assert isinstance(await threads.receive(request(entry(mine, YES), run="run_6")), agui.Plan)
    async with broker.take(run) as held:
        assert held.protocol_ids == ("run_5", "run_6")
        await held.suspend(transfer("call_10"))
    (later,) = await ids(broker, run)
    for used in ("run_5", "run_6"):
        came = await threads.receive(request(entry(later, YES), run=used))
        assert refusal(came) == ("RUN_ID_REUSED", (used,))
    assert isinstance(await threads.receive(request(entry(later, NO), run="run_7")), agui.Plan)
    assert (await broker.runs.get(run)).protocol_ids == ("run_5", "run_6", "run_7")


@pytest.mark.row("G24")
async def test_G24_the_same_id_in_two_runs_is_two_interrupts(
    broker: AsyncBroker, threads: agui.AsyncThreads
) -> None:
    wire = {"id": "int_1", "reason": "confirmation"}
    first = await foreign(broker, wire, run="run_5")
    assert isinstance(await threads.receive(request(entry("int_1", YES))), agui.Plan)
    second = await foreign(broker, wire, run="run_9")
    (one,), (other,) = await ids(broker, first), await ids(broker, second)
    assert one != other
    assert isinstance(await threads.receive(request(entry("int_1", NO), run="run_10")), agui.Plan)
    said = [agui.entry_of(await broker.inbox.get(each)) for each in (one, other)]
    assert [found.payload for found in said if found] == [YES, NO]


@pytest.mark.row("G24")
def test_G24_an_id_twice_in_one_run_is_refused() -> None:
    one = agui.Interrupt(id="int_1", reason="confirmation")
    with pytest.raises(InvalidInput, match="interrupts holds an id twice"):
        agui.Interrupted(interrupts=(one, one))


@pytest.mark.row("G35")
async def test_G35_a_newer_minor_version_is_served(broker: AsyncBroker, threads: agui.AsyncThreads) -> None:
    run = await ask(broker, transfer())
    (mine,) = await ids(broker, run)
    assert refusal(await threads.receive(request(entry(mine, YES), protocolVersion="2.0"))) == (
        "UNSUPPORTED_VERSION",
        (),
    )
    came = await threads.receive(request(entry(mine, YES), protocolVersion="1.10"))
    assert isinstance(came, agui.Plan)
    assert came.warnings == ("protocolVersion 1.10 is newer than 1.0",)
