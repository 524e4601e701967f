"""The rows F.. of the feature list that this release makes true."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from broker import (
    Accepted,
    AlreadyDecided,
    AnswerKind,
    Approve,
    AsyncBroker,
    Complete,
    Conflict,
    Expired,
    Fail,
    Interrupt,
    Invalid,
    OnExpiry,
    Parked,
    Refused,
    Reject,
    Replayed,
    Respond,
    RunState,
    Settlement,
    StaleLease,
    Sweeper,
    Withdrawn,
    Worker,
)
from tests.clients.asking import ADA, BEN, colour, refund, render
from tests.clock import Clock
from tests.features.bells import waiting
from tests.worker.fleet import QUICK, ended, run_when

Connect = Callable[..., Any]
Serve = Callable[..., Worker]
HOUR = timedelta(hours=1)


async def asks(run: Any) -> Any:
    """Pauses once, and goes on with the answer."""
    if run.seq == 0:
        return await run.suspend(refund(run.input or 40))
    return str(run.resolution("call_1").kind)


async def asked(broker: AsyncBroker, *interrupts: Interrupt, session: str = "s", **more: Any) -> str:
    return (await broker.suspend("a", *(interrupts or (refund(),)), session=session, **more)).interrupt_ids[0]


async def test_F01_a_wait_has_an_id_that_an_outsider_can_complete_by(
    broker: AsyncBroker, connect: Connect
) -> None:
    """Off: an id without its session's bits (`ids.interrupt_id`), by which `Keyspace.of_id` finds nothing."""
    one = await asked(broker, render())
    outsider = await connect(by=BEN)
    assert isinstance(await outsider.complete(one, {"video": "v.mp4"}), Accepted)


async def test_F02_a_waiting_run_holds_no_worker(broker: AsyncBroker, serve: Serve) -> None:
    """Off: `unlease` in suspend.lua, or a worker that keeps the task of a paused run: there is one slot for five."""
    serve(asks=asks, options={"concurrency": 1})
    ids = [(await broker.start("asks", session=f"s{n}")).run_id for n in range(5)]
    for one in ids:
        paused = await run_when(broker, one, RunState.WAITING)
        assert (paused.holder is None) or paused.lease_until is None


async def test_F03_any_process_can_resume_the_waiter(broker: AsyncBroker, serve: Serve) -> None:
    """Off: the state or the answers kept in the process that paused, instead of `state` and `verdict` keys."""
    first = serve(asks=asks, options={"name": "first"})
    paused = await run_when(broker, (await broker.start("asks", session="s")).run_id, RunState.WAITING)
    first.stop()
    await broker.inbox.answer(paused.interrupt_ids[0], Approve())
    serve(asks=asks, options={"name": "second"})
    run = await ended(broker, paused.id)
    assert (run.result, run.holder) == ("approve", "second")


async def test_F04_a_completion_before_the_waiter_listens_is_kept(broker: AsyncBroker) -> None:
    """Off: guard `early-match` of suspend.lua: the run would wait for ever."""
    assert isinstance(await broker.inbox.answer_call("s", "job_1", Complete(value=1)), Parked)
    one = await asked(broker, render())
    found = await broker.inbox.wait(one, 0)
    assert (found.state, found.answer) == (Settlement.RESOLVED, Complete(value=1))


async def test_F05_a_chosen_id_that_is_taken_is_a_conflict(broker: AsyncBroker) -> None:
    """Off: guard `start-op` of start.lua: other content would pass for the first."""
    await broker.start("a", {"mail": 1}, session="s", key="mail-1")
    await asked(broker, refund(40), session="t", key="pay-1")
    for taken in (
        broker.start("a", {"mail": 2}, session="s", key="mail-1"),
        broker.suspend("a", refund(400), session="t", key="pay-1"),
    ):
        with pytest.raises(Refused) as refused:
            await taken
        assert isinstance(refused.value.outcome, Conflict)


@pytest.mark.report("RB71")
async def test_F06_RB71_creating_the_same_wait_twice_gives_the_first(broker: AsyncBroker) -> None:
    """Off: run ids that do not follow from the key (`ids.new_run_id`), or no `suspend_op` in the record."""
    first = await broker.suspend("a", refund(), session="s", key="pay-1")
    second = await broker.suspend("a", refund(), session="s", key="pay-1")
    assert isinstance(second, Replayed)
    assert (second.run_id, second.interrupt_ids) == (first.run_id, first.interrupt_ids)
    assert (await broker.fleet()).open == 1


