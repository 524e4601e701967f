# Generated from tests/clients/_async/test_check.py by tests/tools/unasync.py (make sync): do not edit.
"""A check of a namespace: one thing of each kind that may be wrong, and nothing said of what is well."""

from datetime import timedelta
from typing import Any

import pytest

from broker import Approve, Broker, Checked, InvalidInput, OnExpiry, Trouble
from broker.testing import RunningServer
from tests.clients.asking import refund, render
from tests.clients.watching import place, reads, sweeps, works
from tests.clock import Clock
from tests.records import changed


def troubles(found: Checked) -> list[Trouble]:
    return sorted(one.trouble for one in found.findings)


def test_an_empty_namespace_is_well(broker: Broker) -> None:
    found = broker.check()
    assert (found.ok, found.findings, found.dead, found.looked_at, found.cursor) == (True, (), (), 0, None)
    assert found.namespace == broker.namespace


def test_what_is_seen_to_is_well(broker: Broker) -> None:
    """A deadline and a sweeper, a reader and no deadline, a ready run and a worker; leased and closed ones."""
    broker._link.run(sweeps(broker))
    broker._link.run(works(broker))
    broker._link.client.execute_command(*reads(broker, "completions"))
    broker.suspend("support", refund(), session="s")
    broker.suspend("support", render(expires_in=None), session="s")
    answered = broker.suspend("support", refund(call="x"), session="s")
    broker.inbox.answer(answered.interrupt_ids[0], Approve())
    withdrawn = broker.suspend("support", refund(call="y"), session="s")
    broker.runs.withdraw(withdrawn.run_id or "")
    with broker.take((broker.start("support", session="s")).run_id or "") as run:
        run.finish()
    with broker.take((broker.start("support", session="s")).run_id or ""):
        found = broker.check()
    assert found.findings == ()
    assert found.looked_at > 0


def test_deadlines_without_a_sweeper(broker: Broker) -> None:
    broker.suspend("support", refund(), session="s")
    found = broker.check()
    assert (found.ok, troubles(found)) == (False, [Trouble.NO_SWEEPER])
    broker._link.run(sweeps(broker))
    assert (broker.check()).ok


def test_a_question_that_nothing_can_end(broker: Broker) -> None:
    broker._link.run(sweeps(broker))
    late = refund(on_expiry=OnExpiry.WAIT, expires_in=timedelta(hours=1))
    paused = [broker.suspend("support", one, session="s") for one in (late, render(expires_in=None))]
    found = broker.check()
    assert [(one.trouble, one.run_id, one.interrupt_id) for one in found.findings] == [
        (Trouble.NOBODY_ANSWERS, one.run_id, one.interrupt_ids[0]) for one in paused
    ]
    broker._link.client.execute_command(*reads(broker, "approvals"))
    assert [one.interrupt_id for one in (broker.check()).findings] == list(paused[1].interrupt_ids)


def test_what_should_have_happened_and_did_not(timed: Broker, clock: Clock) -> None:
    """A deadline, a lease and a back-off of long ago: somebody says that it sweeps, and does not."""
    timed._link.run(sweeps(timed))
    clock.advance(-timedelta(minutes=40))
    asked = timed.suspend("support", refund(expires_in=timedelta(minutes=1)), session="s")
    failed = timed.start("support", session="s", queue="failing")
    (run,) = timed.queue("failing").lease(("support",))
    run.fail("Boom")
    lost = timed.start("support", session="s")
    timed.queue("agents").lease(("support",))
    found = timed.check()
    assert troubles(found) == [Trouble.OVERDUE] * 3
    assert {one.interrupt_id or one.run_id for one in found.findings} == {
        asked.interrupt_ids[0], failed.run_id, lost.run_id,
    }  # fmt: skip
    assert (timed.check(within=timedelta(hours=1))).ok


def test_ready_runs_are_told_by_pool(timed: Broker, clock: Clock) -> None:
    timed._link.run(sweeps(timed))
    clock.advance(-timedelta(minutes=40))
    started = [timed.start("support", session="s") for _ in range(3)]
    (one,) = (timed.check()).findings
    assert (one.trouble, one.run_id) == (Trouble.NO_WORKER, started[0].run_id)
    assert one.text.startswith("3 runs are ready for agent support on queue agents")
    clock.advance(timedelta(minutes=40))
    timed._link.run(works(timed, holding=4))
    assert (timed.check()).ok  # all of them are busy
    timed._link.run(works(timed, holding=3))
    assert troubles(timed.check()) == [Trouble.NOT_TAKEN]
    assert (timed.check(within=timedelta(hours=1))).ok