async def test_F09_an_outsider_can_read_what_a_wait_is_about(broker: AsyncBroker, connect: Connect) -> None:
    """Off: `question` not stored with the interrupt, or a reader that keeps only what it needs itself."""
    one = await asked(
        broker,
        refund(message="Pay back 40?", payload={"order": 7}, labels=("eu", "big"), metadata={"k": [1]}),
    )
    seen = (await (await connect()).inbox.get(one)).interrupt
    assert (seen.message, seen.payload, seen.labels, seen.metadata) == (
        "Pay back 40?",
        {"order": 7},
        ("eu", "big"),
        {"k": [1]},
    )
    assert seen.action is not None
    assert (seen.action.tool, seen.action.arguments) == ("refund", {"amount": 40})


@pytest.mark.row("X1")
async def test_F10_the_first_of_fifty_wins_and_the_others_change_nothing(
    broker: AsyncBroker, connect: Connect
) -> None:
    """Off: guard `decided` of answer.lua: each of them would be accepted (P4)."""
    one = await asked(broker)
    brokers = [broker, *[await connect() for _ in range(4)]]
    racers = [f"racer {n}" for n in range(50)]
    told = await asyncio.gather(
        *(
            brokers[n % 5].inbox.answer(
                one, Approve() if n % 2 else Reject(reason=name), by=ADA.model_copy(update={"id": name})
            )
            for n, name in enumerate(racers)
        )
    )
    assert Counter(type(each).__name__ for each in told) == {"Accepted": 1, "AlreadyDecided": 49}
    won = next(n for n, each in enumerate(told) if isinstance(each, Accepted))
    settled = (await broker.inbox.get(one)).resolution
    assert settled is not None
    assert settled.by is not None
    assert settled.by.id == racers[won]
    winners = {each.winner.by.id for each in told if isinstance(each, AlreadyDecided) and each.winner.by}
    assert winners == {racers[won]}
    assert len(await broker.history("s")) == 2


async def test_F11_the_loser_is_told_who_won(broker: AsyncBroker) -> None:
    """Off: `facts` of answer.lua without who, when, what."""
    one = await asked(broker)
    await broker.inbox.answer(one, Approve(), by=ADA, op="ada-1")
    lost = await broker.inbox.answer(one, Reject(reason="no"), by=BEN)
    assert isinstance(lost, AlreadyDecided)
    settled = (await broker.inbox.get(one)).resolution
    assert settled is not None
    assert (lost.winner.by, lost.winner.answer, lost.winner.op, lost.winner.at) == (
        ADA, AnswerKind.APPROVE, "ada-1", settled.at,
    )  # fmt: skip


async def test_F12_the_same_completion_again_gets_the_same_success(broker: AsyncBroker) -> None:
    """Off: guard `own-op` of answer.lua: the winner would be told that it lost, to itself."""
    one = await asked(broker, render())
    first = await broker.complete(one, [1, 2], op="hook-1")
    again = await broker.complete(one, [1, 2], op="hook-1")
    assert isinstance(again, Replayed)
    assert (first.ok, again.ok, again.interrupt_ids) == (True, True, (one,))
    derived = [await broker.inbox.answer(await asked(broker, session="t"), Approve()) for _ in range(1)]
    assert all(each.ok for each in derived)


async def test_F13_a_completion_after_expiry_has_a_code_of_its_own(broker: AsyncBroker, clock: Clock) -> None:
    """Off: guard `deadline` of answer.lua: the answer would count although its time was over."""
    one = await asked(broker, render(expires_in=HOUR))
    clock.advance(HOUR)
    late = await broker.complete(one, 1)
    assert isinstance(late, Expired)
    assert (late.code, late.ok) == ("expired", False)
    assert (await broker.inbox.get(one)).state is Settlement.EXPIRED  # settled before anybody was told


async def test_F14_a_race_of_deadline_and_answer_has_one_winner(broker: AsyncBroker, clock: Clock) -> None:
    """Off: guard `deadline` of answer.lua: an answer would count that came after the time was over."""
    sweeper, p = Sweeper(broker), broker._link.space.partition(0)
    minute = timedelta(minutes=1)
    ids = [await asked(broker, refund(n, expires_in=minute * (n + 1)), session=f"s{n}") for n in range(20)]

    async def time_is_over() -> None:
        await asyncio.to_thread(clock.advance, minute)
        await sweeper.sweep(p)

    for n, one in enumerate(ids):
        race = [broker.inbox.answer(one, Approve()), time_is_over()]
        told, *_ = await asyncio.gather(*race) if n % 2 else reversed(await asyncio.gather(*reversed(race)))
        record = await broker.inbox.get(one)
        assert record.resolution is not None
        assert record.deadline is not None
        in_time = record.resolution.at < record.deadline
        assert (type(told), record.state) == (
            (Accepted, Settlement.RESOLVED) if in_time else (Expired, Settlement.EXPIRED)
        )
        assert len(await broker.history(record.session_id)) == 2


async def test_F15_a_rejection_is_neither_an_approval_nor_a_failure(
    broker: AsyncBroker, serve: Serve
) -> None:
    """Off: one settled state without the kind of answer, or a rejection told as the failure of an attempt."""
    serve(asks=asks)
    paused = await run_when(broker, (await broker.start("asks", session="s")).run_id, RunState.WAITING)
    await broker.inbox.answer(paused.interrupt_ids[0], Reject(reason="too much"))
    run = await ended(broker, paused.id)
    assert (run.state, run.result, run.tries, run.errors) == (RunState.FINISHED, "reject", 1, ())
    failed = await asked(broker, render(), session="t")
    await broker.fail(failed, "no disk")
    found = [(await broker.inbox.get(one)).resolution for one in (paused.interrupt_ids[0], failed)]
    assert [each.answer for each in found if each] == [Reject(reason="too much"), Fail(error="no disk")]


async def test_F16_the_response_schema_is_enforced(broker: AsyncBroker) -> None:
    """Off: `_violation` of policy.py."""
    one = await asked(broker, colour())
    wrong = await broker.inbox.answer(one, Respond(payload={"colour": "green"}))
    assert isinstance(wrong, Invalid)
    assert wrong.field == "payload.colour"
    assert (await broker.inbox.get(one)).state is Settlement.OPEN
    assert isinstance(await broker.inbox.answer(one, Respond(payload={"colour": "red"})), Accepted)


@pytest.mark.row("X5")
async def test_F19_a_token_of_an_older_attempt_is_refused(broker: AsyncBroker, clock: Clock) -> None:
    """Off: guard `fence` of the prelude."""
    await broker.start("a", session="s")
    (old,) = await broker.queue("agents").lease(("a",))
    clock.advance(QUICK.lease)
    async with broker.take(old.id) as new:
        assert new.fence == old.fence + 1
        for write in (old.finish, old.release, lambda: old.fail("Late"), lambda: old.suspend(refund())):
            with pytest.raises(StaleLease):
                await write()
        await new.finish("new")
    assert (await broker.runs.get(old.id)).result == "new"


@pytest.mark.report("RA15")
async def test_F21_every_wait_has_a_deadline_a_day_by_default(broker: AsyncBroker) -> None:
    """Off: `Settings.deadline`, or `expires_in` taken as never."""
    questions = refund(), refund(expires_in=HOUR), refund(expires_in=None)
    default, own, never = [
        await broker.inbox.get(await asked(broker, one, session=f"s{n}")) for n, one in enumerate(questions)
    ]
    assert default.deadline == default.opened_at + timedelta(hours=24)
    assert own.deadline == own.opened_at + HOUR
    assert never.deadline is None


async def test_F22_what_expiry_does_is_the_askers_policy(broker: AsyncBroker, clock: Clock) -> None:
    """Off: `expire` of the prelude without a look at the policy."""
    policies: dict[str, Interrupt] = {
        "deny": refund(expires_in=HOUR, on_expiry=OnExpiry.DENY),
        "cancel": refund(expires_in=HOUR, on_expiry=OnExpiry.CANCEL),
        "wait": refund(expires_in=HOUR, on_expiry=OnExpiry.WAIT),
        "default": refund(expires_in=HOUR, on_expiry=OnExpiry.DEFAULT, default_answer=Approve()),
    }
    ids = {name: await asked(broker, one, session=name) for name, one in policies.items()}
    clock.advance(HOUR)
    await Sweeper(broker).sweep(broker._link.space.partition(0))
    found = {name: await broker.inbox.get(one) for name, one in ids.items()}
    assert [found[name].state for name in policies] == [
        Settlement.EXPIRED, Settlement.EXPIRED, Settlement.OPEN, Settlement.RESOLVED,
    ]  # fmt: skip
    reasons = {name: one.resolution.reason for name, one in found.items() if one.resolution}
    assert (reasons["deny"], reasons["cancel"]) == ("deny", "cancel")
    assert found["default"].resolution is not None
    assert found["default"].resolution.answer == Approve()
    assert isinstance(await broker.inbox.answer(ids["wait"], Approve()), Accepted)