def test_a_run_is_late_by_the_time_since_when_it_is_ready(timed: Broker, clock: Clock) -> None:
    """People took half an hour, and workers have had no time yet. Off: `offered` in _runs.lua."""
    timed._link.run(sweeps(timed))
    timed._link.run(works(timed))
    clock.advance(-timedelta(minutes=40))
    paused = timed.suspend("support", refund(), session="s")
    clock.advance(timedelta(minutes=40))
    timed.inbox.answer(paused.interrupt_ids[0], Approve())
    assert (timed.check()).ok


def test_dead_runs_are_listed_and_not_held_against_it(broker: Broker) -> None:
    started = broker.start("support", session="s")
    with broker.take(started.run_id or "") as run:
        run.fail("Hopeless", final=True)
    found = broker.check()
    assert (found.ok, found.dead) == (True, (started.run_id,))


def test_records_that_cannot_be_read(broker: Broker) -> None:
    broker._link.run(sweeps(broker))
    call: Any = broker._link.client.execute_command
    p = place(broker)
    asked = [broker.suspend("support", refund(call=f"c{n}"), session="s") for n in range(3)]
    call("SET", p.key("question", asked[0].interrupt_ids[0]), b"\xff")
    key = p.key("run", asked[1].run_id)
    call("SET", key, changed(call("GET", key), state="odd"))
    call("DEL", p.key("interrupt", asked[2].interrupt_ids[0]))
    found = broker.check()
    unreadable = [one for one in found.findings if one.trouble is Trouble.UNREADABLE]
    assert {one.interrupt_id or one.run_id for one in unreadable} == {
        asked[0].interrupt_ids[0], asked[1].run_id, asked[2].interrupt_ids[0],
    }  # fmt: skip
    assert len(unreadable) == 3


@pytest.mark.report("RB42")
def test_what_does_not_fit_together(broker: Broker) -> None:
    """Settled and not resumed; open and closed; marked and closed; leased without an end."""
    broker._link.run(sweeps(broker))
    broker._link.run(works(broker))
    call: Any = broker._link.client.execute_command
    p = place(broker)
    asked = [broker.suspend("support", refund(call=f"c{n}"), session="s") for n in range(2)]
    key = p.key("interrupt", asked[0].interrupt_ids[0])
    call("SET", key, changed(call("GET", key), state="expired"))
    key = p.key("run", asked[1].run_id)
    call("SET", key, changed(call("GET", key), state="finished"))
    third = broker.suspend("support", refund(call="c3"), session="s")
    broker.inbox.answer(third.interrupt_ids[0], Approve())
    broker.queue("agents").lease(("support",))
    call("ZREM", p.key("timers"), f"r {third.run_id}")
    found = broker.check()
    assert sorted((one.trouble, one.run_id) for one in found.findings) == sorted([
        (Trouble.NOT_RESUMED, asked[0].run_id), (Trouble.LEFT_OPEN, asked[1].run_id),
        (Trouble.WRONG_MARK, asked[1].run_id), (Trouble.UNLISTED, third.run_id),
    ])  # fmt: skip


def test_it_goes_on_from_a_cursor(server: RunningServer, namespace: str) -> None:
    """Several partitions, more questions than a page: every part is bounded, none is told twice."""
    with Broker(server.url, namespace=namespace, partitions=3) as broker:
        for n in range(230):
            broker.suspend("support", refund(n, expires_in=None), session=f"s{n % 7}")
        parts = [broker.check(limit=50)]
        while parts[-1].cursor is not None:
            parts.append(broker.check(limit=50, cursor=parts[-1].cursor))
        found = [one.interrupt_id for part in parts for one in part.findings]
        assert len(parts) > 4
        assert all(part.looked_at < 350 for part in parts)
        assert len(found) == len(set(found)) == 230
        assert (broker.check()).looked_at == sum(part.looked_at for part in parts)


def test_what_a_check_cannot_take_is_named(broker: Broker) -> None:
    for field, given in (("limit", 0), ("cursor", "x"), ("cursor", "9.0.0"), ("cursor", "0.9.0")):
        with pytest.raises(InvalidInput) as fault:
            broker.check(**{field: given})  # type: ignore[arg-type]
        assert fault.value.field == field