async def test_F37_the_asker_may_withdraw_and_the_answerer_is_told(broker: AsyncBroker) -> None:
    """Off: withdrawal told as `AlreadyDecided` or `Unknown` (`answers._settled`)."""
    one = await asked(broker)
    run_id = (await broker.inbox.get(one)).run_id
    assert isinstance(await broker.runs.withdraw(run_id, reason="solved by phone", by=BEN), Accepted)
    late = await broker.inbox.answer(one, Approve())
    assert isinstance(late, Withdrawn)
    assert late.by == BEN


@pytest.mark.report("RB59", "RB77")
@pytest.mark.row("X12")
async def test_F47_RB59_RB77_who_when_what_is_on_record(broker: AsyncBroker) -> None:
    """Off: `history` of the prelude."""
    one = await asked(broker)
    await broker.inbox.answer(one, Approve(), by=ADA, op="ada-1")
    async with broker.take((await broker.inbox.get(one)).run_id) as run:
        await run.finish(by=BEN)
    entries = await broker.history("s")
    assert [entry.event for entry in entries] == ["suspended", "resolved", "leased", "finished"]
    decided = entries[1]
    assert (decided.by, decided.op, decided.interrupt_id, decided.state) == (ADA, "ada-1", one, "resolved")
    assert decided.digest is not None
    assert entries[-1].by == BEN
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)


@pytest.mark.report("RA47")
async def test_F48_pending_waits_are_listed_filtered_and_paged(broker: AsyncBroker, clock: Clock) -> None:
    """Off: `Filters.may_hold`, or a filter of `pages.Filters`."""
    half = HOUR / 2
    clock.advance(-half)
    old = await asked(broker, refund(1, labels=("big",), reviewers=("ann",)), session="old")
    clock.advance(half)
    new = [await asked(broker, render(f"job_{n}"), session=f"s{n}") for n in range(5)]
    listed = broker.inbox.list
    assert [one.id for one in (await listed()).items] == [old, *new]
    assert [one.id for one in (await listed(tool="render")).items] == new
    assert [one.id for one in (await listed(label="big", reviewer="ann")).items] == [old]
    assert [one.id for one in (await listed(older_than=half)).items] == [old]
    first = await listed(tool="render", limit=3)
    rest = await listed(tool="render", limit=3, cursor=first.cursor)
    assert [one.id for one in (*first.items, *rest.items)] == new


async def test_F54_an_operator_can_finish_reset_and_reroute_a_stuck_wait(broker: AsyncBroker) -> None:
    """Off: `move`, `cancel`, `requeue` or `withdraw`."""
    stuck = await asked(broker, refund(expires_in=None))
    run_id = (await broker.inbox.get(stuck)).run_id
    assert isinstance(await broker.runs.move(run_id, "specialists"), Accepted)
    assert [one.id for one in (await broker.inbox.list(queue="specialists")).items] == [stuck]
    assert isinstance(await broker.cancel(stuck, "nobody left"), Accepted)
    assert await broker.runs.ready("specialists") == (run_id,)
    async with broker.take(run_id) as run:
        await run.fail("Hopeless", final=True)
    assert isinstance(await broker.dead.requeue(run_id, queue="agents"), Accepted)
    assert await broker.runs.ready("agents") == (run_id,)
    assert isinstance(await broker.runs.withdraw(run_id), Accepted)


async def test_F57_the_decision_and_the_wake_up_are_one_step(broker: AsyncBroker) -> None:
    """Off: guard `complete` of the prelude, or a wake-up that is a call of its own after the answer."""
    one = await asked(broker)
    record = await broker.inbox.get(one)
    with waiting(broker) as workers:
        told = await broker.inbox.answer(one, Approve())
        assert isinstance(told, Accepted)
        assert (await broker.runs.get(record.run_id)).state is RunState.READY
        assert await broker.runs.ready("agents") == (record.run_id,)
        assert workers.woken_for() == [record.run_id]
